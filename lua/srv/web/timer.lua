--- app:every: a task of its own that sleeps until the next run (API, section 2).
local answer = require "srv.web.answer"
local async = require "srv.async.task"
local cron = require "srv.web.cron"
local env = require "srv.core.env"
local log = require "srv.core.log"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local units = require "srv.base.units"
local zone = require "srv.base.zone"

---@class srv.Timer
---@field private task srv.Task?
---@field private schedule table?  of cron; nil: `interval`
---@field private zone srv.Zone    the schedule's
---@field private due number?      the last moment of the schedule that was waited for
---@field private interval number? seconds
---@field private name string      the same wherever this version of the app runs
local Timer = { __name = "srv.Timer" }
Timer.__index = Timer

local timer = {}

local OPTIONS = {
  each_worker = "boolean", overlap = "boolean", jitter = "duration", at_start = "boolean", timeout = "duration",
  zone = "string",
}

--- Seconds between two runs that begin on time.
local INTERVAL_MIN = 0.001
--- Seconds after which the clock is looked at again: it may have been set.
local CLOCK_TRUSTED = 60
--- Seconds within which the starts of several machines count as one.
local STARTS_TOGETHER = 10

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

--- Where several machines run the app: runs RUN if it is this one's turn (lua/srv/db/turns.lua).
---@type fun(name: string, at: number?, interval: number?, overlap: boolean?, run: fun())?
timer.take_turn = nil

-- Timers of one line and one schedule, made so far.
local alike = {}

--- "jobs.lua:12 5m #1": the function's place, since an app makes its timers in the same order everywhere.
local function name_of(when, fn)
  local info = debug.getinfo(fn, "S")
  local source = info.source:gsub("^@", "")
  if env.root and source:sub(1, #env.root + 1) == env.root .. "/" then source = source:sub(#env.root + 2) end
  local name = ("%s:%d %s"):format(source, info.linedefined, tostring(when))
  alike[name] = (alike[name] or 0) + 1
  return ("%s #%d"):format(name, alike[name])
end

---@param when string|number
---@param opts table
---@param fn function
---@return srv.Timer
function timer.new(when, opts, fn)
  if type(fn) ~= "function" then misuse("app:every: a function is missing") end
  local schedule, interval = parse(when)
  local checked = options.check("app:every", opts, OPTIONS)
  local found, err = zone.find(checked.zone or "UTC")
  if not found then misuse("app:every: " .. err.message) end
  return setmetatable({
    fn = fn, options = checked, schedule = schedule, interval = interval, zone = found, name = name_of(when, fn),
  }, Timer)
end

--- One worker runs what is for the whole app.
---@return boolean
function Timer:runs_here() return self.options.each_worker == true or env.worker.id == 0 end

--- Until the clock says T. One that is set back meanwhile brings no second run.
local function sleep_until(t)
  local left = t - env.now()
  while left > 0 do
    async.sleep(math.min(left, CLOCK_TRUSTED))
    left = t - env.now()
  end
end

--- Waits for the next run. False: it will never come; and the moment it is due by a cron expression.
local function wait_for_run(self)
  local jitter = (self.options.jitter or 0) * math.random()
  if self.interval then
    async.sleep(self.interval + jitter)
    return true
  end
  self.due = cron.next(self.schedule, math.max(env.now(), self.due or 0), self.zone)
  if not self.due then return false end
  sleep_until(self.due + jitter)
  return true, self.due
end

local function run_once(self)
  local limit = self.options.timeout
  if not limit then return answer.guarded("app:every", self.fn) end
  answer.guarded("app:every", function()
    local _, err = async.timeout(limit, self.fn)
    if err then log.warn("timer took too long", { err = err }) end
  end)
end

local function run_in_turn(self, name, at, interval)
  if not timer.take_turn or self.options.each_worker then return run_once(self) end
  timer.take_turn(name, at, interval, self.options.overlap, function() run_once(self) end)
end

--- In a task of its own: one that is cancelled for its length (slice_limit) is not the timer's end.
local function run_apart(self, ...)
  local run = async.spawn(run_in_turn, self, ...)
  if not self.options.overlap then run:wait() end
end

--- The timer's life, in a task of its own.
function Timer.run(self)
  self.due = nil -- of a life before: specs start an app again and again
  if self.options.at_start then run_apart(self, self.name .. " at start", nil, STARTS_TOGETHER) end
  while not self.cancelled do
    local comes, at = wait_for_run(self)
    if not comes then return end
    run_apart(self, self.name, at, self.interval)
  end
end

--- The run in hand is cancelled too. Idempotent.
function Timer:cancel()
  self.cancelled = true
  if self.task then self.task:cancel() end
end

return timer
