-- needs: redis
local env = require "srv.core.env"
local srv = require "srv"

local getenv = env.getenv
env.getenv = function(name)
  if name == "REDIS_URL" then return getenv "TEST_REDIS_URL" end
  return getenv(name)
end

describe("with REDIS_URL", function()
  it("srv.rate_limit counts in Redis", function()
    local app = srv.app()
    app:use(srv.rate_limit { limit = 2, window = "1m", name = "spec" })
    app:get("/", function() return "hello" end)
    local t = srv.test(app)
    t:get("/"):expect(200):expect("ratelimit", '"spec"; r=1; t=60')
    t:get("/"):expect(200):expect("ratelimit", '^"spec"; r=0; t=%d+$')
    t:get("/"):expect(429)
    local keys = assert(srv.redis(env.getenv "REDIS_URL"):keys "*spec:2:60:*")
    assert.equal(1, #keys)
    local left = srv.redis(env.getenv "REDIS_URL"):pttl(keys[1])
    assert.is_true(left > 50000 and left <= 60000)
  end)

  it("srv.session is kept in Redis", function()
    local app = srv.app()
    app:use(srv.session())
    app:get("/count", function(req)
      req.session.n = (req.session.n or 0) + 1
      return { n = req.session.n }
    end)
    app:post("/logout", function(req)
      req.session:destroy()
      return "out"
    end)
    local t, redis = srv.test(app), srv.redis(env.getenv "REDIS_URL")
    t:get("/count"):expect { n = 1 }
    t:get("/count"):expect { n = 2 }
    assert.equal(1, #redis:keys "*srv.session:*")
    t:post("/logout"):expect(200)
    assert.equal(0, #redis:keys "*srv.session:*")
  end)
end)
