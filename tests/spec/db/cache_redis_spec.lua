-- needs: redis
local env = require "srv.core.env"

local getenv = env.getenv
env.getenv = function(name)
  if name == "REDIS_URL" then return getenv "TEST_REDIS_URL" end
  return getenv(name)
end

local behaviour = require "db.modules.cache_behaviour"
local cache = require "srv.db.cache"
local machines = require "srv.db.machines"

describe("srv.cache in Redis", function()
  behaviour(function() return cache end, { it = it, before_each = before_each, assert = assert })

  it("keeps numbers as their digits, and all under a prefix", function()
    cache:set("n", 5)
    assert.equal("5", machines.redis():get "srv:cache:n")
    assert.equal(6, machines.redis():incr "srv:cache:n")
    assert.equal(6, cache:get "n")
  end)

  it("takes what it cannot read for a miss", function()
    machines.redis():set("srv:cache:k", "\193broken")
    assert.is_nil(cache:get "k")
    assert.equal(1, cache:get_or_compute("k", "1m", function() return 1 end))
  end)

  it("gives the right to compute back", function()
    cache:delete "k"
    cache:get_or_compute("k", "1m", function()
      assert.equal(1, machines.redis():exists "srv:lease:k")
      return 1
    end)
    assert.equal(0, machines.redis():exists "srv:lease:k")
  end)

  it("waits for another machine that computes", function()
    cache:delete "k"
    machines.redis():set("srv:lease:k", "other", "PX", 60000)
    local srv = require "srv"
    local asked = srv.spawn(function()
      return cache:get_or_compute("k", "1m", function() return "ours" end)
    end)
    srv.sleep(0.05)
    cache:set("k", "theirs")
    assert.equal("theirs", asked:wait())
    machines.redis():del "srv:lease:k"
  end)
end)
