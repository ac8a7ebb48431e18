--- One load from its start to its end: sampled while it runs, shown to whoever looks.
local interrupt = require "srv.core.interrupt"
local load = require "srv.core.load"
local now = require "srv.core.env".now
local spawn = require "srv.async.task".spawn
local bench_result = require "srv.cli.bench_result"

local bench_run = {}

local LOOK = 0.1 -- seconds from look to look
local LOOK_MIN = 0.005
local REST_MIN = 0.5 -- of an interval: the last sample, at least

local function sum_of(map)
  local sum = 0
  for _, number in pairs(map) do sum = sum + number end
  return sum
end

--- What happened between two looks, each a second's worth.
local function sample_between(older, newer)
  local took = newer.elapsed - older.elapsed
  local times = newer.latency:since(older.latency)
  return {
    t = math.floor(newer.elapsed * 1000 + 0.5) / 1000,
    requests = math.floor((sum_of(newer.statuses) - sum_of(older.statuses)) / took + 0.5),
    bytes = math.floor((newer.bytes_in - older.bytes_in) / took + 0.5),
    errors = sum_of(newer.faults) - sum_of(older.faults),
    p50 = times:percentile(50) / 1000, p99 = times:percentile(99) / 1000,
  }
end

--- With -C, latency is what passed since a request was sent.
local function read(run, about)
  local totals = run:read()
  if about.from_sending then totals.latency = totals.service end
  return totals
end

--- Samples end at whole intervals, as nearly as looks can tell. SHOW is called at each look. Or nil and why it came
--- to nothing.
local function sample_until_over(run, about, show)
  local interval = about.sample_interval / 1000
  local samples, last, due, seen = {}, read(run, about), interval, 0
  last.elapsed = 0
  local function add(totals)
    samples[#samples + 1] = sample_between(last, totals)
    last, due = totals, due + interval
  end
  while true do
    local is_over, err = run:wait(math.max(LOOK_MIN, math.min(LOOK, due - seen)))
    if err and err.code ~= "timeout" then return nil, err end
    if is_over then break end
    local totals = read(run, about)
    seen = totals.elapsed
    if totals.elapsed >= due - LOOK_MIN then add(totals) end
    if show then show(totals, samples) end
  end
  local totals = read(run, about)
  -- What is much shorter than the others says nothing.
  if totals.elapsed - last.elapsed >= interval * REST_MIN or #samples == 0 then add(totals) end
  return totals, samples
end

--- Ctrl-C, for all runs of a command: it ends the one that is under way, whose result is what was done so far, and
--- nobody begins another.
---@class srv.cli.BenchStop
---@field asked boolean
---@field private run userdata?   that is under way
---@field private signals srv.core.Interrupt
---@field private watch srv.Task
local Stop = {}
Stop.__index = Stop

---@return srv.cli.BenchStop
function bench_run.catch()
  local stop = setmetatable({ asked = false, signals = assert(interrupt.catch()) }, Stop)
  stop.watch = spawn(function()
    stop.asked = stop.signals:wait() ~= nil
    if stop.run then stop.run:stop() end
  end)
  return stop
end

function Stop:close()
  self.watch:cancel()
  self.signals:close()
end

--- Runs PLAN. SHOW(totals, samples) is called about ten times a second.
---@param plan table     for srv.core.load.start
---@param about table    for bench_result.new
---@param stop srv.cli.BenchStop
---@param show function?
---@return table? result
---@return srv.Error? err
---@return srv.core.Hist? hist  of latencies
function bench_run.run(plan, about, stop, show)
  about.start = now()
  local run, err = load.start(plan)
  if not run then return nil, err end
  stop.run = run
  local totals, samples = sample_until_over(run, about, show)
  stop.run = nil
  if not totals then return nil, samples end
  about.finish, about.was_interrupted = now(), stop.asked or nil
  return bench_result.new(totals, samples, about), nil, totals.latency
end

return bench_run
