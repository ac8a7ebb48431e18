--- API, section 7: tasks, cancellation, and what tells them of each other.
local srv = require "srv"

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

local function value_after(t, ...)
  local values = { n = select("#", ...), ... }
  return function() srv.sleep(t) return unpack(values, 1, values.n) end
end

local function forever() srv.event():wait() end

describe("all and map", function()
  it("give the first value of each, functions or tables with arguments", function()
    local a, b, c = srv.all({ function(x, y) return x + y, "second" end, 1, 2 }, value_after(0.001, "b"), function() return nil end)
    assert.same({ 3, "b" }, { a, b })
    assert.is_nil(c)
    assert.equal(3, select("#", srv.all(function() end, function() end, function() end)))
    assert.equal(0, select("#", srv.all()))
  end)

  it("run at the same time", function()
    local here, all_here = 0, srv.event()
    local function meet()
      here = here + 1
      if here == 3 then all_here:set() end
      return all_here:wait "20s"
    end
    assert.same({ true, true, true }, { srv.all(meet, meet, meet) })
  end)

  it("cancel the rest when one raises, and raise it here", function()
    local cancelled
    local err = srv.error.new(409, "mine")
    local ok, raised = pcall(srv.all, function() srv.defer(function(e) cancelled = e.code end) forever() end,
      function() srv.sleep(0.001) error(err, 0) end)
    assert.is_false(ok)
    assert.equal("conflict", raised.code)
    assert.equal("cancelled", cancelled)
  end)

  it("cancel the rest when one returns nil, err, and give it back; nil alone is a value", function()
    local cancelled
    local err = srv.error.new(404)
    local value, got = srv.all(function() srv.defer(function(e) cancelled = e.code end) forever() end,
      function() srv.sleep(0.001) return nil, err end)
    assert.is_nil(value)
    assert.equal(err, got)
    assert.equal("cancelled", cancelled)
  end)

  it("map in order, at most `limit` at once, 8 by default", function()
    local function most(opts)
      local now, peak = 0, 0
      local items = {}
      for i = 1, 20 do items[i] = i end
      local results = srv.map(items, function(i)
        now = now + 1
        peak = math.max(peak, now)
        srv.sleep(0.001 * (21 - i) / 4)
        now = now - 1
        return i * 2
      end, opts)
      for i = 1, 20 do assert.equal(i * 2, results[i]) end
      return peak
    end
    assert.equal(8, most())
    assert.equal(3, most { limit = 3 })
    assert.same({}, srv.map({}, print))
    local value, err = srv.map({ 1, 2 }, function(i) if i == 2 then return nil, srv.error.new(404) end return i end)
    assert.is_nil(value)
    assert.equal("not_found", err.code)
  end)

  it("blame misuse on the caller's line", function()
    for _, fn in ipairs {
      function() srv.all(1) end, function() srv.all({}) end, function() srv.map(1, print) end, function() srv.map({}, 1) end,
      function() srv.map({}, print, { limt = 1 }) end, function() srv.map({}, print, { limit = 0 }) end, function() srv.race() end,
      function() srv.timeout("x", print) end, function() srv.timeout(1) end, function() srv.spawn() end, function() srv.sleep() end,
      function() srv.sleep "soon" end, function() srv.sleep(-1) end, function() srv.defer(1) end, function() srv.channel(-1) end,
      function() srv.semaphore(0) end, function() srv.semaphore() end, function() srv.channel():send(nil) end,
      function() srv.mutex():unlock() end, function() srv.semaphore(1):release() end, function() srv.mutex():with(1) end,
      function() srv.spawn(print):wait "x" end, function() srv.map({}, print, 5) end,
    } do assert.is_truthy(message_of(fn):find("s07_waiting_spec.lua:%d+:"), message_of(fn)) end
  end)
end)

describe("race and timeout", function()
  it("race gives all values of the first to end, and cancels the others", function()
    local cancelled
    local a, b = srv.race(function() srv.defer(function(e) cancelled = e.code end) forever() end, value_after(0.001, 1, 2))
    assert.same({ 1, 2 }, { a, b })
    assert.equal("cancelled", cancelled)
    assert.is_false(pcall(srv.race, forever, function() error "first" end))
    local value, err = srv.race(forever, function() return nil, srv.error.new(404) end)
    assert.is_nil(value)
    assert.equal("not_found", err.code)
  end)

  it("timeout gives f's values, or nil and a timeout", function()
    assert.same({ 3, "x" }, { srv.timeout("2s", function(a, b) return a + b, "x" end, 1, 2) })
    local cancelled
    local value, err = srv.timeout(0.01, function() srv.defer(function(e) cancelled = e.code end) forever() end)
    assert.is_nil(value)
    assert.equal("timeout", err.code)
    assert.equal(504, err.status)
    assert.equal("cancelled", cancelled)
    assert.is_false(pcall(srv.timeout, 1, function() error "mine" end))
  end)
end)

describe("a task", function()
  it("starts at our next wait, has a state, and wait gives its values", function()
    local started = false
    local task = srv.spawn(function(...) started = true srv.sleep(0.001) return ... end, 1, nil, 3)
    assert.is_false(started)
    assert.equal("running", task.state)
    assert.equal(3, select("#", task:wait()))
    assert.equal("done", task.state)
    assert.same({ 1, nil, 3 }, { task:wait() })
  end)

  it("wait raises what it raised, and says when it was cancelled or is late", function()
    local failing = srv.spawn(function() error(srv.error.new(409), 0) end)
    local ok, raised = pcall(failing.wait, failing)
    assert.is_false(ok)
    assert.equal("conflict", raised.code)
    assert.equal("failed", failing.state)
    local late = srv.spawn(forever)
    assert.equal("timeout", select(2, late:wait(0.005)).code)
    assert.equal("running", late.state)
    late:cancel()
    local value, err = late:wait()
    assert.is_nil(value)
    assert.equal("cancelled", err.code)
    assert.equal("cancelled", late.state)
  end)

  it("ends after its children: those still running are cancelled when it returns", function()
    local log = {}
    local task = srv.spawn(function()
      srv.spawn(function() srv.defer(function(e) log[#log + 1] = "child " .. e.code end) forever() end)
      srv.sleep(0.001)
      srv.defer(function(e) log[#log + 1] = "parent " .. tostring(e) end)
      return "done"
    end)
    assert.equal("done", task:wait())
    assert.same({ "child cancelled", "parent nil" }, log)
  end)

  it("runs defers last first, with nil after success and the error after a failure; an error in one does not stop the next", function()
    local log = {}
    srv.spawn(function()
      srv.defer(function(e) log[#log + 1] = "1 " .. tostring(e) end)
      srv.defer(function() error "in a defer" end)
      srv.defer(function(e) srv.sleep(0.001) log[#log + 1] = "3 " .. tostring(e) end)
    end):wait()
    assert.same({ "3 nil", "1 nil" }, log)
    local seen
    pcall(function() srv.spawn(function() srv.defer(function(e) seen = e end) error(srv.error.new(409), 0) end):wait() end)
    assert.equal("conflict", seen.code)
  end)

  it("cannot wait for itself, which is blamed on its line", function()
    local me
    me = srv.spawn(function() return message_of(function() local v = me:wait() return v end) end)
    local message = me:wait(1)
    assert.is_truthy(message:find("s07_waiting_spec.lua:%d+: .*itself"), message)
  end)

  it("of a request: its defers run, and children end when the answer is out", function()
    local app, log = srv.app(), {}
    app:get("/", function()
      srv.defer(function(e) log[#log + 1] = "defer " .. tostring(e) end)
      srv.spawn(function() srv.defer(function(e) log[#log + 1] = "child " .. e.code end) forever() end)
      srv.sleep(0)
      return "x"
    end)
    local t = srv.test(app)
    t:get("/"):expect "x"
    t:close()
    srv.sleep(0.01)
    table.sort(log)
    assert.same({ "child cancelled", "defer nil" }, log)
  end)
end)

describe("cancellation", function()
  it("never resumes: pcall has nothing to catch, a loop around it does not live on", function()
    local after, rounds = false, 0
    local task = srv.spawn(function()
      while true do
        rounds = rounds + 1
        pcall(srv.sleep, 10)
        after = true
      end
    end)
    srv.sleep(0.001)
    task:cancel()
    task:wait()
    srv.sleep(0.005)
    assert.is_false(after)
    assert.equal(1, rounds)
  end)

  it("stops a running task at its next call that can wait, ready or not", function()
    local log, ready = {}, srv.event()
    ready:set()
    local me
    me = srv.spawn(function()
      srv.sleep(0)
      me:cancel()
      log[#log + 1] = "still running"
      ready:wait()
      log[#log + 1] = "never"
    end)
    me:wait()
    assert.same({ "still running" }, log)
  end)

  it("goes in order: children, the wait called off, what is held released, defers last first, the waiter", function()
    local log, mutex, queue = {}, srv.mutex(), srv.mutex()
    queue:lock()
    local task = srv.spawn(function()
      mutex:lock()
      srv.defer(function(e) log[#log + 1] = "defer 1 " .. e.code .. " " .. tostring(mutex:lock(0) ~= nil) end)
      srv.defer(function() log[#log + 1] = "defer 2" end)
      srv.spawn(function() srv.defer(function() log[#log + 1] = "child" end) forever() end)
      queue:lock()
      log[#log + 1] = "never"
    end)
    srv.sleep(0.001)
    task:cancel()
    local _, err = task:wait()
    log[#log + 1] = "waiter " .. err.code
    assert.same({ "child", "defer 2", "defer 1 cancelled true", "waiter cancelled" }, log)
    queue:unlock()
    assert.is_true(queue:lock(0))
    queue:unlock()
    assert.is_true(mutex:lock(0.1))
    mutex:unlock()
  end)

  it("tells defers why", function()
    local seen
    local task = srv.spawn(function() srv.defer(function(e) seen = e end) forever() end)
    srv.sleep(0.001)
    task:cancel()
    task:wait()
    assert.equal("cancelled", seen.code)
    assert.is_string(seen.message)
  end)

  it("by the deadline rolls a transaction back, gives permits up, and answers 503", function()
    local app, db, permits = srv.app(), srv.db("sqlite::memory:", { migrations = false }), srv.semaphore(1)
    assert(db:exec "create table if not exists c7 (a integer)")
    app:get("/", { timeout = 0.05 }, function()
      permits:acquire()
      db:tx(function(tx)
        assert(tx:exec "insert into c7 values (1)")
        forever()
      end)
    end)
    srv.test(app):get("/"):expect(503)
    assert.is_true(permits:acquire(1))
    assert.equal(0, db:value "select count(*) from c7")
    db:close()
  end)
end)

describe("channels, events, semaphores, mutexes", function()
  it("a channel hands over in order, and says closed or timeout", function()
    local ch = srv.channel()
    local _, late = ch:receive(0.005)
    assert.equal("timeout", late.code)
    assert.equal("timeout", select(2, ch:send(1, 0.005)).code)
    local sender = srv.spawn(function() for i = 1, 3 do ch:send(i) end ch:close() end)
    local got = {}
    for v in ch:each() do got[#got + 1] = v end
    assert.same({ 1, 2, 3 }, got)
    assert.equal("closed", select(2, ch:receive()).code)
    assert.equal("closed", select(2, ch:send(1)).code)
    sender:wait()
    local buffered = srv.channel(2)
    assert.is_true(buffered:send(false))
    assert.is_true(buffered:send "b")
    assert.equal("timeout", select(2, buffered:send("c", 0)).code)
    buffered:close()
    assert.is_false(buffered:receive())
    assert.equal("b", buffered:receive())
    assert.equal("closed", select(2, buffered:receive()).code)
  end)

  it("an event is set, cleared and waited for", function()
    local event = srv.event()
    assert.is_false(event:is_set())
    assert.equal("timeout", select(2, event:wait(0.005)).code)
    srv.spawn(function() event:set() end)
    assert.is_true(event:wait(1))
    assert.is_true(event:is_set())
    assert.is_true(event:wait())
    event:clear()
    assert.is_false(event:is_set())
  end)

  it("semaphores and mutexes are first come, first served, and `with` gives fn's values", function()
    local semaphore, log = srv.semaphore(1), {}
    assert.same({ 1, 2 }, { semaphore:with(function(a) return a, 2 end, 1) })
    assert.is_false(pcall(semaphore.with, semaphore, function() error "x" end))
    semaphore:acquire()
    assert.equal("timeout", select(2, semaphore:acquire(0.005)).code)
    local tasks = {}
    for i = 1, 3 do tasks[i] = srv.spawn(function() semaphore:with(function() log[#log + 1] = i srv.sleep(0) end) end) end
    srv.sleep(0.001)
    semaphore:release()
    for _, task in ipairs(tasks) do task:wait() end
    assert.same({ 1, 2, 3 }, log)
    local mutex = srv.mutex()
    assert.same({ 1, nil, 3 }, { mutex:with(function() return 1, nil, 3 end) })
    assert.is_true(mutex:lock())
    mutex:unlock()
  end)
end)

describe("what is ready", function()
  it("does not yield", function()
    local others = 0
    local ready, ch, semaphore, mutex = srv.event(), srv.channel(1), srv.semaphore(1), srv.mutex()
    ready:set()
    local done = srv.spawn(function() return 1 end)
    done:wait()
    srv.spawn(function() others = others + 1 end)
    ready:wait()
    ch:send(1)
    ch:receive()
    semaphore:acquire()
    semaphore:release()
    mutex:lock()
    mutex:unlock()
    done:wait()
    assert.equal(0, others)
    srv.sleep(0)
    assert.equal(1, others)
  end)
end)

describe("anything may wait anywhere", function()
  it("in metamethods, pcall, generators, iterators", function()
    local object = setmetatable({}, {
      __index = function(_, k) srv.sleep(0.001) return k end, __call = function(_, v) srv.sleep(0.001) return v end,
      __add = function() srv.sleep(0.001) return 5 end, __eq = function() srv.sleep(0.001) return true end,
      __concat = function() srv.sleep(0.001) return "cat" end, __lt = function() srv.sleep(0.001) return true end,
    })
    assert.equal("key", object.key)
    assert.equal(7, object(7))
    assert.equal(5, object + 1)
    assert.equal("cat", object .. "x")
    assert.is_true(object < setmetatable({}, getmetatable(object)))
    local ok, value = pcall(function() srv.sleep(0.001) return "in pcall" end)
    assert.same({ true, "in pcall" }, { ok, value })
    assert.same({ false, "handled" }, { xpcall(function() srv.sleep(0.001) error "x" end, function() return "handled" end) })
    local wrapped = coroutine.wrap(function() for i = 1, 2 do srv.sleep(0.001) coroutine.yield(i) end end)
    assert.same({ 1, 2 }, { wrapped(), wrapped() })
    local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) srv.sleep(0.001) return b * 2 end)
    assert.same({ true, 2 }, { coroutine.resume(co, 1) })
    assert.same({ true, 10 }, { coroutine.resume(co, 5) })
    assert.equal("dead", coroutine.status(co))
  end)

  it("but in table.sort and string.gsub, where the error names the line and the way round", function()
    local message = message_of(function() table.sort({ 3, 2, 1 }, function(a, b) srv.sleep(0.001) return a < b end) end)
    assert.is_truthy(message:find("s07_waiting_spec.lua:%d+"), message)
    assert.is_truthy(message:find("sort"), message)
    message = message_of(function() return (("a"):gsub("a", function() srv.sleep(0.001) end)) end)
    assert.is_truthy(message:find("s07_waiting_spec.lua:%d+"), message)
    assert.is_truthy(message:find("gsub"), message)
    message = message_of(function() return ("%s"):format(setmetatable({}, { __tostring = function() srv.sleep(0.001) return "x" end })) end)
    assert.is_truthy(message:find("s07_waiting_spec.lua:%d+"), message)
  end)
end)
