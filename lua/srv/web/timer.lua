--- app:every: a task of its own that sleeps until the next run (API, section 2).
local answer = require "srv.web.answer"
local async = require "srv.async.task"
local cron = require "srv.web.cron"
local env = require "srv.core.env"
local log = require "srv.core.log"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local units = require "srv.base.units"

---@class srv.Timer
---@field private task srv.Task?
---@field private schedule table?  of cron; nil: `interval`
---@field private interval number? seconds
local Timer = { __name = "srv.Timer" }
Timer.__index = Timer

local timer = {}

local OPTIONS = {
  each_worker = "boolean", overlap = "boolean", jitter = "duration", at_start = "boolean", timeout = "duration",
  zone = "UTC",
}

--- Seconds between two runs that begin on time.
local INTERVAL_MIN = 0.001

local function parse(when)
  local expression = type(when) == "string" and when:match("^cron:%s*(.*)$")
  if expression then
    local schedule, message = cron.parse(expression)
    return schedule or misuse("app:every: " .. message), nil
  end
  local interval = units.duration(when)
  if not interval or interval < INTERVAL_MIN then
    misuse('app:every: "5m", a number of seconds or "cron: 0 4 * * *" is expected')
  end
  return nil, interval
end

---@param when string|number
---@param opts table
---@param fn function
---@return srv.Timer
function timer.new(when, opts, fn)
  if type(fn) ~= "function" then misuse("app:every: a function is missing") end
  local schedule, interval = parse(when)
  return setmetatable({
    fn = fn, options = options.check("app:every", opts, OPTIONS), schedule = schedule, interval = interval,
  }, Timer)
end

--- One worker runs what is for the whole app.
---@return boolean
function Timer:runs_here() return self.options.each_worker == true or env.worker.id == 0 end

--- Seconds to the next run; nil: it will never come.
local function delay(self)
  local jitter = (self.options.jitter or 0) * math.random()
  if self.interval then return self.interval + jitter end
  local now = env.now()
  local at = cron.next(self.schedule, now)
  return at and at - now + jitter
end

local function run_once(self)
  local limit = self.options.timeout
  if not limit then return answer.guarded("app:every", self.fn) end
  answer.guarded("app:every", function()
    local _, err = async.timeout(limit, self.fn)
    if err then log.warn("timer took too long", { err = err }) end
  end)
end

--- In a task of its own: one that is cancelled for its length (slice_limit) is not the timer's end.
local function run_apart(self)
  local run = async.spawn(run_once, self)
  if not self.options.overlap then run:wait() end
end

--- The timer's life, in a task of its own.
function Timer.run(self)
  if self.options.at_start then run_apart(self) end
  while not self.cancelled do
    local seconds = delay(self)
    if not seconds then return end
    async.sleep(seconds)
    run_apart(self)
  end
end

--- The run in hand is cancelled too. Idempotent.
function Timer:cancel()
  self.cancelled = true
  if self.task then self.task:cancel() end
end

return timer
