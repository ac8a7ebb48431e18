--- API, section 16: srv.test.clock.
local srv = require "srv"

describe("srv.test.clock", function()
  local clock

  before_each(function() clock = srv.test.clock() end)

  it("holds srv.now and srv.monotonic, and moves both by what it is advanced", function()
    local now, monotonic = srv.now(), srv.monotonic()
    assert.same({ now, monotonic }, { srv.now(), srv.monotonic() })
    clock:advance("5m"):advance(0.5)
    assert.near(300.5, srv.now() - now, 1e-6)
    assert.near(300.5, srv.monotonic() - monotonic, 1e-6)
  end)

  it("wakes sleepers in the order in which they are due, at the time they are due at", function()
    local began, woken = srv.monotonic(), {}
    local function sleeper(t)
      srv.spawn(function()
        srv.sleep(t)
        woken[#woken + 1] = math.floor((srv.monotonic() - began) * 1000 + 0.5)
      end)
    end
    for _, ms in ipairs { 70000, 5, 3600000, 1, 90, 5000 } do sleeper(ms / 1000) end
    clock:advance("999ms")
    assert.same({ 1, 5, 90 }, woken)
    clock:advance("2h")
    assert.same({ 1, 5, 90, 5000, 70000, 3600000 }, woken)
  end)

  it("fires what is started on the way", function()
    local began, woken = srv.monotonic(), {}
    srv.spawn(function()
      for i = 1, 3 do
        srv.sleep("10s")
        woken[i] = math.floor(srv.monotonic() - began + 0.5)
      end
    end)
    clock:advance("30s")
    assert.same({ 10, 20, 30 }, woken)
  end)

  it("lets work on threads be done before time goes on", function()
    local began, at = srv.monotonic(), nil
    srv.spawn(function()
      srv.sleep("1s")
      assert(srv.fs.read "docs_spec.lua")
      at = srv.monotonic() - began
    end)
    clock:advance("1h")
    assert.near(1, at, 0.002)
  end)

  it("ends time limits to the moment: srv.timeout, and a request's", function()
    local ended
    srv.spawn(function()
      local _, err = srv.timeout("30s", function() srv.sleep("1h") end)
      ended = err.code
    end)
    clock:advance("29.9s")
    assert.is_nil(ended)
    clock:advance("100ms")
    assert.equal("timeout", ended)

    local app = srv.app()
    app:get("/slow", { timeout = "20s" }, function() srv.sleep("1h") end)
    local t, answer = srv.test(app), nil
    srv.spawn(function() answer = t:get("/slow") end)
    clock:advance("19s")
    assert.is_nil(answer)
    clock:advance("1s")
    assert.equal(503, answer.status)
  end)

  it("runs the app's timers: every and cron", function()
    local app, beats, crons = srv.app(), 0, 0
    app:every("10s", function() beats = beats + 1 end)
    app:every("cron: 0 * * * *", function() crons = crons + 1 end)
    local t = srv.test(app)
    clock:advance("1h")
    assert.is_true(beats >= 330 and beats <= 360, "beats " .. beats)   -- each waits up to a tenth more
    assert.equal(1, crons)
    t:close()
    clock:advance("1h")
    assert.equal(1, crons)
  end)

  it("runs the timers of an app that is started again from the beginning", function()
    local app, runs = srv.app(), 0
    app:every("cron: 0 4 * * *", function() runs = runs + 1 end)
    for life = 1, 2 do
      local t = srv.test(app)
      clock:advance("48h")
      t:close()
      srv.test.restore()
      clock = srv.test.clock()
      assert.equal(2 * life, runs)
    end
  end)

  it("ends what is kept for a time: shared values, tokens", function()
    local shared = srv.shared "s16_clock"
    shared:set("k", 1, "10s")
    local key = ("k"):rep(32)
    local token = srv.crypto.jwt_sign({ sub = "a" }, { key = key, alg = "HS256", expires = "1m" })
    local function verified() return (srv.crypto.jwt_verify(token, { key = key, alg = "HS256" })) end
    clock:advance("9s")
    assert.equal(1, shared:get "k")
    clock:advance("2s")
    assert.is_nil(shared:get "k")
    assert.is_truthy(verified())
    clock:advance("2m")
    assert.is_nil(verified())
  end)

  it("gives rate limits their next window, and ends sessions", function()
    local app = srv.app()
    app:use(srv.rate_limit { limit = 2, window = "1m", name = "s16-clock" })
    app:use(srv.session { ttl = "1h" })
    app:get("/count", function(req)
      req.session.n = (req.session.n or 0) + 1
      return { n = req.session.n }
    end)
    local t = srv.test(app)
    t:get("/count"):expect { n = 1 }
    t:get("/count"):expect { n = 2 }
    t:get("/count"):expect(429)
    clock:advance "1m"
    t:get("/count"):expect { n = 3 }
    clock:advance "2h"
    t:get("/count"):expect { n = 1 }
  end)

  it("is undone with the test: real time passes again", function()
    clock:advance("1000h")
    srv.test.restore()
    local began = srv.monotonic()
    srv.sleep("5ms")
    assert.is_true(srv.monotonic() > began)
    assert.near(os.time(), srv.now(), 5)
    assert.is_truthy(select(2, pcall(clock.advance, clock, 1)):find "runs by itself again")
  end)

  it("sleeps as before when it was held and released", function()
    srv.test.restore()
    for _ = 1, 3 do
      srv.test.clock():advance("1s")
      srv.test.restore()
      srv.sleep "2ms"
    end
  end)
end)
