local env = require "srv.core.env"
local srv = require "srv"

local function client_of(opts)
  local app = srv.app()
  app:use(srv.health(opts))
  return srv.test(app)
end

describe("srv.health", function()
  it("answers that the process is alive and ready", function()
    local t = client_of()
    t:get("/livez"):expect(200):expect { status = "ok" }:expect("cache-control", "no-store")
    t:get("/readyz"):expect(200):expect { status = "ok" }
  end)

  it("is ready when all checks pass, side by side", function()
    local started = srv.channel(2)
    local function check()
      started:send(true)
      return started:receive() and true
    end
    client_of { checks = { db = check, cache = check }, ready = "/r" }:get("/r"):expect(200)
      :expect { status = "ok", checks = { db = "ok", cache = "ok" } }
  end)

  it("is not ready when a check fails, however", function()
    for _, check in ipairs {
      function() return nil, srv.error.new(503, "the password is hunter2") end,
      function() return false end,
      function() error "broken" end,
      function() return srv.sleep(60) end,
    } do
      local t = client_of { checks = { db = check, other = function() return 1 end }, timeout = "20ms" }
      local answer = t:get("/readyz"):expect(503):expect { status = "failed", checks = { db = "failed", other = "ok" } }
      assert.is_nil(answer.body:find "hunter2")
      assert.equal("health check failed", answer.log[1].message)
      t:get("/livez"):expect(200)
    end
  end)

  it("is not ready while the process drains", function()
    local t = client_of { checks = { db = function() return true end } }
    srv.test.stub(env, "is_draining", function() return true end)
    t:get("/readyz"):expect(503):expect { status = "draining" }
    t:get("/livez"):expect(200)
  end)

  it("refuses what is no check", function()
    assert.error_matches(function() srv.health { checks = { db = true } } end, 'check "db" must be a function')
    assert.error_matches(function() srv.health { checks = { function() end } } end, "checks have names")
    assert.error_matches(function() srv.health { redy = "/x" } end, 'did you mean "ready"')
  end)
end)
