--- One load from its start to its end: sampled while it runs, shown to whoever looks.
local interrupt = require "srv.core.interrupt"
local load = require "srv.core.load"
local now = require "srv.core.env".now
local spawn = require "srv.async.task".spawn
local bench_result = require "srv.cli.bench_result"

local bench_run = {}

local LOOK = 0.1 -- seconds from look to look

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

--- A sample that is much shorter than the others says nothing: the rest at the end is joined to the last.
local function is_worth_a_sample(older, newer, interval) return newer.elapsed - older.elapsed >= interval * 0.9 end

--- Runs PLAN. SHOW(totals, samples) is called about ten times a second.
---@param plan table     for srv.core.load.start
---@param about table    for bench_result.new
---@param show function?
---@return table? result
---@return srv.Error? err
function bench_run.run(plan, about, show)
  local interval = about.sample_interval / 1000
  about.start = now()
  local run, err = load.start(plan)
  if not run then return nil, err end
  local signals = assert(interrupt.catch())
  local watch = spawn(function() -- Ctrl-C: what was done so far is the result
    about.was_interrupted = signals:wait() ~= nil
    run:stop()
  end)
  local samples, last = {}, run:read()
  last.elapsed = 0
  while not run:wait(math.min(LOOK, interval)) do
    local totals = run:read()
    if is_worth_a_sample(last, totals, interval) then
      samples[#samples + 1] = sample_between(last, totals)
      last = totals
    end
    if show then show(totals, samples) end
  end
  watch:cancel()
  signals:close()
  local totals = run:read()
  if is_worth_a_sample(last, totals, interval) or #samples == 0 then
    samples[#samples + 1] = sample_between(last, totals)
  end
  about.finish = now()
  return bench_result.new(totals, samples, about)
end

return bench_run
