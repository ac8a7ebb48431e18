-- needs: redis
--- API, sections 9 and 10: srv.redis, and what srv.cache and srv.bus mean when REDIS_URL links machines.
local srv = require "srv"

local URL = os.getenv "TEST_REDIS_URL"
srv.test.env { REDIS_URL = URL }

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

describe("srv.redis", function()
  local r = srv.redis()   -- what REDIS_URL names

  before_each(function() assert.equal("OK", r:flushall()) end)

  it("has each command as a method: a reply, nil, or nil, err", function()
    assert.equal("OK", r:set("k", "v", "EX", 60))
    assert.same({ "v", 1, 60 }, { r:get "k", r:incr "n", r:ttl "k" })
    assert.equal(2, select("#", r:get "none", nil) == 2 and 2)
    local v, err = r:get "none"
    assert.is_nil(v)
    assert.is_nil(err)
    v, err = r:lpush("k", "x")
    assert.is_nil(v)
    assert.equal("redis", err.code)
    assert.equal(500, err.status)
  end)

  it("pipelines what is asked for at once", function()
    local jobs = {}
    for i = 1, 50 do jobs[i] = { r.incr, r, "n" } end
    local seen = { srv.all(unpack(jobs)) }
    table.sort(seen)
    for i = 1, 50 do assert.equal(i, seen[i]) end
  end)

  it("multi runs together or not at all; script:call(keys, args)", function()
    assert.same({ "OK", 2 }, r:multi(function(m)
      m:set("a", 1)
      m:incr "a"
    end))
    local v, err = r:multi(function(m)
      m:set("b", 1)
      return nil, srv.error.new(409)
    end)
    assert.is_nil(v)
    assert.equal("conflict", err.code)
    assert.is_nil((r:get "b"))
    assert.is_false(pcall(r.multi, r, function() error "mine" end))
    assert.equal("k-x", r:script "return KEYS[1] .. '-' .. ARGV[1]":call({ "k" }, { "x" }))
  end)

  it("subscribe is a loop of messages with their channels, and ends with its task", function()
    local got, ready = {}, srv.event()
    local task = srv.spawn(function()
      local sub = r:subscribe("s09.a", "s09.b")
      ready:set()
      for message, channel in sub do
        got[#got + 1] = channel .. "=" .. message
        if #got == 2 then sub:close() end
      end
      return "over"
    end)
    ready:wait(5)
    r:publish("s09.a", "1")
    r:publish("s09.b", "2")
    assert.equal("over", task:wait(5))
    assert.same({ "s09.a=1", "s09.b=2" }, got)
    local sub = srv.spawn(function() return r:subscribe "s09.c" end):wait()
    local text, err = sub:receive "1s"
    assert.is_nil(text)
    assert.equal("closed", err.code)
  end)

  it("receive says timeout, as channels and srv.bus do", function()
    local sub = r:subscribe "s09"
    local text, err = sub:receive "10ms"
    assert.is_nil(text)
    assert.equal("timeout", err.code)
    sub:close()
    assert.equal("closed", select(2, sub:receive "10ms").code)
  end)

  it("that is away is unavailable at once, 503; wrong URLs and values are misuse", function()
    local away = srv.redis "redis://127.0.0.1:1"
    local v, err = away:get "k"
    assert.is_nil(v)
    assert.same({ "unavailable", 503 }, { err.code, err.status })
    for _, fn in ipairs { function() srv.redis "http://x" end, function() srv.redis(5) end, function() r:set("k", {}) end,
      function() r:set("k", nil) end, function() r:multi() end, function() r:script() end, function() r:subscribe() end,
      function() r:subscribe(5, {}) end } do
      assert.is_truthy(message_of(fn):find "s09_redis_spec.lua:%d+:", message_of(fn))
    end
  end)
end)

describe("srv.cache on Redis", function()
  local cache

  setup(function()
    srv.test.env { REDIS_URL = URL }
    cache = srv.cache
  end)

  it("is another object with the methods of srv.shared", function()
    for _, name in ipairs { "get", "set", "add", "delete", "incr", "cas", "wait", "get_or_compute" } do assert.is_function(cache[name], name) end
    assert.is_true(cache:set("k", { a = { 1, "x\0", false } }, "1m"))
    assert.same({ a = { 1, "x\0", false } }, cache:get "k")
    assert.is_false(cache:add("k", 1))
    assert.is_true(cache:cas("k", { a = { 1, "x\0", false } }, 7))
    assert.equal(8, cache:incr "k")
    assert.is_true(cache:delete "k")
    assert.is_false(cache:delete "k")
    assert.is_nil(cache:get "k")
    local calls = 0
    local function compute()
      calls = calls + 1
      srv.sleep(0.01)
      return "v"
    end
    local jobs = {}
    for i = 1, 10 do jobs[i] = { cache.get_or_compute, cache, "c", "1m", compute } end
    for _, v in ipairs { srv.all(unpack(jobs)) } do assert.equal("v", v) end
    assert.equal(1, calls)
    assert.equal("timeout", select(2, cache:wait("k", "10ms")).code)
  end)

  it("takes what srv.shared takes, and refuses what it refuses, in the same words", function()
    local d = srv.shared("s09-words", { bytes = "64KiB" })
    local function stripped(fn, o) return (message_of(function() fn(o) end):gsub("^[^ ]* ", "")) end
    for i, fn in ipairs {
      function(o) o:get(nil) end, function(o) o:set("k", nil) end, function(o) o:set("k", print) end, function(o) o:set("k", 1, 0) end,
      function(o) o:set("k", 1, "soon") end, function(o) o:incr("k", "x") end, function(o) o:get_or_compute("k", 1, 5) end,
      function(o) o:get(("k"):rep(4097)) end,
      function(o)
        o:set("text", "text")
        o:incr "text"
      end,
    } do
      assert.is_truthy(message_of(function() fn(cache) end):find "s09_redis_spec.lua:%d+:", i .. message_of(function() fn(cache) end))
      assert.equal(stripped(fn, d), stripped(fn, cache))
    end
    local ok, err = cache:set("k", ("x"):rep(70 * 2 ^ 20))
    assert.is_nil(ok)
    assert.equal("too_large", err.code)
  end)
end)
