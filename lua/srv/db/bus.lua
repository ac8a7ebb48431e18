--- srv.bus (API, section 10): the bus of this process, and with REDIS_URL that of all machines.
---
--- A message goes to the workers of this process as ever, at once, and to Redis; what other processes
--- publish is handed to the local bus by one connection for each process (data/redis_bus). So local
--- messages arrive once, and arrive while Redis is away.
local bus = require "srv.async.bus"
local core = require "srv.core.redis"
local machines = require "srv.db.machines"

if not machines.are_linked() then return bus end

local others = core.bus(machines.redis().core, machines.prefix())
local publish_here = bus.publish

local shared = { subscribe = bus.subscribe }

--- V goes to every subscriber of TOPIC, on every worker of every machine. Does not wait, and does not
--- fail when Redis is away: then the log says so, and workers of this machine hear it.
---@param topic string  without "*"
---@param v any  a string, number, boolean or a table of these
---@return true?
---@return srv.Error? err  too_large
function shared.publish(topic, v)
  local ok, err = publish_here(topic, v)
  if not ok then return nil, err end
  others:publish(topic, v)
  return true
end

--- To the other machines alone: of what this one has been told.
---@param topic string
---@param v any
function shared.tell(topic, v) others:publish(topic, v) end

--- Between the machines: hears (this worker does, for all of its process), up, sent, unsent, heard.
---@return table<string, boolean|integer>
function shared.stats() return others:stats() end

return shared
