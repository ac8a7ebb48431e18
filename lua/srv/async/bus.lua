--- Messages to all workers by topic (API, section 10).
local core = require "srv.core.bus"
local options = require "srv.base.options"
local task = require "srv.async.task"

local bus = {}

local LIMIT = 256

--- V goes to every subscriber of TOPIC, on every worker. Each publisher's messages arrive in order.
---@param topic string  without "*"
---@param v any  a string, number, boolean or a table of these
---@return true?
---@return srv.Error? err  too_large
bus.publish = core.publish

---@class srv.Subscription
---@field dropped integer  messages lost because nobody read them in time
local Subscription, methods = core.Subscription, {}
local receive, dropped, ended = Subscription.receive, core.dropped, core.ended

function Subscription:__index(key)
  if key == "dropped" then return dropped(self) end
  return methods[key]
end

--- The next message; waits for it.
---@param t number|string|nil
---@return any? v
---@return string|srv.Error topic_or_err  err: timeout, closed
function methods:receive(t)
  return receive(self, task.seconds("subscription:receive", t))
end

local function next_message(self)
  local v, topic = receive(self)
  if v ~= nil then return v, topic end
  if ended(self) then return nil end
  error(topic, 0)
end

--- `for v, topic in sub:each() do`, until it is closed; raises when it was closed because the loop was
--- too slow (`overflow = "close"`).
function methods:each()
  return next_message, self
end

--- Ends it; what has come already can still be read.
---@return srv.Subscription
methods.close = Subscription.close

local OPTIONS = { limit = "1..1048576", overflow = "drop|close" }

--- Messages to TOPIC, in which "*" stands for any bytes, from now on until the task ends.
---@param topic string
---@param opts { limit: integer?, overflow: "drop"|"close"|nil }?
---@return srv.Subscription?
---@return srv.Error? err
function bus.subscribe(topic, opts)
  opts = options.check("srv.bus.subscribe", opts, OPTIONS)
  return core.subscribe(topic, opts.limit or LIMIT, opts.overflow == "close")
end

return bus
