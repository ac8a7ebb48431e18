local errors = require "srv.base.errors"
local sync = require "srv.async.sync"
local task = require "srv.async.task"

local sleep, spawn = task.sleep, task.spawn

describe("srv.channel", function()
  it("lets sender and receiver meet when it has no room", function()
    local ch, sent = sync.channel(), false
    local sender = spawn(function() ch:send "v" sent = true end)
    sleep "1ms"
    assert.is_false(sent)
    assert.equal("v", ch:receive())
    sender:wait()
    assert.is_true(sent)
  end)

  it("keeps as many values as it has room for", function()
    local ch, sent = sync.channel(2), 0
    spawn(function() for i = 1, 4 do ch:send(i) sent = i end end)
    sleep "1ms"
    assert.equal(2, sent)
    assert.same({ 1, 2, 3, 4 }, { (ch:receive()), (ch:receive()), (ch:receive()), (ch:receive()) })
  end)

  it("serves receivers in the order they came", function()
    local ch, got = sync.channel(), {}
    local receivers = {}
    for i = 1, 3 do receivers[i] = spawn(function() got[i] = ch:receive() end) end
    sleep(0)
    for _, v in ipairs { "a", "b", "c" } do assert.is_true(ch:send(v)) end
    for _, receiver in ipairs(receivers) do receiver:wait() end
    assert.same({ "a", "b", "c" }, got)
  end)

  it("ends its loops when it is closed and empty", function()
    local ch, seen = sync.channel(3), {}
    for i = 1, 3 do ch:send(i) end
    ch:close()
    for v in ch:each() do seen[#seen + 1] = v end
    assert.same({ 1, 2, 3 }, seen)
    local v, err = ch:receive()
    assert.is_nil(v)
    assert.is_true(errors.is(err, "closed"))
    v, err = ch:send(4)
    assert.is_nil(v)
    assert.is_true(errors.is(err, "closed"))
  end)

  it("wakes all who wait when it is closed", function()
    local full, empty = sync.channel(), sync.channel()
    local sender = spawn(full.send, full, 1)
    local receiver = spawn(empty.receive, empty)
    sleep(0)
    full:close()
    empty:close()
    for _, waiting in ipairs { sender, receiver } do
      local v, err = waiting:wait()
      assert.is_nil(v)
      assert.is_true(errors.is(err, "closed"))
    end
    assert.is_nil((full:receive()))
  end)

  it("gives a timeout, and the value stays with its sender", function()
    local ch = sync.channel()
    local v, err = ch:receive "1ms"
    assert.is_nil(v)
    assert.is_true(errors.is(err, "timeout"))
    v, err = ch:send("lost?", "1ms")
    assert.is_nil(v)
    assert.is_true(errors.is(err, "timeout"))
    v, err = ch:receive "1ms"
    assert.is_true(errors.is(err, "timeout"))
    assert.is_nil(v)
  end)

  it("loses no value with a receiver that was cancelled after it was woken", function()
    local ch, got = sync.channel(), {}
    local first = spawn(function() got[#got + 1] = ch:receive() end)
    local second = spawn(function() got[#got + 1] = ch:receive() end)
    sleep(0)
    ch:send "v"
    first:cancel()
    second:wait "1s"
    assert.same({ "v" }, got)
    first = spawn(ch.receive, ch)
    sleep(0)
    ch:send "kept"
    first:cancel()
    sleep(0)
    assert.equal("kept", ch:receive())
  end)

  it("keeps what is sent alive while the sender waits", function()
    local ch = sync.channel()
    spawn(function() ch:send({ "fresh" }) end)
    sleep(0)
    collectgarbage()
    collectgarbage()
    assert.same({ "fresh" }, ch:receive())
  end)

  it("refuses nil and wrong sizes", function()
    local ch = sync.channel()
    local ok, why = pcall(function() ch:send(nil) end)
    assert.is_false(ok)
    assert.matches("^tests/spec/async/sync_spec.lua:%d+: channel:send: nil cannot be sent", why)
    assert.has_error(function() sync.channel(-1) end)
    assert.has_error(function() sync.channel(1.5) end)
  end)
end)

describe("srv.event", function()
  it("wakes all who wait, and later ones do not wait", function()
    local event, woken = sync.event(), 0
    for _ = 1, 3 do spawn(function() assert(event:wait()) woken = woken + 1 end) end
    sleep(0)
    assert.equal(0, woken)
    assert.is_false(event:is_set())
    event:set()
    sleep(0)
    assert.equal(3, woken)
    assert.is_true(event:wait())
    event:clear()
    local v, err = event:wait "1ms"
    assert.is_nil(v)
    assert.is_true(errors.is(err, "timeout"))
  end)
end)

describe("srv.semaphore", function()
  it("lets n in and serves the rest in order", function()
    local semaphore, order = sync.semaphore(2), {}
    local handles = {}
    for i = 1, 5 do
      handles[i] = spawn(function()
        semaphore:acquire()
        order[#order + 1] = i
        sleep(0)
        semaphore:release()
      end)
    end
    for _, handle in ipairs(handles) do handle:wait() end
    assert.same({ 1, 2, 3, 4, 5 }, order)
  end)

  it("gives nil and a timeout", function()
    local semaphore = sync.semaphore(1)
    semaphore:acquire()
    local v, err = semaphore:acquire "1ms"
    assert.is_nil(v)
    assert.is_true(errors.is(err, "timeout"))
    semaphore:release()
    assert.is_true(semaphore:acquire "1ms")
    semaphore:release()
  end)

  it("takes back the permit of a task that was cancelled, or just ended", function()
    local semaphore = sync.semaphore(1)
    local holder = spawn(function() semaphore:acquire() sleep "1h" end)
    sleep(0)
    local waiter = spawn(function() return semaphore:acquire() end)
    sleep(0)
    holder:cancel()
    assert.is_true(waiter:wait())
    assert.is_true(semaphore:acquire "1s")
    semaphore:release()
  end)

  it("passes a permit on when its taker was cancelled before it ran", function()
    local semaphore = sync.semaphore(1)
    semaphore:acquire()
    local first = spawn(function() semaphore:acquire() sleep "1h" end)
    local second = spawn(function() return semaphore:acquire() end)
    sleep(0)
    semaphore:release()
    first:cancel()
    assert.is_true(second:wait "1s")
  end)

  it("may be released by another task", function()
    local semaphore = sync.semaphore(1)
    semaphore:acquire()
    spawn(function() semaphore:release() end):wait()
    assert.is_true(semaphore:acquire "1s")
    semaphore:release()
    assert.has_error(function() semaphore:release() end)
  end)

  it("gives a function's values, and the permit back whatever happens", function()
    local semaphore = sync.semaphore(1)
    assert.same({ 1, 2 }, { semaphore:with(function(...) sleep(0) return ... end, 1, 2) })
    local ok, e = pcall(semaphore.with, semaphore, error, "inside")
    assert.is_false(ok)
    assert.equal("inside", e)
    assert.is_true(semaphore:acquire "1ms")
    semaphore:release()
  end)

  it("needs at least one", function() assert.has_error(function() sync.semaphore(0) end) end)

  it("may be collected while a task holds a permit", function()
    spawn(function()
      sync.semaphore(1):acquire()
      collectgarbage()
      collectgarbage()
      sleep(0)
    end):wait()
  end)
end)

describe("srv.mutex", function()
  it("lets one in at a time", function()
    local mutex, inside, most = sync.mutex(), 0, 0
    task.map({ 1, 2, 3, 4 }, function()
      mutex:with(function()
        inside = inside + 1
        most = math.max(most, inside)
        sleep(0)
        inside = inside - 1
      end)
    end)
    assert.equal(1, most)
  end)

  it("refuses a second lock by its owner, and an unlock by another", function()
    local mutex = sync.mutex()
    mutex:lock()
    local ok, why = pcall(function() mutex:lock() end)
    assert.is_false(ok)
    assert.matches("this task has locked the mutex already", why)
    ok = pcall(function() spawn(function() mutex:unlock() end):wait() end)
    assert.is_false(ok)
    mutex:unlock()
    assert.has_error(function() mutex:unlock() end)
  end)
end)
