--- Rules about time on the processor: a loop that is blocked, workers that have no time left, the collector, the
--- compiler. Each looks at a view and gives a finding, or nothing.
local doctor_sites = require "srv.cli.doctor_sites"
local doctor_view = require "srv.cli.doctor_view"

local rules = {}

-- Others wait while one turn of the loop lasts. Half a frame of a game, and what people say they do not feel, is ten
-- milliseconds; node's Clinic takes the same for its median, and a tenth of a second for the longest.
local TURN_MS = 10
local ONCE_MS = 100          -- one turn like this is told even if it was the only one
local BLOCKED_SHARE = 0.1    -- of the time, in turns of more than TURN_MS: less is an outlier that p99 hardly shows
local TURNS_MIN = 3          -- a share of few turns is chance
local BLOCKED_WORST = 0.5    -- of the time: no worse finding is possible

local BUSY = 0.9             -- of a worker's time; the rest is what nobody can use
local REQUEST_CPU_MS = 1     -- a request that uses less is cheap: a full processor then means many of them
local HOT_CPU = 0.7          -- of a worker's time on the processor, while
local COLD_BUSY = 0.3        -- another one is awake for less than this: one that waits for a processor is not idle
local EACH_CONNECTIONS = 16  -- for each worker: fewer are not spread evenly (server/worker_connections.c)

local SAMPLES_MIN = 50       -- half a second of one processor: fewer say nothing about shares
local GC_SHARE = 0.2         -- of the samples in the collector; 5 to 10 % are usual for apps that make JSON
local INTERPRETED = 0.4      -- of the samples in the interpreter, and less than this in compiled code:
local ABORTS_MIN = 10        -- so often LuaJIT gives up at a place before it never tries again

local function clamp(number) return math.max(0, math.min(1, number)) end

local function percent(share) return ("%.0f %%"):format(share * 100) end

-- A blocked loop ---------------------------------------------------------------------------------------

--- What blocks in C, and what waits instead (docs/guide/waiting.md).
local WAITING = {
  ["os.execute"] = "srv.exec", ["io.popen"] = "srv.exec", ["io.open"] = "srv.fs", ["io.read"] = "srv.fs",
  ["io.lines"] = "srv.fs", ["io.write"] = "srv.fs", ["io.flush"] = "srv.fs", ["os.remove"] = "srv.fs",
  ["os.rename"] = "srv.fs",
}

--- Turns whose time is the app's own.
local function blocks_of(view)
  local blocks, longest, sum = {}, nil, 0
  for _, turn in ipairs(view:turns()) do
    if turn.own >= TURN_MS then
      blocks[#blocks + 1], sum = turn, sum + turn.own
      if not longest or turn.own > longest.own then longest = turn end
    end
  end
  return blocks, longest, sum
end

local function stacks_of(turns)
  local stacks = {}
  for _, turn in ipairs(turns) do
    for _, stack in ipairs(turn.stacks) do stacks[#stacks + 1] = stack end
  end
  return stacks
end

local function middle(turns)
  local all = {}
  for i, turn in ipairs(turns) do all[i] = turn.own end
  table.sort(all)
  return all[math.ceil(#all / 2)]
end

--- Nothing where it is work, and no wait.
local function what_to_do(site, turn)
  local waiting = WAITING[site.calls or ""]
  if waiting then
    return ("%s holds the whole worker until it is done: %s lets other requests run meanwhile."):format(site.calls, waiting)
  end
  if turn.own > 2 * turn.ran then
    return "The worker slept in a C function that does not know of other requests: use what waits (srv.fetch, srv.fs, srv.exec)."
  end
  return nil
end

--- A turn of the loop in which the app did not let others run.
function rules.blocked(view)
  local blocks, longest, sum = blocks_of(view)
  if not longest then return nil end
  local share = sum / 1000 / view.seconds / view.workers
  local is_often = #blocks >= TURNS_MIN and share >= BLOCKED_SHARE
  if not is_often and longest.own < ONCE_MS then return nil end
  local site = doctor_sites.first(stacks_of(is_often and blocks or { longest }))
  if not site then return nil end
  local evidence = {
    ("%d turns of a worker's loop took %g ms or more: the longest %.0f ms, the middle one %.0f ms"):format(#blocks, TURN_MS,
      longest.own, middle(blocks)),
    ("that is %s of the time of all workers"):format(percent(clamp(share))),
    ("%s of the samples in them are in %s%s"):format(percent(site.share), doctor_sites.text(site),
      site.by and ", called by " .. site.by or ""),
  }
  if site.calls then evidence[#evidence + 1] = ("it was in %s"):format(site.calls) end
  if site.task then evidence[#evidence + 1] = ("it ran for %s"):format(site.task) end
  return {
    id = "blocked", score = clamp(0.6 + 0.4 * math.max(share / BLOCKED_WORST, is_often and 0 or longest.own / 1000)),
    title = ("The loop is blocked for up to %.0f ms by %s"):format(longest.own, doctor_sites.text(site)),
    site = site, evidence = evidence, advice = what_to_do(site, longest), next = { view.flame },
    chart = "delay", from = longest.t - longest.ms / 1000, to = longest.t,
  }
end

-- Processors ---------------------------------------------------------------------------------------------

local function cpu_of(line) return doctor_view.of_workers(line, "cpu") end

--- All workers are busy, and it is not because there are so many requests.
function rules.saturated(view)
  local busy = view:mean(function(line) return doctor_view.of_workers(line, "busy") end) / view.workers
  local cpu_ms = view:mean(cpu_of) * view.seconds * 1000
  local each = view.requests > 0 and cpu_ms / view.requests or 0
  if busy < BUSY or each < REQUEST_CPU_MS then return nil end
  local stacks = view:stacks(doctor_view.is_running)
  local site = doctor_sites.first(stacks)
  local evidence = {
    ("workers are busy for %s of the time"):format(percent(busy)),
    ("a request uses %.1f ms of a processor; %d requests in %.1f s"):format(each, view.requests, view.seconds),
  }
  if site then evidence[3] = ("%s of all samples are in %s"):format(percent(site.share), doctor_sites.text(site)) end
  return {
    id = "saturated", score = clamp(0.4 + 0.4 * math.min(1, each / 20)), site = site,
    title = ("The processors are used up: %.1f ms a request%s"):format(each,
      site and site.file and ", most of it in " .. doctor_sites.text(site) or ""),
    evidence = evidence,
    next = { view.flame }, chart = "cpu", from = view.from, to = view.to,
  }
end

--- One worker does the work of all.
function rules.hot_worker(view)
  local cpu, busy, connections = view:by_worker "cpu", view:by_worker "busy", view:by_worker "connections"
  local hot, cold, all = 1, 1, 0
  for i = 1, #cpu do
    if cpu[i] > cpu[hot] then hot = i end
    if busy[i] < busy[cold] then cold = i end
    all = all + connections[i]
  end
  if #cpu < 2 or cpu[hot] < HOT_CPU or busy[cold] > COLD_BUSY then return nil end
  if view.requests > 0 and all < EACH_CONNECTIONS * #cpu then return nil end
  return {
    id = "hot_worker", score = clamp(0.3 + 0.4 * (cpu[hot] - cpu[cold])),
    title = ("Worker %d does most of the work: %s of a processor, worker %d %s"):format(hot - 1, percent(cpu[hot]), cold - 1,
      percent(cpu[cold])),
    evidence = { ("worker %d has %.0f connections in the mean, worker %d has %.0f"):format(hot - 1, connections[hot], cold - 1,
      connections[cold]) },
    next = { view.flame }, chart = "cpu", from = view.from, to = view.to,
  }
end

-- LuaJIT --------------------------------------------------------------------------------------------------

local function shares_of(stacks)
  local counts, all = {}, 0
  for _, stack in ipairs(stacks) do
    counts[stack.state], all = (counts[stack.state] or 0) + stack.count, all + stack.count
  end
  return function(state) return all > 0 and (counts[state] or 0) / all or 0 end, all
end

--- The collector takes what the app should have.
function rules.garbage(view)
  local share, all = shares_of(view:stacks(doctor_view.is_running))
  if all < SAMPLES_MIN or share "gc" < GC_SHARE then return nil end
  local site = doctor_sites.first((view:stacks(function(stack) return stack.state == "gc" end)))
  local heap = view:most(function(line) return doctor_view.of_workers(line, "lua") end)
  return {
    id = "garbage", score = clamp(0.3 + share "gc"), site = site,
    title = ("The garbage collector takes %s of the time%s"):format(percent(share "gc"),
      site and site.file and ", most of it below " .. doctor_sites.text(site) or ""),
    evidence = {
      ("%s of %d samples are in the collector"):format(percent(share "gc"), all),
      ("Lua has up to %.1f MiB in all workers"):format(heap / 1048576),
    },
    next = { view.flame }, chart = "states", from = view.from, to = view.to,
  }
end

local function worst_abort(jit)
  local worst
  for _, abort in ipairs(jit and jit.aborts or {}) do
    if not worst or abort.count > worst.count then worst = abort end
  end
  return worst
end

--- Code that LuaJIT does not compile, where it matters.
function rules.interpreted(view)
  local share, all = shares_of(view:stacks(doctor_view.is_running))
  local abort = worst_abort(view.recording.jit)
  if all < SAMPLES_MIN or share "lua" < INTERPRETED or share "jit" > share "lua" then return nil end
  if not abort or abort.count < ABORTS_MIN then return nil end
  local site = doctor_sites.first((view:stacks(function(stack) return stack.state == "lua" end)))
  return {
    id = "interpreted", score = clamp(0.2 + 0.5 * share "lua"), site = site,
    title = ("LuaJIT does not compile %s:%d: %s"):format(abort.file, abort.line, abort.reason),
    evidence = {
      ("%s of the samples are in the interpreter, %s in compiled code"):format(percent(share "lua"), percent(share "jit")),
      ("it gave up there %d times: %s"):format(abort.count, abort.reason),
    },
    next = { view.flame }, chart = "states", from = view.from, to = view.to,
  }
end

return rules
