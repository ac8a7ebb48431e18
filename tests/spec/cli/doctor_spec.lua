--- The rules of `srv doctor`, on recordings that are made up: each finds what it is for, and nothing else.
local doctor_findings = require "srv.cli.doctor_findings"
local doctor_recording = require "srv.cli.doctor_recording"
local doctor_series = require "srv.cli.doctor_series"
local doctor_sites = require "srv.cli.doctor_sites"

local ABOUT = { flame = "srv flame app" }
local FROM, TO, END = 0.5, 10.5, 12.5 -- seconds: the load, and all of it

-- Recordings ----------------------------------------------------------------------------------------------

local function worker(changes)
  local all = {
    cpu = 0.3, busy = 0.4, stalled = 0, turns = 100, delay = 0.2, delay_max = 2, requests = 100, failed = 0, mean = 2, slowest = 9,
    connections = 10, tasks = 2, lua = 4 * 1024 * 1024, backlog = 0, backlog_max = 4096,
  }
  for name, value in pairs(changes or {}) do all[name] = value end
  return all
end

--- Lines each 100 ms; CHANGES(t, is_loaded) -> changes of each worker, changes of the line.
local function recording_of(changes, is_attached)
  local recording = doctor_recording.new()
  recording:take { vitals = true, ms = 100, look_ms = 10, wait_ms = 10, long_ms = 10, workers = 2 }
  for i = 1, END * 10 do
    local t = i / 10
    local is_loaded = is_attached or t > FROM and t <= TO
    local of_worker, of_line = (changes or function() end)(t, is_loaded)
    local quiet = not is_loaded and { requests = 0, cpu = 0, busy = 0, connections = 0, tasks = 0, mean = 0 } or {}
    for name, value in pairs(of_worker or {}) do quiet[name] = value end
    local line = {
      t = t, ms = 100, cpu = 0.6, rss = 2e7, fds = 30, overflows = 0, p50 = 1, p99 = 5,
      lanes = { { name = "file", queued = 0, running = 0, done = 0, refused = 0 } }, workers = { worker(quiet), worker(quiet) },
    }
    for name, value in pairs(of_line or {}) do line[name] = value end
    recording:take(line)
  end
  if not is_attached then recording.load = { from = FROM, to = TO } end
  return recording
end

local FRAMES = {
  [0] = { name = "GET /a", kind = "task" },
  [1] = { file = "srv/(runner of GET /a)", line = 8, defined = 7, kind = "srv" },
  [2] = { file = "app.lua", line = 17, defined = 16, kind = "app" },
  [3] = { file = "cache.lua", name = "find", line = 21, defined = 18, kind = "app" },
  [4] = { name = "lj_cf_string_rep", file = "lib_string.c", kind = "c" },
  [5] = { name = "lj_cf_os_execute", file = "lib_os.c", kind = "c" },
  [6] = { name = "lfetch_start", file = "lfetch.c", kind = "c" },
  [7] = { name = "lj_gc_step", kind = "gc" },
}

local function with_frames(recording)
  for id, frame in pairs(FRAMES) do
    local line = { frame = id }
    for name, value in pairs(frame) do line[name] = value end
    recording:take(line)
  end
  return recording
end

--- COUNT samples of STACK at T, in a turn of LONG ms.
local function seen(recording, t, state, stack, count, turn)
  local line = { seen = 0, t = t, samples = count, waits = 0 }
  for name, value in pairs(turn or {}) do line[name] = value end
  recording:take(line)
  recording:take { worker = 0, state = state, stack = stack, count = count, wait = turn and turn.wait }
end

local function findings_of(recording) return (doctor_findings.of(recording, ABOUT)) end

local function ids_of(recording)
  local ids = {}
  for i, finding in ipairs(findings_of(recording)) do ids[i] = finding.id end
  return ids
end

--- The only finding of RECORDING.
local function only(recording, id)
  assert.same({ id }, ids_of(recording))
  local finding = findings_of(recording)[1]
  assert.is_true(finding.score > 0 and finding.score <= 1)
  assert.is_true(#finding.title > 0 and #finding.evidence > 0 and #finding.advice > 0 and #finding.next > 0)
  return finding
end

local function nothing_in(recording) assert.same({}, ids_of(recording)) end

-- Rules ---------------------------------------------------------------------------------------------------

describe("the doctor", function()
  it("finds nothing in a healthy app", function() nothing_in(recording_of()) end)

  it("finds nothing where nobody asks anything", function()
    nothing_in(recording_of(function() return { requests = 0, cpu = 0, busy = 0 } end))
    nothing_in(doctor_recording.new())
  end)

  it("finds nothing in a healthy app that uses all it can", function()
    nothing_in(recording_of(function(_, loaded) return loaded and { cpu = 0.95, busy = 0.97, requests = 3000, delay = 1 } end))
  end)

  describe("on a blocked loop", function()
    local function blocked(turns, turn)
      local recording = with_frames(recording_of())
      for i = 1, turns do seen(recording, 1 + i * 9 / turns, "c", { 0, 1, 2, 3, 4 }, 5, turn) end
      return recording
    end

    it("names file, line, function and who called it", function()
      local finding = only(blocked(150, { long = 50, ran = 48, stalled = 0 }), "blocked")
      assert.equal("cache.lua", finding.site.file)
      assert.equal(21, finding.site.line)
      assert.equal("The loop is blocked for up to 50 ms by cache.lua:21 (find)", finding.title)
      assert.equal("string.rep", finding.site.calls)
      assert.matches("called by app.lua:17", finding.evidence[3], 1, true)
    end)

    it("takes one long turn for worth telling", function()
      assert.equal("cache.lua", only(blocked(1, { long = 212, ran = 210, stalled = 0 }), "blocked").site.file)
    end)

    it("lets a short one pass that came once", function() nothing_in(blocked(2, { long = 60, ran = 60, stalled = 0 })) end)

    it("does not blame the app for time in which others had the processor", function()
      nothing_in(blocked(150, { long = 50, ran = 3, stalled = 47 }))
      nothing_in(blocked(3, { long = 400, ran = 8, stalled = 392 }))
    end)

    it("knows what waits in the place of a call that does not", function()
      local recording = with_frames(recording_of())
      seen(recording, 3, "c", { 0, 1, 2, 5 }, 20, { long = 200, ran = 1, stalled = 0 })
      local finding = only(recording, "blocked")
      assert.equal("os.execute", finding.site.calls)
      assert.matches("srv.exec", finding.advice, 1, true)
    end)

    it("is graver than all that follows from it", function()
      local recording = with_frames(recording_of(function(_, loaded)
        return loaded and { cpu = 0.98, busy = 0.99, requests = 5, delay = 40, mean = 90 }
      end))
      for i = 1, 180 do seen(recording, 1 + i / 20, "lua", { 0, 1, 2, 3 }, 5, { long = 48, ran = 48, stalled = 0 }) end
      assert.same({ "blocked", "saturated" }, ids_of(recording))
    end)
  end)

  it("says where the time goes when requests use the processors up", function()
    local recording = with_frames(recording_of(function(_, loaded) return loaded and { cpu = 0.98, busy = 0.99, requests = 10 } end))
    for i = 1, 90 do seen(recording, 1 + i / 10, "jit", { 0, 1, 2, 3 }, 1) end
    assert.equal("cache.lua:21 (find)", doctor_sites.text(only(recording, "saturated").site))
  end)

  it("finds a worker that does the work of all", function()
    local recording = recording_of()
    for _, line in ipairs(recording.lines) do
      line.workers[1].cpu, line.workers[2].cpu, line.workers[2].busy = 0.9, 0.05, 0.1
      line.workers[1].connections, line.workers[2].connections = 30, 30
    end
    assert.matches("Worker 0", only(recording, "hot_worker").title)
  end)

  it("does not take a worker for idle that has to wait for a processor", function()
    local recording = recording_of()
    for _, line in ipairs(recording.lines) do
      line.workers[1].cpu, line.workers[2].cpu, line.workers[2].busy, line.workers[2].stalled = 0.9, 0.05, 0.9, 0.85
      line.workers[1].connections, line.workers[2].connections = 30, 30
    end
    nothing_in(recording)
  end)

  it("finds a collector that takes too much, and who makes the garbage", function()
    local recording = with_frames(recording_of())
    for i = 1, 90 do seen(recording, 1 + i / 10, i % 3 == 0 and "gc" or "jit", { 0, 1, 2, 3, i % 3 == 0 and 7 or 3 }, 2) end
    assert.equal("cache.lua", only(recording, "garbage").site.file)
  end)

  it("finds code that LuaJIT does not compile, if it matters", function()
    local recording = with_frames(recording_of())
    for i = 1, 90 do seen(recording, 1 + i / 10, "lua", { 0, 1, 2, 3 }, 2) end
    nothing_in(recording)
    recording.jit = { aborts = { { file = "cache.lua", line = 22, count = 60, reason = "the trace is too long" } }, flushes = 0 }
    assert.matches("cache.lua:22: the trace is too long", only(recording, "interpreted").title, 1, true)
  end)

  describe("on waiting", function()
    local function waiting(kind, tasks)
      local recording = with_frames(recording_of(function(_, loaded) return loaded and { mean = 120, requests = 10 } end))
      for i = 1, 950 do seen(recording, 1 + i / 100, "wait", { 0, 1, 2, 3, 6 }, tasks, { wait = kind }) end
      return recording
    end

    it("says what requests wait for, and where", function()
      local finding = only(waiting("fetch", 20), "io")
      assert.equal("fetch", finding.wait)
      assert.equal("cache.lua", finding.site.file)
    end)

    it("lets waits pass that nobody feels", function() nothing_in(waiting("fetch", 1)) end)

    it("tells clients that read slowly from I/O", function() only(waiting("send", 20), "slow_clients") end)
  end)

  describe("on a lane of the pool", function()
    local function crowded(done_a_second)
      return recording_of(function(t, loaded)
        local lane = { name = "cpu", queued = 12, running = 2, done = t * done_a_second, refused = 0 }
        return nil, loaded and { lanes = { lane } }
      end)
    end

    it("finds jobs that wait for a thread", function() assert.matches("`cpu`", only(crowded(100), "pool").title) end)

    it("lets a queue pass that moves on quickly", function() nothing_in(crowded(10000)) end)
  end)

  it("finds an accept queue that is nearly full", function()
    only(recording_of(function(t) return t > 5 and t < 5.3 and { backlog = 3500 } end), "backlog")
  end)

  it("finds answers that fail, and requests without one", function()
    only(recording_of(function(_, loaded) return loaded and { failed = 5 } end), "errors")
    local recording = recording_of()
    recording.result = { errors = 5000, answered = 0, ["4xx"] = 0 }
    only(recording, "errors")
  end)

  describe("on what grows", function()
    local function ramp(t) return math.min(math.max(t - FROM, 0), TO - FROM) end

    it("finds tasks that stay, and what they wait for", function()
      local recording = with_frames(recording_of(function(t) return { tasks = ramp(t) * 50 } end))
      seen(recording, TO + 1, "wait", { 0, 1, 2, 3 }, 100, { wait = "event" })
      assert.matches("waiting for event at cache.lua:21", only(recording, "tasks").title, 1, true)
    end)

    it("lets tasks pass that end with the load", function()
      nothing_in(recording_of(function(t, loaded) return { tasks = loaded and ramp(t) * 50 or 0 } end))
    end)

    it("finds descriptors that stay, but no pool that has filled up", function()
      only(recording_of(function(t) return nil, { fds = 30 + ramp(t) * 20 } end), "descriptors")
      nothing_in(recording_of(function(t) return nil, { fds = t > 1 and 70 or 30 } end))
    end)

    it("finds connections that stay", function()
      only(recording_of(function(t) return { connections = t > 1 and 60 or 0 }, { fds = t > 1 and 150 or 30 } end), "connections")
    end)

    it("finds memory that no cycle of the collector gives back", function()
      only(recording_of(function(t) return { lua = 4e6 + ramp(t) * 2e6 + t * 10 % 7 * 1e5 } end), "memory")
    end)

    it("lets a heap pass that goes up and down", function()
      nothing_in(recording_of(function(t) return { lua = 4e6 + t * 10 % 23 * 1e6 } end))
    end)

    it("goes by the trend where nobody knows of a load", function()
      local recording = recording_of(function(t) return { tasks = t * 50 } end, true)
      only(recording, "tasks")
    end)
  end)

  it("notes what its numbers are worth", function()
    local recording = recording_of(function(_, loaded) return loaded and { stalled = 0.6, requests = 0 } or {} end)
    recording:take { done = true, seconds = 12, dropped = 7, silent = 1 }
    recording.load_status = 3
    local _, notes = doctor_findings.of(recording, ABOUT)
    assert.equal(5, #notes)
    assert.matches("60 %", notes[1], 1, true)
  end)

  it("notes that a load was refused", function()
    local function notes_after(refused)
      local recording = recording_of()
      recording.result = { errors = 0, answered = 1000, ["4xx"] = refused }
      return select(2, doctor_findings.of(recording, ABOUT))
    end
    assert.same({}, notes_after(20))
    assert.matches("90 % of the answers had a status of 400 to 499", notes_after(900)[1], 1, true)
  end)

  it("puts everything into columns of one length for the charts", function()
    local recording = with_frames(recording_of())
    seen(recording, 3, "lua", { 0, 1, 2 }, 3)
    seen(recording, 3, "c", { 0, 1, 2 }, 1)
    seen(recording, 4, "wait", { 0, 1, 2 }, 40, { wait = "redis" })
    local series = doctor_series.of(recording)
    local count = #series.t
    assert.equal(END * 10, count)
    for _, column in ipairs { series.delay, series.rss, series.cpu[2], series.states.gc, series.waits.redis, series.queues.file } do
      assert.equal(count, #column)
    end
    assert.equal(75, series.states.lua[30])
    assert.equal(4, series.waits.redis[40])
  end)

  it("says what the server said when it would not be looked at", function()
    local is_last, problem = doctor_recording.new():take { error = "busy" }
    assert.is_true(is_last)
    assert.equal("busy", problem)
  end)
end)
