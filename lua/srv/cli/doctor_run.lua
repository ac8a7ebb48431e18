--- One look at a server: quiet, under load, quiet again; and what was seen meanwhile.
local monotonic = require "srv.core.env".monotonic
local task = require "srv.async.task"
local admin = require "srv.cli.admin"
local app_under_load = require "srv.cli.app_under_load"
local doctor_jit = require "srv.cli.doctor_jit"
local doctor_recording = require "srv.cli.doctor_recording"
local json = require "srv.base.json"

local doctor_run = {}

local BEFORE = 0.5 -- seconds of a server that nobody loads, for what is left over afterwards
local AFTER = 2    -- seconds for it to come to rest
local LOOK = 0.1
local LAST_TIME = 5 -- seconds for the server to give its last samples

---@class srv.cli.DoctorRun
---@field recording srv.cli.DoctorRecording
---@field private talk srv.cli.AdminTalk
---@field private started number
local Run = {}
Run.__index = Run

local function take_lines(self)
  repeat
    local line, err = self.talk:line()
    if not line then
      self.problem = err and err.message or "the server ended while it was looked at"
      return
    end
    local is_last, problem = self.recording:take(line)
    if problem then self.problem = "the server says: " .. problem end
  until is_last
  self.is_complete = true
end

--- Follows the server of process PID from here on.
local function follow(pid, interval)
  local talk, problem = admin.open(pid, ("vitals %d"):format(interval))
  if not talk then return nil, problem end
  local self = setmetatable({ talk = talk, recording = doctor_recording.new(), started = monotonic() }, Run)
  self.reading = task.spawn(take_lines, self)
  return self
end

function Run:elapsed() return monotonic() - self.started end

--- Waits until IS_OVER() says so, the user interrupts, or the server has ended.
local function wait_until(self, is_over, show)
  while not self.ending.has_come and not self.problem and not is_over() do
    if show then show(self) end
    task.sleep(LOOK)
  end
end

local function pause(self, seconds, show)
  local at = monotonic() + seconds
  wait_until(self, function() return monotonic() >= at end, show)
end

--- What the load says of itself when it is over; `problem`: it did not load anything.
local function finish_load(self, load, is_bench)
  local status, output, errors = load:finish()
  self.recording.result = is_bench and json.decode(output) or nil
  if is_bench and not self.recording.result then
    return ("the load failed: %s"):format(errors ~= "" and errors or output)
  end
  if not is_bench and status ~= 0 and not self.ending.has_come then self.recording.load_status = status end
  return nil
end

local function under_load(self, how, show)
  pause(self, BEFORE, show)
  local load, problem = app_under_load.start(how.command, how.port)
  if not load then return problem end
  self.recording.load = { from = self:elapsed() }
  self.is_loading = true
  wait_until(self, function() return load:is_over() end, show)
  problem = finish_load(self, load, how.is_bench)
  self.recording.load.to, self.is_loading = self:elapsed(), false
  if not problem and not self.ending.has_come then pause(self, AFTER, show) end
  return problem
end

--- Ends following. Returns what went wrong.
local function stop(self)
  if not self.problem then
    self.talk:say "stop"
    self.reading:wait(LAST_TIME)
    if not self.is_complete and not self.problem then self.problem = "the server did not give its last samples" end
  end
  self.talk:close()
  return self.problem
end

---@class srv.cli.DoctorLoad
---@field command string[]? nil: the server has its load
---@field is_bench boolean?
---@field port integer?
---@field seconds number    without a command

--- Looks at the server of process PID under the load HOW. SHOW(run) is called ten times a second.
---@param pid integer
---@param interval integer
---@param how srv.cli.DoctorLoad
---@param ending srv.cli.Ending
---@param show function?
---@return srv.cli.DoctorRecording?
---@return string? problem
function doctor_run.look(pid, interval, how, ending, show)
  local about = how.command and admin.await(pid) or admin.about(pid)
  if not about then return nil, admin.nobody(pid) end
  local self, problem = follow(pid, interval)
  if not self then return nil, problem end
  self.ending, ending.keeps_samples = ending, true
  doctor_jit.begin(pid, about.workers)
  if how.command then
    problem = under_load(self, how, show)
  else
    pause(self, how.seconds, show)
  end
  self.recording.app = about.app
  self.recording.jit = doctor_jit.finish(pid, about.workers)
  local why = stop(self)
  problem = problem or why
  if problem then return nil, problem end
  return self.recording
end

return doctor_run
