--- Rules about waiting: for others, for a thread of the pool, for a client that reads slowly; and about
--- what was not answered as it should.
local doctor_sites = require "srv.cli.doctor_sites"
local doctor_view = require "srv.cli.doctor_view"

local rules = {}

local WAIT_MS = 20           -- a request that waits for longer is felt: below, nobody would look for it
local WAIT_SHARE = 0.6       -- of a request's time
local IDLE_BUSY = 0.7        -- a worker that is busier than this has other sorrows
local REQUESTS_MIN = 20      -- fewer have no mean

local QUEUE_MEAN = 1         -- jobs that wait for a thread of their lane, over the whole time: fewer are chance
local QUEUE_MS = 20          -- a job waits there for longer, in the mean: a queue that moves on quickly is no trouble

local BACKLOG_SHARE = 0.5    -- of the accept queue in use: the next burst overflows it

local SEND_TASKS = 5         -- answers that wait for their client to read, in the mean
local SEND_SHARE = 0.5       -- of all that waits

local FAILED_SHARE = 0.01    -- of the answers: a status page would turn yellow
local FAILED_MIN = 5

--- What is no I/O of the app's: a parent that waits for its children waits for what they wait for.
local NO_IO = { children = true, channel = true, event = true, send = true }

local NAMES = {
  sleep = "srv.sleep", fetch = "other servers", postgres = "PostgreSQL", sqlite = "SQLite", redis = "Redis", file = "files",
  lock = "a lock", body = "the rest of the request", exec = "programs", dns = "names (DNS)", job = "a thread of the pool",
  socket = "a socket", shared = "the shared dictionary",
}

local ADVICE = {
  sleep = "The app sleeps by itself: srv.sleep in a handler holds the client for as long.",
  fetch = "Ask the other servers at the same time (srv.all), keep answers that may be kept, and set a timeout.",
  postgres = "Look at the statement with EXPLAIN; ask for several at once with srv.all; raise the pool's size if they wait "
    .. "for a connection.",
  sqlite = "Look at the statement with EXPLAIN QUERY PLAN: an index is most often what is missing. One writes at a time.",
  redis = "Send several commands together (pipelines share one round trip), and keep values near.",
  file = "Read what does not change once, at the start.",
  lock = "Hold a lock for less, or make it finer: one key for each thing that is protected.",
  body = "Clients send their bodies slowly: a proxy that buffers in front of the app takes that from it.",
  exec = "Programs take their time to start: keep one running, or do the work in Lua.",
  job = "It is worked on by a thread of the pool, and as many at once as there are processors: ask for fewer of them.",
  dns = "Names take long: is the resolver near? Connections that are kept need none.",
}

local function percent(share) return ("%.0f %%"):format(share * 100) end

local function clamp(number) return math.max(0, math.min(1, number)) end

--- How many tasks wait in the mean, for each kind; and their stacks.
local function waits_of(view)
  local counts, stacks = {}, {}
  for _, stack in ipairs(view:stacks(doctor_view.is_waiting)) do
    local kind = stack.wait or "other"
    counts[kind] = (counts[kind] or 0) + stack.count * view.recording.wait_ms / 1000 / view.seconds
    stacks[kind] = stacks[kind] or {}
    table.insert(stacks[kind], stack)
  end
  return counts, stacks
end

local function largest(counts, without)
  local best
  for kind, count in pairs(counts) do
    if not without[kind] and (not best or count > counts[best]) then best = kind end
  end
  return best
end

local function mean_ms(view)
  local sum = 0
  for _, line in ipairs(view.lines) do
    for _, worker in ipairs(line.workers) do sum = sum + worker.mean * worker.requests end
  end
  return view.requests > 0 and sum / view.requests or 0
end

--- Requests wait for something else while the workers have time.
function rules.io(view)
  local busy = view:mean(function(line) return doctor_view.of_workers(line, "busy") end) / view.workers
  local counts, stacks = waits_of(view)
  local kind = largest(counts, NO_IO)
  if not kind or view.requests < REQUESTS_MIN or busy > IDLE_BUSY then return nil end
  local each, whole = counts[kind] * view.seconds * 1000 / view.requests, mean_ms(view)
  if each < WAIT_MS or each < WAIT_SHARE * whole then return nil end
  local site, name = doctor_sites.first(stacks[kind]), NAMES[kind] or "something"
  return {
    id = "io", score = clamp(0.3 + 0.5 * math.min(1, each / 500)), site = site, wait = kind,
    title = ("Requests wait for %s: %.0f ms each, at %s"):format(name, each, doctor_sites.text(site)),
    evidence = {
      ("%.0f of a request's %.0f ms are a wait for %s"):format(each, math.max(whole, each), name),
      ("workers are busy for %s of the time"):format(percent(busy)),
      ("%.1f tasks wait for it in the mean; %s of them at %s"):format(counts[kind], percent(site.share), doctor_sites.text(site)),
    },
    advice = ADVICE[kind] or "The workers have time: what is waited for is the bottleneck.",
    next = { view.flame, "the page of srv flame shows where requests wait, under \"waiting\"" },
    chart = "waits", from = view.from, to = view.to,
  }
end

--- Clients read more slowly than the app writes.
function rules.slow_clients(view)
  local counts, stacks = waits_of(view)
  local sending, all = counts.send or 0, 0
  for _, count in pairs(counts) do all = all + count end
  if sending < SEND_TASKS or sending < SEND_SHARE * all then return nil end
  local site = doctor_sites.first(stacks.send)
  return {
    id = "slow_clients", score = clamp(0.3 + 0.3 * sending / 100), site = site,
    title = ("Clients read slowly: %.0f answers wait for them at %s"):format(sending, doctor_sites.text(site)),
    evidence = { ("%.1f of %.1f tasks that wait do so for a client to read"):format(sending, all) },
    next = { "docs/guide/reverse-proxy.md" }, chart = "waits", from = view.from, to = view.to,
  }
end

local function lane_of(line, name)
  for _, lane in ipairs(line.lanes) do
    if lane.name == name then return lane end
  end
  return { queued = 0, refused = 0, done = 0 }
end

--- How long a job waits for a thread: what waits in the mean, by what is done in a second (Little's law).
local function queue_ms(view, mean, done) return mean * view.seconds * 1000 / math.max(1, done) end

local LANES = {
  cpu = "Password hashes and large digests take a processor each: more of them at once only wait longer. Limit how many "
    .. "requests may ask for one.",
  file = "Reads and writes come faster than the disk takes them: keep in memory what is read again and again.",
  sqlite = "Statements take too long, or there are too many for each request: EXPLAIN QUERY PLAN shows those that scan.",
}

local function crowded_lane(view)
  local found
  local first, last = view.lines[1], view.lines[#view.lines]
  for _, lane in ipairs(last and last.lanes or {}) do
    local mean = view:mean(function(line) return lane_of(line, lane.name).queued end)
    local before = lane_of(first, lane.name)
    local refused, wait = lane.refused - before.refused, queue_ms(view, mean, lane.done - before.done)
    if (mean >= QUEUE_MEAN and wait >= QUEUE_MS or refused > 0) and (not found or mean > found.mean) then
      local most = view:most(function(line) return lane_of(line, lane.name).queued end)
      found = { name = lane.name, mean = mean, refused = refused, most = most, ms = wait }
    end
  end
  return found
end

--- Work waits for a thread of the pool.
function rules.pool(view)
  local lane = crowded_lane(view)
  if not lane then return nil end
  return {
    id = "pool", score = clamp(0.35 + 0.3 * math.min(1, lane.mean / 50) + (lane.refused > 0 and 0.3 or 0)),
    title = ("Jobs wait for a thread of the lane `%s`: %.0f in the mean, up to %.0f"):format(lane.name, lane.mean,
      lane.most),
    evidence = {
      ("a job waits for %.0f ms there, in the mean"):format(lane.ms),
      ("%d jobs were refused because the queue was full"):format(lane.refused),
    },
    advice = LANES[lane.name],
    next = { "docs/guide/configuration.md" }, chart = "queues", from = view.from, to = view.to,
  }
end

--- The kernel holds connections that no worker takes.
function rules.backlog(view)
  local share, line = view:most(function(at)
    local most = 0
    for _, worker in ipairs(at.workers) do
      if worker.backlog_max > 0 then most = math.max(most, worker.backlog / worker.backlog_max) end
    end
    return most
  end)
  if not line or share < BACKLOG_SHARE then return nil end
  local dropped = 0
  for _, at in ipairs(view.lines) do dropped = dropped + at.overflows end
  return {
    id = "backlog", score = clamp(0.4 + 0.4 * share + (dropped > 0 and 0.2 or 0)),
    title = ("Connections wait to be accepted: the queue is %s full"):format(percent(share)),
    evidence = { ("%d connections were dropped by this machine because a queue was full"):format(dropped) },
    next = { view.flame }, chart = "queues", from = line.t - 0.5, to = line.t,
  }
end

--- Answers of 500 and above, and what the load never got an answer to.
function rules.errors(view)
  local failed, all = view.failed, view.requests
  local unanswered = view.recording.result and view.recording.result.errors or 0
  if failed + unanswered < FAILED_MIN or failed + unanswered < FAILED_SHARE * (all + unanswered) then return nil end
  local share = (failed + unanswered) / math.max(1, all + unanswered)
  local _, line = view:most(function(at) return doctor_view.of_workers(at, "failed") end)
  return {
    id = "errors", score = clamp(0.5 + 0.5 * share),
    title = ("%s of the requests fail"):format(percent(share)),
    evidence = {
      ("%d of %d answers have a status of 500 or above"):format(failed, all),
      ("%d requests had no answer: connections refused, reset or timed out"):format(unanswered),
    },
    next = { 'the log of the server: "request failed"' },
    chart = "requests", from = line and line.t - 0.5, to = line and line.t,
  }
end

return rules
