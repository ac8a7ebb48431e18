--- What srv.cache does wherever its values are: run by cache_spec.lua and cache_redis_spec.lua.
local srv = require "srv"

---@param open fun(): srv.Shared
---@param spec table  busted's functions, which it gives to the files of specs alone
return function(open, spec)
  local it, before_each, assert = spec.it, spec.before_each, spec.assert
  local cache

  before_each(function()
    cache = open()
    for _, key in ipairs { "k", "n", "t" } do cache:delete(key) end
  end)

  it("keeps values of each kind", function()
    local values = { "text", "", "any\0bytes\255", "5", 5, -0.5, 2 ^ 53, true, false, { a = { 1, 2 }, b = "x" }, {} }
    for _, v in ipairs(values) do
      assert.is_true(cache:set("k", v))
      assert.same(v, cache:get "k")
    end
    assert.is_nil(cache:get "nothing")
  end)

  it("adds only what is new, and deletes", function()
    assert.is_true(cache:add("k", 1))
    assert.is_false(cache:add("k", 2))
    assert.equal(1, cache:get "k")
    assert.is_true(cache:delete "k")
    assert.is_false(cache:delete "k")
    assert.is_nil(cache:get "k")
  end)

  it("replaces only what is there, and its time to live", function()
    assert.is_false(cache:replace("k", 1))
    assert.is_nil(cache:get "k")
    cache:set("k", 1, 0.01)
    if cache:replace("k", 2, "1m") then
      srv.sleep(0.02)
      assert.equal(2, cache:get "k")
    end
  end)

  it("forgets after the time to live", function()
    cache:set("t", "x", 1)
    assert.equal("x", cache:get "t")
    for _ = 1, 1000 do
      if cache:get "t" == nil then break end
      srv.sleep(0.01)
    end
    assert.is_nil(cache:get "t")
  end)

  it("counts", function()
    assert.equal(1, cache:incr "n")
    assert.equal(11, cache:incr("n", 10))
    assert.equal(10.5, cache:incr("n", -0.5))
    assert.equal(10.5, cache:get "n")
    cache:set("k", "text")
    local ok, err = pcall(cache.incr, cache, "k")
    assert.is_false(ok)
    assert.matches("is no number", tostring(err))
  end)

  it("counts each of many at once", function()
    srv.map({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, function() return cache:incr "n" end)
    assert.equal(10, cache:get "n")
  end)

  it("swaps what is as expected", function()
    assert.is_true(cache:cas("k", nil, { 1 }))
    assert.is_false(cache:cas("k", nil, { 2 }))
    assert.is_false(cache:cas("k", { 2 }, { 3 }))
    assert.is_true(cache:cas("k", { 1 }, 4))
    assert.is_true(cache:cas("k", 4, 5))
    assert.equal(5, cache:get "k")
    assert.is_true(cache:cas("k", 5, nil))
    assert.is_nil(cache:get "k")
  end)

  it("waits for a change", function()
    cache:set("k", 1)
    local waiting = srv.spawn(function() return cache:wait("k", "10s", 1) end)
    assert.is_nil((srv.timeout(0.03, function() return waiting:wait() end)))
    waiting = srv.spawn(function() return cache:wait("k", "10s", 1) end)
    cache:set("k", 2)
    assert.equal(2, waiting:wait())
    assert.equal(2, cache:wait("k", "10s", 1))
    local v, err = cache:wait("k", 0.02)
    assert.is_nil(v)
    assert.equal("timeout", err.code)
  end)

  it("computes once for all who ask at the same time", function()
    local computed = 0
    local function slow(key)
      computed = computed + 1
      srv.sleep(0.05)
      return { key = key, n = computed }
    end
    local got = srv.map({ 1, 2, 3, 4, 5, 6, 7, 8 }, function() return cache:get_or_compute("k", "1m", slow) end)
    for i = 1, 8 do assert.same({ key = "k", n = 1 }, got[i]) end
    assert.equal(1, computed)
    assert.same({ key = "k", n = 1 }, cache:get_or_compute("k", "1m", slow))
  end)

  it("does not keep nil, err or an error: the next one computes", function()
    local v, err = cache:get_or_compute("k", "1m", function() return nil, "no" end)
    assert.is_nil(v)
    assert.equal("no", err)
    local ok, raised = pcall(cache.get_or_compute, cache, "k", "1m", function() error "broken" end)
    assert.is_false(ok)
    assert.matches("broken", tostring(raised))
    assert.equal(7, cache:get_or_compute("k", "1m", function() return 7 end))
  end)

  it("lets another one compute when the first was cancelled", function()
    local first = srv.spawn(function()
      return cache:get_or_compute("k", "1m", function() srv.sleep(60) end)
    end)
    srv.sleep(0.05)
    local second = srv.spawn(function() return cache:get_or_compute("k", "1m", function() return "second" end) end)
    srv.sleep(0.02)
    first:cancel()
    assert.equal("second", second:wait())
  end)

  it("blames the app's line for misuse", function()
    local cases = {
      { function() cache:set({}, 1) end, "a key is a string" },
      { function() cache:set("k", nil) end, "nil cannot be kept" },
      { function() cache:set("k", print) end, "function" },
      { function() cache:set("k", 1, "soon") end, "time to live" },
      { function() cache:set(("x"):rep(5000), 1) end, "a key has at most" },
      { function() cache:incr("k", "1") end, "a number" },
      { function() cache:incr("k", 0 / 0) end, "what is added is a number" },
      { function() cache:get_or_compute("k", "1m") end, "a function was expected" },
    }
    for _, case in ipairs(cases) do
      local ok, err = pcall(case[1])
      assert.is_false(ok)
      assert.matches(case[2], tostring(err), 1, true)
      assert.matches("cache_behaviour.lua:%d+: ", tostring(err))
    end
  end)
end
