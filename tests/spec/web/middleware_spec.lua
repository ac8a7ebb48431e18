local srv = require "srv"

describe("middleware", function()
  it("is refused where a plugin of srv was not called, with the way to call it", function()
    local calls = {
      csrf = "()", health = "()", metrics = "()", proxy_trust = ' { "loopback" }', rate_limit = " { limit = 100 }",
      request_id = "()", session = "()",
    }
    for name, arguments in pairs(calls) do
      local want = ("srv.%s must be called: app:use(srv.%s%s)"):format(name, name, arguments)
      local function told(fn)
        local ok, message = pcall(fn)
        assert.is_false(ok)
        assert.truthy(tostring(message):find(want, 1, true), tostring(message))
        assert.truthy(tostring(message):find("middleware_spec.lua:", 1, true))
      end
      told(function() srv.app():use(srv[name]) end)
      told(function() srv.app():get("/", srv[name], function() return "" end) end)
    end
  end)

  it("is an onion, wherever it stands in the file", function()
    local app, order = srv.app(), {}
    local function layer(name)
      return function(_, _, next)
        order[#order + 1] = name .. ">"
        local res = next()
        order[#order + 1] = "<" .. name
        return res
      end
    end
    app:use(layer "a")
    app:get("/", layer "guard", function()
      order[#order + 1] = "handler"
      return "ok"
    end)
    app:use(layer "b")
    srv.test(app):get("/"):expect("ok")
    assert.equal("a> b> guard> handler <guard <b <a", table.concat(order, " "))
  end)

  it("sees the recorded answer and may change it", function()
    local app = srv.app()
    app:use(function(_, res, next)
      next()
      res:header("X-Seen", res:status() .. ":" .. res:body())
      res:body(res:body() .. "!")
    end)
    app:get("/", function() return "made", 201 end)
    srv.test(app):get("/"):expect(201):expect("made!"):expect("x-seen", "201:made")
  end)

  it("puts its own answer in place of the recorded one", function()
    local app = srv.app()
    app:use(function(_, _, next)
      next()
      return { replaced = true }, 202
    end)
    app:get("/", function() return "text" end)
    srv.test(app):get("/"):expect(202):expect('{"replaced":true}'):expect("content-type", "application/json")
  end)

  it("answers instead of the handler", function()
    local app, ran = srv.app(), false
    app:use("/admin", function(req, _, next)
      if req:header "authorization" then return next() end
      return { error = "who are you?" }, 401
    end)
    app:get("/admin/:x", function() ran = true return "secret" end)
    local t = srv.test(app)
    t:get("/admin/x"):expect(401)
    assert.is_false(ran)
    t:get("/admin/x", { headers = { Authorization = "me" } }):expect("secret")
  end)

  it("covers 404, 405 and OPTIONS beneath its prefix, however the path is written", function()
    local app = srv.app()
    app:use("/admin", function(_, res, next) res:header("X-Guard", "on") return next() end)
    app:post("/admin/x", function() return "ok" end)
    local t = srv.test(app)
    t:get("/admin/nope"):expect(404):expect("x-guard", "on")
    t:get("/admin/x"):expect(405):expect("x-guard", "on")
    t:options("/admin/x"):expect(204):expect("x-guard", "on")
    t:get("/%61dmin/nope"):expect(404):expect("x-guard", "on")
    t:get("/administrator"):expect(404):expect("x-guard", false)
  end)

  it("asks for each request where a prefix covers a route only at times", function()
    local app = srv.app()
    app:use("/orgs/acme", function(_, res, next) res:header("X-Acme", "yes") return next() end)
    app:get("/orgs/:org", function(req) return req.params.org end)
    local t = srv.test(app)
    t:get("/orgs/acme"):expect("acme"):expect("x-acme", "yes")
    t:get("/orgs/other"):expect("other"):expect("x-acme", false)
  end)

  it("refuses with next(err), and lets nobody through with any other argument of next", function()
    local refusal = srv.error.new(401, "who are you?")
    local function answer_to(...)
      local app, arguments, count = srv.app(), { ... }, select("#", ...)
      local function guard(_, _, next) return next(unpack(arguments, 1, count)) end
      app:use("/used", guard)
      app:get("/used", function() return "secret" end)
      app:get("/guarded", guard, function() return "secret" end)
      app:get("/last", guard)
      app:get("/maybe/:id", function() return "secret" end)
      app:use("/maybe/7", guard)
      local t, status = srv.test(app), nil
      for _, path in ipairs { "/used", "/guarded", "/last", "/maybe/7" } do
        local r = t:get(path)
        assert.is_nil(r.body:find "secret", path)
        assert.is_true(status == nil or status == r.status, path)
        status = r.status
        if status == 500 then
          assert.matches('next%(%) takes nothing, or "route", but no %l+: to refuse, raise an error %(srv.error%(401, "..."%)%); '
            .. "it is called at tests/spec/web/middleware_spec.lua:%d+", tostring(r.log[1].fields.err))
        end
      end
      return status
    end
    assert.equal(401, answer_to(refusal))
    assert.equal(401, answer_to(nil, refusal))
    for _, v in ipairs { "boom", "Route", false, true, 401, { status = 401 } } do assert.equal(500, answer_to(v)) end
    assert.equal(500, answer_to("route", "boom"))
    assert.equal(500, answer_to(nil, "boom"))
  end)

  it("may call next with req and res, but not twice", function()
    local app = srv.app()
    app:use("/ok", function(req, res, next) return next(req, res) end)
    app:use("/twice", function(_, _, next) next() next() end)
    app:get("/ok", function() return "ok" end)
    app:get("/twice", function() return "ok" end)
    local t = srv.test(app)
    t:get("/ok"):expect("ok")
    local r = t:get("/twice"):expect(500)
    assert.matches("middleware_spec.lua:%d+: next%(%) was called twice", tostring(r.log[1].fields.err))
  end)

  it("waits, and so do handlers and hooks", function()
    local app = srv.app()
    app:use(function(_, _, next) srv.sleep(0.001) local res = next() srv.sleep(0.001) return res end)
    app:hook("send", function(_, res) srv.sleep(0.001) res:header("X-Hook", "waited") end)
    app:get("/", function() srv.sleep(0.001) return "ok" end)
    srv.test(app):get("/"):expect("ok"):expect("x-hook", "waited")
  end)

  it("says so when nobody answers", function()
    local app = srv.app()
    app:use(function(_, _, next) next() end)
    app:get("/", function() end)
    app:use("/stops", function() end)
    app:get("/stops", function() return "never" end)
    local t = srv.test(app)
    local r = t:get("/"):expect(500)
    assert.matches("no_answer: GET / returned nothing", tostring(r.log[1].fields.err))
    t:get("/stops"):expect(500)
  end)

  it("is refused where it is no function", function()
    assert.error_matches(function() srv.app():use("/x") end, "no middleware was given")
    assert.error_matches(function() srv.app():use("x", function() end) end, "app:use")
    assert.error_matches(function() srv.app():use { hooks = { sned = function() end } } end, 'unknown hook "sned", did you mean "send"?')
  end)
end)

describe("hooks", function()
  it("run in their order, around middleware and validation", function()
    local app, order = srv.app(), {}
    local function note(name) return function() order[#order + 1] = name end end
    for _, name in ipairs { "send", "sent", "validated", "request" } do app:hook(name, note(name)) end
    app:use(function(_, _, next) order[#order + 1] = "middleware" return next() end)
    app:get("/", { query = { x = "integer" } }, function() order[#order + 1] = "handler" return "ok" end)
    srv.test(app):get("/?x=1"):expect("ok")
    assert.equal("request middleware validated handler send sent", table.concat(order, " "))
  end)

  it("are scoped by mount, and by a plugin's prefix", function()
    local app, inner, seen = srv.app(), srv.router(), {}
    inner:hook("request", function(req) seen[#seen + 1] = "inner " .. req.path end)
    inner:get("/a", function() return "a" end)
    app:mount("/inner", inner)
    app:use("/p", { name = "p", hooks = { request = function(req) seen[#seen + 1] = "plugin " .. req.path end } })
    app:get("/p/x", function() return "x" end)
    app:get("/q", function() return "q" end)
    local t = srv.test(app)
    for _, path in ipairs { "/inner/a", "/p/x", "/q", "/inner/nope" } do t:get(path) end
    assert.same({ "inner /inner/a", "plugin /p/x", "inner /inner/nope" }, seen)
  end)

  it("`request` has answered if it returns res; all of them run, and the inner one has the last word", function()
    local app, inner, seen = srv.app(), srv.router(), {}
    local function answering(text)
      return function(req, res)
        seen[#seen + 1] = text
        if req.method == "GET" then return res:body(text) end
      end
    end
    app:hook("request", answering "outer")
    app:use(function(_, _, next) seen[#seen + 1] = "middleware" return next() end)
    app:hook("send", function(_, res) res:header("X-Sent", "1") end)
    inner:hook("request", answering "inner")
    inner:all("/", function() return "handler" end)
    app:mount("/inner", inner)
    local t = srv.test(app)
    t:get("/inner"):expect("inner"):expect("x-sent", "1")
    t:get("/none"):expect(200):expect("outer")
    assert.same({ "outer", "inner", "outer" }, seen)
    t:post("/inner"):expect("handler")
    assert.equal("middleware", seen[#seen])
  end)

  it("`send` sets headers on every status, also on errors and on what is missing", function()
    local app = srv.app()
    app:use { name = "stamp", hooks = { send = function(_, res) res:header("X-Stamp", tostring(res:status())) end } }
    app:get("/", function() return "ok" end)
    app:get("/boom", function() error "boom" end)
    local t = srv.test(app)
    t:get("/"):expect("x-stamp", "200")
    t:get("/boom"):expect(500):expect("x-stamp", "500")
    t:get("/nope"):expect(404):expect("x-stamp", "404")
  end)

  it("an error in `send` is one more answer, and that one goes out", function()
    local app = srv.app()
    app:hook("send", function() error "hook" end)
    app:get("/", function() return "ok" end)
    srv.test(app):get("/"):expect(500)
  end)

  it("`error` is told of errors, `sent` sees the same req as the handler", function()
    local app, told, kept = srv.app(), nil, nil
    app:hook("error", function(err, req) told = err.code .. " " .. req.path end)
    app:hook("sent", function(req, res) kept = (req.user or "nobody") .. " " .. res:status() end)
    app:get("/", function(req) req.user = "ada" return "ok" end)
    app:get("/boom", function() error "boom" end)
    local t = srv.test(app)
    t:get("/")
    srv.sleep(0.001)
    assert.equal("ada 200", kept)
    t:get("/boom")
    assert.equal("lua /boom", told)
  end)

  it("a plugin's setup gets the router", function()
    local app = srv.app()
    app:use { name = "p", setup = function(router) router:get("/from-plugin", function() return "plugin" end) end }
    srv.test(app):get("/from-plugin"):expect("plugin")
  end)

  it("`start` runs before the first request", function()
    local app, started = srv.app(), 0
    app:hook("start", function() started = started + 1 end)
    app:hook("start", function() started = started + 10 end, { once = true })
    app:get("/", function() return tostring(started) end)
    srv.test(app):get("/"):expect("11")
  end)
end)
