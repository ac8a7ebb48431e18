--- API, section 10: dictionaries and messages that all workers share, in one worker.
local srv = require "srv"

local made = 0

local function dictionary(bytes)
  made = made + 1
  return srv.shared("s10-" .. made, { bytes = bytes or "1MiB" })
end

local function message_of(fn, ...)
  local ok, raised = pcall(fn, ...)
  return ok and "no error" or tostring(raised)
end

local function this_line() return debug.getinfo(2, "l").currentline end

describe("srv.shared", function()
  local d

  before_each(function() d = dictionary() end)

  it("keeps strings of any bytes, numbers, booleans and tables of these", function()
    for _, v in ipairs { "", "a\0\255", 5, -0.5, 2 ^ 60, true, { 1, "two", { three = { false } } }, {} } do
      assert.is_true(d:set("k", v))
      assert.same(v, d:get "k")
    end
    assert.is_true(d:set("k", false))
    assert.is_false(d:get "k")
    assert.is_nil(d:get "other")
  end)

  it("a table that comes back is a copy, and an empty JSON array is still one", function()
    local t = { list = srv.json.decode "[]", null = srv.null }
    d:set("k", t)
    t.list[1] = "changed"
    assert.equal("[]", srv.json.encode(d:get "k".list))
    assert.equal(srv.null, d:get "k".null)
  end)

  it("the same name is the same dictionary, and other bytes are misuse", function()
    d:set("k", "v")
    assert.equal("v", srv.shared("s10-" .. made):get "k")
    assert.equal("v", srv.shared("s10-" .. made, { bytes = "1MiB" }):get "k")
    assert.matches("has 1 MiB already, and is asked for with 2 MiB",
      message_of(srv.shared, "s10-" .. made, { bytes = "2MiB" }))
  end)

  it("misuse names the line that did it", function()
    local line = this_line() + 1
    assert.matches("s10_shared_spec.lua:" .. line .. ": shared:set: a function cannot be shared", message_of(function() d:set("k", print) end))
    assert.matches("contains itself", message_of(function() local t = {} t.t = t d:set("k", t) end))
    assert.matches("nil cannot be kept", message_of(d.set, d, "k", nil))
    assert.matches("a key is a string", message_of(d.get, d, nil))
    assert.matches("at most 4096 bytes", message_of(d.get, d, ("k"):rep(4097)))
    assert.matches("time to live", message_of(d.set, d, "k", 1, "soon"))
    assert.matches("time to live", message_of(d.set, d, "k", 1, 0))
    assert.matches("time to live", message_of(d.set, d, "k", 1, -1))
    assert.matches("did you mean \"bytes\"", message_of(srv.shared, "x", { byte = 1 }))
    assert.matches("64 KiB to 1 TiB", message_of(srv.shared, "tiny", { bytes = 5 }))
  end)

  it("a time to live ends", function()
    local clock = srv.test.clock()
    d:set("k", "v", "20ms")
    d:set("for good", "v", "20ms")
    d:set("for good", "v")
    clock:advance "19ms"
    assert.equal("v", d:get "k")
    clock:advance "1ms"
    assert.is_nil(d:get "k")
    assert.equal("v", d:get "for good")
  end)

  it("add, delete, incr and cas say what they did", function()
    assert.is_true(d:add("k", 1))
    assert.is_false(d:add("k", 2))
    assert.equal(2, d:incr "k")
    assert.equal(12.5, d:incr("k", 10.5))
    assert.equal(1, d:incr "new")
    assert.is_false(d:cas("k", 1, 2))
    assert.is_true(d:cas("k", 12.5, { a = 1, b = 2 }))
    assert.is_true(d:cas("k", { b = 2, a = 1 }, "x"))
    assert.is_true(d:cas("k", "x", nil))
    assert.is_true(d:cas("k", nil, "y"))
    assert.is_true(d:delete "k")
    assert.is_false(d:delete "k")
    d:set("s", "text")
    assert.matches("no number", message_of(d.incr, d, "s"))
  end)

  it("a counter lives as long as its first increment said", function()
    local clock = srv.test.clock()
    d:incr("n", 1, "30ms")
    clock:advance "29ms"
    assert.equal(2, d:incr("n", 1, "1h"))
    clock:advance "1ms"
    assert.equal(1, d:incr("n", 1, "1h"))
  end)

  it("what is used stays when room is needed, what is too large is an error", function()
    local small = dictionary "64KiB"
    small:set("kept", "v")
    for i = 1, 1000 do
      assert.is_true(small:set("k" .. i, ("x"):rep(500)))
      if i % 50 == 0 then
        srv.sleep "101ms"
        assert.equal("v", small:get "kept")
      end
      if i == 200 then break end
    end
    assert.is_nil(small:get "k1")
    assert.is_truthy(small:get "k200")
    local ok, err = small:set("k", ("x"):rep(65536))
    assert.is_nil(ok)
    assert.equal("too_large", err.code)
    assert.equal("v", small:get "kept")
  end)

  it("what would be too large is not written first", function()
    local small, t = srv.shared("s10-dag", { bytes = "64KiB" }), {}
    for _ = 1, 50 do t = { t, t } end -- small itself, 2^50 tables when it is written
    local ok, err = small:set("k", t)
    assert.is_nil(ok)
    assert.equal("too_large", err.code)
    assert.equal("too_large", select(2, small:cas("k", nil, t)).code)
  end)

  it("wait gives the value after the next change", function()
    local waiting = srv.spawn(function() return d:wait("k", "5s") end)
    srv.sleep(0)
    d:set("other", 1)
    d:set("k", { a = 1 })
    assert.same({ a = 1 }, waiting:wait())
    waiting = srv.spawn(function() return d:wait("k", "5s") end)
    srv.sleep(0)
    d:delete "k"
    assert.is_nil(waiting:wait())
    local v, err = d:wait("k", "5ms")
    assert.is_nil(v)
    assert.equal("timeout", err.code)
  end)

  it("wait with the value seen returns at once if it is another by now", function()
    d:set("k", 2)
    assert.equal(2, d:wait("k", "5s", 1))
    assert.equal(2, d:wait("k", "5s", nil))
    local _, err = d:wait("k", "5ms", 2)
    assert.equal("timeout", err.code)
  end)
end)

describe("get_or_compute", function()
  local d

  before_each(function() d = dictionary() end)

  it("computes once, and the others wait for it", function()
    local calls = 0
    local function compute(key)
      calls = calls + 1
      srv.sleep "5ms"
      return { key = key, calls = calls }
    end
    local jobs = {}
    for i = 1, 20 do jobs[i] = { d.get_or_compute, d, "k", "1m", compute } end
    for _, got in ipairs { srv.all(unpack(jobs)) } do assert.same({ key = "k", calls = 1 }, got) end
    assert.equal(1, calls)
    assert.same({ key = "k", calls = 1 }, d:get "k")
  end)

  it("nil, err is not kept, and an error is raised where it was computed", function()
    local v, err = d:get_or_compute("k", "1m", function() return nil, srv.error.new(503, "down") end)
    assert.is_nil(v)
    assert.equal("down", err.message)
    assert.matches("boom", message_of(d.get_or_compute, d, "k", "1m", function() error "boom" end))
    assert.equal(5, d:get_or_compute("k", "1m", function() return 5 end))
  end)

  it("false is a value", function()
    local calls = 0
    for _ = 1, 3 do assert.is_false(d:get_or_compute("k", "1m", function() calls = calls + 1 return false end)) end
    assert.equal(1, calls)
  end)

  it("when it fails one who waits computes, one after the other", function()
    local at_once, most, calls = 0, 0, 0
    local function fail()
      calls, at_once = calls + 1, at_once + 1
      most = math.max(most, at_once)
      srv.sleep "1ms"
      at_once = at_once - 1
      error("failed " .. calls)
    end
    local tasks = {}
    for i = 1, 5 do tasks[i] = srv.spawn(message_of, d.get_or_compute, d, "k", "1m", fail) end
    for i = 1, 5 do assert.matches("failed", tasks[i]:wait()) end
    assert.equal(5, calls)
    assert.equal(1, most)
  end)

  it("when it is cancelled one who waits computes", function()
    local hanging = srv.spawn(d.get_or_compute, d, "k", "1m", function() srv.sleep "1h" end)
    srv.sleep(0)
    local waiting = srv.spawn(d.get_or_compute, d, "k", "1m", function() return "mine" end)
    local later = srv.spawn(d.get_or_compute, d, "k", "1m", function() return "not mine" end)
    srv.sleep(0)
    assert.equal("running", waiting.state)
    hanging:cancel()
    assert.equal("mine", waiting:wait())
    assert.equal("mine", later:wait())
  end)

  it("who gives up waiting is passed over", function()
    local hanging = srv.spawn(d.get_or_compute, d, "k", "1m", function() srv.sleep "1h" end)
    srv.sleep(0)
    local v, err = srv.timeout("5ms", d.get_or_compute, d, "k", "1m", function() return "first" end)
    assert.is_nil(v)
    assert.equal("timeout", err.code)
    local waiting = srv.spawn(d.get_or_compute, d, "k", "1m", function() return "second" end)
    srv.sleep(0)
    hanging:cancel()
    assert.equal("second", waiting:wait())
  end)

  it("a set by somebody else ends the wait", function()
    local hanging = srv.spawn(d.get_or_compute, d, "k", "1m", function() srv.sleep "1h" end)
    srv.sleep(0)
    local waiting = srv.spawn(d.get_or_compute, d, "k", "1m", error)
    srv.sleep(0)
    d:set("k", "theirs")
    assert.equal("theirs", waiting:wait())
    hanging:cancel()
  end)

  it("asking for the key that one computes is misuse, also from a child", function()
    assert.matches("wait for itself", message_of(d.get_or_compute, d, "k", 1, function()
      return d:get_or_compute("k", 1, error)
    end))
    assert.matches("wait for itself", message_of(d.get_or_compute, d, "k", 1, function()
      return (srv.all { d.get_or_compute, d, "k", 1, error })
    end))
    assert.equal("b", d:get_or_compute("a", 1, function() return d:get_or_compute("b", 1, function() return "b" end) end))
  end)

  it("a child that asks for the key that its parent computes, which does not wait for it, has the value then", function()
    local child
    assert.equal("v", d:get_or_compute("k", 1, function()
      child = srv.spawn(d.get_or_compute, d, "k", 1, error)
      srv.sleep "1ms"
      assert.equal("running", child.state)
      return "v"
    end))
    assert.equal("v", child:wait())
  end)

  it("what is too large to be kept is returned all the same", function()
    local large = ("x"):rep(2 ^ 20)
    assert.equal(large, d:get_or_compute("k", 1, function() return large end))
    assert.is_nil(d:get "k")
    assert.equal(1, d:get_or_compute("k", 1, function() return 1 end))
  end)

  it("what cannot be kept is misuse, and the next one may compute", function()
    assert.matches("a function cannot be shared", message_of(d.get_or_compute, d, "k", 1, function() return print end))
    assert.matches("a function was expected", message_of(d.get_or_compute, d, "k", 1))
    assert.equal(1, d:get_or_compute("k", 1, function() return 1 end))
  end)
end)

describe("srv.cache", function()
  it("is a dictionary that is there", function()
    srv.cache:set("s10", "v", "1m")
    assert.equal("v", srv.cache:get "s10")
    srv.cache:delete "s10"
  end)
end)

describe("srv.bus", function()
  it("brings what was published after the subscription, in order, with its topic", function()
    srv.bus.publish("s10.a", "before")
    local sub = srv.bus.subscribe "s10.*"
    for i = 1, 10 do assert.is_true(srv.bus.publish("s10." .. i % 2, { i = i })) end
    srv.bus.publish("elsewhere", 1)
    local got = 0
    for v, topic in sub:each() do
      got = got + 1
      assert.same({ i = got }, v)
      assert.equal("s10." .. got % 2, topic)
      if got == 10 then break end
    end
    assert.equal(0, sub.dropped)
    sub:close()
  end)

  it("waits for a message, or for a time", function()
    local sub = srv.bus.subscribe "s10"
    srv.spawn(function() srv.sleep "2ms" srv.bus.publish("s10", false) end)
    assert.is_false((sub:receive()))
    local v, err = sub:receive "2ms"
    assert.is_nil(v)
    assert.equal("timeout", err.code)
  end)

  it("a reader that is too slow loses what comes when its queue is full, and can see how much", function()
    local sub = srv.bus.subscribe("s10", { limit = 3 })
    for i = 1, 5 do srv.bus.publish("s10", i) end
    srv.sleep "1ms"
    assert.equal(2, sub.dropped)
    for i = 1, 3 do assert.equal(i, (sub:receive())) end
    srv.bus.publish("s10", 6)
    assert.equal(6, (sub:receive()))
  end)

  it("or is closed, which the loop raises after what had come", function()
    local sub, got = srv.bus.subscribe("s10", { limit = 2, overflow = "close" }), {}
    for i = 1, 5 do srv.bus.publish("s10", i) end
    srv.sleep "1ms"
    local ok, err = pcall(function()
      for v in sub:each() do got[#got + 1] = v end
    end)
    assert.same({ 1, 2 }, got)
    assert.is_false(ok)
    assert.equal("closed", err.code)
    assert.matches("fell behind", err.message)
  end)

  it("close ends the loop, also one that waits", function()
    local sub = srv.bus.subscribe "s10"
    local loop = srv.spawn(function()
      for _ in sub:each() do error "nothing was sent" end
      return "over"
    end)
    srv.sleep(0)
    sub:close()
    assert.equal("over", loop:wait())
    local v, err = sub:receive()
    assert.is_nil(v)
    assert.equal("closed", err.code)
  end)

  it("a subscription ends with its task", function()
    local sub = srv.spawn(function()
      local own = srv.bus.subscribe "s10"
      srv.bus.publish("s10", "not read, and not kept either")
      srv.sleep(0.01)
      return own
    end):wait()
    srv.bus.publish("s10", 1)
    local v, err = sub:receive "1s"
    assert.is_nil(v)
    assert.equal("closed", err.code)
  end)

  it("two tasks cannot read one subscription", function()
    local sub = srv.bus.subscribe "s10"
    local first = srv.spawn(function() return (sub:receive()) end)
    srv.sleep(0)
    assert.matches("another task reads it", message_of(sub.receive, sub))
    srv.bus.publish("s10", 1)
    assert.equal(1, first:wait())
  end)

  it("misuse names what is wrong", function()
    assert.matches("holds no", message_of(srv.bus.publish, "a.*", 1))
    assert.matches("nil cannot be sent", message_of(srv.bus.publish, "a"))
    assert.matches("a function cannot be shared", message_of(srv.bus.publish, "a", print))
    assert.matches("a topic is a string", message_of(srv.bus.subscribe, 5))
    assert.matches("1 to 512 bytes", message_of(srv.bus.subscribe, ""))
    assert.matches("drop.* or .*close", message_of(srv.bus.subscribe, "a", { overflow = "wait" }))
    assert.matches("whole number", message_of(srv.bus.subscribe, "a", { limit = 0 }))
    local ok, err = srv.bus.publish("a", ("x"):rep(2 ^ 20 + 1))
    assert.is_nil(ok)
    assert.equal("too_large", err.code)
  end)
end)
