local env = require "srv.core.env"
local srv = require "srv"

local function app_of(opts)
  local app = srv.app()
  app:use(srv.session(opts))
  app:get("/count", function(req)
    req.session.n = (req.session.n or 0) + 1
    return { n = req.session.n }
  end)
  app:get("/read", function(req) return { n = req.session.n or 0 } end)
  app:get("/untouched", function() return "hello" end)
  app:post("/login", function(req)
    req.session:rotate()
    req.session.user = "ann"
    return "in"
  end)
  app:post("/logout", function(req)
    req.session:destroy()
    return "out"
  end)
  app:post("/again", function(req)
    req.session:destroy()
    req.session.fresh = true
    return "again"
  end)
  app:get("/who", function(req) return req.session.user or "nobody" end)
  app:post("/say", function(req)
    req.session:flash("note", "saved")
    return "ok"
  end)
  app:get("/hear", function(req) return { note = req.session:flash "note" or srv.null } end)
  app:get("/broken", function(req)
    req.session.n = 100
    error "broken"
  end)
  app:get("/stream", function(req, res)
    req.session.n = 7
    res:write "a"
    return res
  end)
  return app
end

local function cookie_in(answer)
  local line = answer.headers["set-cookie"]
  return line and line:match "^sid=([^;]*)", line
end

for _, store in ipairs { "cache", "cookie" } do
  describe("srv.session in the " .. store, function()
    local t
    before_each(function() t = srv.test(app_of { store = store }) end)

    it("brings back what was kept", function()
      local value, line = cookie_in(t:get("/count"):expect { n = 1 })
      assert.is_truthy(value)
      assert.matches("; Max%-Age=1209600; Path=/; Expires=[^;]+; HttpOnly; SameSite=Lax$", line)
      t:get("/count"):expect { n = 2 }
      t:get("/read"):expect { n = 2 }
    end)

    it("makes no cookie for who keeps nothing, and none when nothing has changed", function()
      t:get("/untouched"):expect(200):expect("set-cookie", false)
      t:get("/read"):expect { n = 0 }:expect("set-cookie", false)
      t:get("/count"):expect(200)
      t:get("/read"):expect { n = 1 }:expect("set-cookie", false)
    end)

    it("is saved with an error and before a stream, too", function()
      t:get("/broken"):expect(500)
      t:get("/read"):expect { n = 100 }
      t:get("/stream"):expect "a"
      t:get("/read"):expect { n = 7 }
    end)

    it("another value at login", function()
      local before = cookie_in(t:get("/count"))
      local after = cookie_in(t:post("/login"):expect(200))
      assert.not_equal(before, after)
      t:get("/who"):expect "ann"
      t:get("/read"):expect { n = 1 }
      if store == "cache" then
        srv.test(app_of { store = store }):get("/read", { cookies = { sid = before } }):expect { n = 0 }
      end
    end)

    it("is gone when it was destroyed", function()
      local before = cookie_in(t:get("/count"))
      t:post("/logout"):expect("set-cookie", "^sid=; Max%-Age=0; Path=/")
      assert.is_nil(t.cookies.sid)
      t:get("/read"):expect { n = 0 }
      if store == "cache" then t:get("/read", { cookies = { sid = before } }):expect { n = 0 } end
      t:get("/count")
      local again = cookie_in(t:post("/again"):expect(200))
      assert.is_truthy(again and again ~= before)
      t:get("/read"):expect { n = 0 }
    end)

    it("a flash is heard once", function()
      t:post("/say"):expect(200)
      t:get("/hear"):expect { note = "saved" }
      t:get("/hear"):expect { note = srv.null }
    end)

    it("a value that we have not made is never taken on", function()
      for _, forged in ipairs { ("A"):rep(43), "x", "", ("B"):rep(3000), "../../etc", "%00" } do
        local other = srv.test(app_of { store = store })
        local value = cookie_in(other:get("/count", { cookies = { sid = forged } }):expect { n = 1 })
        assert.is_truthy(value ~= forged)
      end
    end)

    it("ends when it was not used for its time, and begins anew when it is", function()
      local at, kept = env.now(), {}
      srv.test.stub(env, "now", function() return at end)
      local cache = {}
      function cache:get(key) return kept[key] and kept[key].until_ > at and kept[key].value or nil end
      function cache:set(key, value, ttl) kept[key] = { value = value, until_ = at + ttl } return true end
      function cache:replace(key, value, ttl) return self:get(key) ~= nil and self:set(key, value, ttl) end
      srv.test.stub(package.loaded, "srv.db.cache", cache)
      local short = srv.test(app_of { store = store, ttl = "1h" })
      local function read_after(seconds)
        at = at + seconds
        return short:get("/read", { cookies = { sid = short.cookies.sid } }):expect(200)
      end
      short:get("/count"):expect("set-cookie", "^sid=[^;]+; Max%-Age=3600; ")
      read_after(30):expect { n = 1 }:expect("set-cookie", false)
      read_after(3500):expect { n = 1 }:expect("set-cookie", "^sid=[^;]+; Max%-Age=3600; ")
      read_after(3500):expect { n = 1 }
      read_after(3601):expect { n = 0 }
    end)

    it("keeps its own names: a field of a method's name is misuse", function()
      local app, messages = app_of { store = store }, {}
      app:get("/keep/:name", function(req)
        messages[#messages + 1] = select(2, pcall(function() req.session[req.params.name] = "x" end))
        req.session:flash("note", "heard")
        return "ok"
      end)
      local own = srv.test(app)
      for _, name in ipairs { "flash", "rotate", "destroy", "_flash" } do own:get("/keep/" .. name):expect(200) end
      for _, message in ipairs(messages) do assert.matches("session_spec.lua:%d+: .*has a meaning of its own", message) end
      assert.equal(4, #messages)
      own:get("/hear"):expect { note = "heard" }
    end)

    it("is not changed by pages of other sites", function()
      t:post("/login", { headers = { ["Sec-Fetch-Site"] = "cross-site" } }):expect(403)
      srv.test(app_of { store = store, csrf = false }):post("/login", { headers = { ["Sec-Fetch-Site"] = "cross-site" } }):expect(200)
    end)
  end)
end

describe("srv.session", function()
  it("takes the cookie's options", function()
    local t = srv.test(app_of { name = "s", ttl = "browser", cookie = { same_site = "strict", path = "/", secure = true } })
    t:get("/count"):expect("set-cookie", "^s=[%w_-]+; Path=/; HttpOnly; Secure; SameSite=Strict$")
  end)

  it("of the cookie cannot be read, and has a bound", function()
    local app = app_of { store = "cookie" }
    app:get("/secret", function(req)
      req.session.secret = "hunter2hunter2"
      return "ok"
    end)
    app:get("/large", function(req)
      req.session.large = srv.crypto.token(4000)
      return "ok"
    end)
    local t = srv.test(app)
    local value = cookie_in(t:get("/secret"))
    assert.is_nil(srv.crypto.decode("base64url", value):find "hunter2")
    t:get("/large"):expect(500):expect(function(r) return r.log[1].fields.err.code == "too_large" end)
  end)

  it("does not come back when another request has ended it meanwhile", function()
    local app, inside, go_on = app_of(), srv.event(), srv.event()
    app:get("/slow", function(req)
      req.session.slow = true
      inside:set()
      go_on:wait()
      return "slow"
    end)
    local t = srv.test(app)
    local sid = cookie_in(t:get("/count"))
    local slow = srv.spawn(function() return t:get("/slow", { cookies = { sid = sid } }) end)
    inside:wait()
    srv.test(app_of()):post("/logout", { cookies = { sid = sid } }):expect(200)
    go_on:set()
    slow:wait():expect(200):expect("set-cookie", false)
    t:get("/read", { cookies = { sid = sid } }):expect { n = 0 }
  end)

  it("gets one other value when two requests rotate it at once", function()
    local app, inside, go_on = app_of(), 0, srv.event()
    app:post("/slow_login", function(req)
      req.session:rotate()
      req.session.user = "ann"
      inside = inside + 1
      go_on:wait()
      return "in"
    end)
    local t = srv.test(app)
    local sid = cookie_in(t:get("/count"))
    local logins = {}
    for i = 1, 2 do
      logins[i] = srv.spawn(function() return srv.test(app):post("/slow_login", { cookies = { sid = sid } }) end)
    end
    repeat srv.sleep(0) until inside == 2
    go_on:set()
    local found = {}
    for i = 1, 2 do found[#found + 1] = cookie_in(logins[i]:wait():expect(200)) end
    assert.equal(1, #found)
    t:get("/who", { cookies = { sid = found[1] } }):expect "ann"
    t:get("/read", { cookies = { sid = sid } }):expect { n = 0 }
  end)

  it("does not come back when it ends at the very moment of a write", function()
    local Dict, t = getmetatable(srv.cache), srv.test(app_of())
    t:get("/count"):expect(200)
    for _, name in ipairs { "set", "replace" } do
      local method = Dict[name]
      srv.test.stub(Dict, name, function(self, key, ...)
        self:delete(key) -- by another worker
        return method(self, key, ...)
      end)
    end
    t:get("/count"):expect { n = 2 }:expect("set-cookie", false)
    t:get("/read"):expect { n = 0 }
  end)

  it("brings back whatever could be written, however deep", function()
    local app = app_of()
    app:get("/deepen/:levels<int>", function(req)
      local t = {}
      for _ = 2, req.params.levels do t = { t } end
      req.session.t = t
      return "ok"
    end)
    local t = srv.test(app)
    t:get("/count"):expect(200)
    t:get("/deepen/100"):expect(200)
    local refused = 0
    for levels = 250, 260 do
      if t:get("/deepen/" .. levels).status == 500 then refused = refused + 1 end
      t:get("/read"):expect { n = 1 }
    end
    assert.is_true(refused > 0)
  end)

  it("of an inner router stands in the place of an outer one's, and each keeps its own", function()
    local app = app_of()
    app:get("/inner", srv.session { name = "inner" }, function(req)
      req.session.user = "ann"
      return "ok"
    end)
    local answer = srv.test(app):get("/inner"):expect(200)
    assert.matches("^inner=", answer.headers["set-cookie"])
    assert.is_nil(answer.headers["set-cookie"]:find("sid=", 1, true))
  end)

  it("cannot be replaced by another table, which would not be kept", function()
    local app = app_of()
    app:get("/replace", function(req)
      req.session = { user = "ann" }
      return "ok"
    end)
    srv.test(app):get("/replace"):expect(500)
  end)

  it("is good under its own name only", function()
    local sid = cookie_in(srv.test(app_of()):get("/count"))
    srv.test(app_of { name = "other" }):get("/read", { cookies = { other = sid } }):expect { n = 0 }
  end)

  it("answers 503 when the cache cannot be asked", function()
    local t = srv.test(app_of())
    t:get("/count"):expect(200)
    srv.test.stub(package.loaded, "srv.db.cache", { get = function() return nil, srv.error.new(503, "down") end })
    t:get("/read"):expect(503)
    t:get("/untouched"):expect(200)
  end)

  it("refuses options that make no sense", function()
    for _, opts in ipairs { { ttl = "soon" }, { ttl = 0 }, { store = "disk" }, { cookie = { max_age = 5 } }, { csrf = "yes" }, { nam = "x" } } do
      assert.error_matches(function() srv.session(opts) end, "^srv.session: ")
    end
    assert.error_matches(function() srv.session { name = "a b" } end, "no name for a cookie")
    assert.error_matches(function() srv.session { cookie = { same_site = "x" } } end, "same_site must be")
  end)
end)
