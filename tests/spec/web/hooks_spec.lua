--- The points of a request's life that an app may listen to (API, section 2, Order; docs/guide/hooks.md).
local srv = require "srv"

--- What adds NAME to LIST when it is called.
local function note(list, name)
  return function() list[#list + 1] = name end
end

--- A `sent` hook that lets a test wait for it.
local function on_sent(app, fn)
  local over = srv.event()
  app:hook("sent", function(req, res)
    if fn then fn(req, res) end
    over:set()
  end)
  return over
end

describe("the order of hooks", function()
  it("is that in which they were declared, with three and with a hundred of one name", function()
    for _, count in ipairs { 3, 100 } do
      local app, list, wanted = srv.app(), {}, {}
      for i = 1, count do
        app:hook("send", note(list, i))
        wanted[i] = i
      end
      app:get("/", function() return "ok" end)
      srv.test(app):get("/"):expect "ok"
      assert.same(wanted, list)
    end
  end)

  it("is outer mount, inner mount, route, at each point; middleware stands between", function()
    local app, inner, list = srv.app(), srv.router(), {}
    for _, name in ipairs { "request", "validated", "send", "sent" } do
      app:hook(name, note(list, "app " .. name))
      inner:hook(name, note(list, "inner " .. name))
    end
    app:use(function(_, _, next) list[#list + 1] = "use>" next() list[#list + 1] = "<use" end)
    local own = { name = "own", hooks = { request = note(list, "route request"), send = note(list, "route send") } }
    inner:get("/", { query = { n = "integer" } }, own, function() list[#list + 1] = "handler" return "ok" end)
    app:mount("/inner", inner)
    local over = on_sent(app)
    srv.test(app):get("/inner?n=1"):expect "ok"
    assert(over:wait "5s")
    assert.same({
      "app request", "inner request", "route request", "use>", "app validated", "inner validated", "handler", "<use",
      "app send", "inner send", "route send", "app sent", "inner sent",
    }, list)
  end)

  it("is that of the file within one mount, plugins' hooks among them", function()
    local app, list = srv.app(), {}
    app:hook("send", note(list, "1"))
    app:use { name = "p", hooks = { send = note(list, "2") } }
    app:hook("send", note(list, "3"))
    app:get("/", function() return "ok" end)
    srv.test(app):get "/"
    assert.equal("123", table.concat(list))
  end)

  it("has no `validated` where a schema refuses, and none that is asked without a schema is missed", function()
    local app, list = srv.app(), {}
    app:hook("validated", function(req) list[#list + 1] = req.path end)
    app:get("/strict", { query = { n = "integer" } }, function() return "ok" end)
    app:get("/plain", function() return "ok" end)
    local t = srv.test(app)
    t:get("/strict?n=x"):expect(400)
    t:get("/strict?n=1"):expect(200)
    t:get("/plain"):expect(200)
    assert.same({ "/strict", "/plain" }, list)
  end)

  it("holds for errors: error, then send, then sent", function()
    local app, list = srv.app(), {}
    app:hook("error", function(err) list[#list + 1] = "error " .. err.status end)
    app:error(function(err) list[#list + 1] = "format" return { code = err.code } end)
    app:hook("send", function(_, res) list[#list + 1] = "send " .. res:status() .. " " .. res.error.code end)
    local over = on_sent(app, function(_, res) list[#list + 1] = "sent " .. res:status() end)
    app:get("/", function() srv.error(409) end)
    srv.test(app):get("/"):expect(409)
    assert(over:wait "5s")
    assert.same({ "error 409", "format", "send 409 conflict", "sent 409" }, list)
  end)

  it("holds for deadlines: timeout, error, send, sent, with the request's own table", function()
    local app, list = srv.app { timeout = "20ms" }, {}
    app:hook("timeout", function(req) list[#list + 1] = "timeout " .. req.state.who end)
    app:hook("error", function(err) list[#list + 1] = "error " .. err.code end)
    app:hook("send", function(req, res) list[#list + 1] = ("send %d %s"):format(res:status(), req.state.who) end)
    local over = on_sent(app, function(_, res) list[#list + 1] = "sent " .. res:status() end)
    app:get("/", function(req) req.state.who = "ada" srv.sleep "10s" end)
    srv.test(app):get("/"):expect(503)
    assert(over:wait "5s")
    assert.same({ "timeout ada", "error deadline", "send 503 ada", "sent 503" }, list)
  end)
end)

describe("hooks of a route that was passed to", function()
  it("`validated` runs for the schema of the route that answers", function()
    local app, list = srv.app(), {}
    app:hook("validated", function(req) list[#list + 1] = req.valid.query.n end)
    app:get("/:any", { query = { n = "integer" }, fallback = true }, function(req) return tostring(req.valid.query.n) end)
    app:get("/x", { query = { n = "string" } }, function(_, _, next) return next() end)
    srv.test(app):get("/x?n=1"):expect "1"
    assert.same({ "1", 1 }, list)
  end)

  it("`error` is told once, whoever answers", function()
    local app, list = srv.app(), {}
    app:hook("error", function(err) list[#list + 1] = err.code end)
    app:use(function(_, _, next) return next() end)
    local inner = srv.router()
    inner:error(function(err) return { code = err.code } end)
    inner:use(function(_, _, next) return next() end)
    inner:get("/:any", function() srv.error(409) end)
    inner:get("/x", function(_, _, next) return next() end)
    app:mount("/m", inner)
    srv.test(app):get("/m/x"):expect(409)
    assert.same({ "conflict" }, list)
  end)
end)

describe("hooks run where no route does", function()
  local function app_and_list()
    local app, list = srv.app(), {}
    app:hook("request", function(req) list[#list + 1] = "request " .. req.path end)
    app:hook("send", function(_, res) list[#list + 1] = "send " .. res:status() end)
    app:post("/only", function() return "ok" end)
    app:static("/files", "web/public")
    return app, list
  end

  for what, case in pairs {
    ["404"] = { "GET", "/none", 404 }, ["405"] = { "GET", "/only", 405 }, OPTIONS = { "OPTIONS", "/only", 204 },
    ["a static file"] = { "GET", "/files/hello.txt", 200 }, ["a static file that is missing"] = { "GET", "/files/none.txt", 404 },
  } do
    it(what, function()
      local app, list = app_and_list()
      local over = on_sent(app, function(_, res) list[#list + 1] = "sent " .. res:status() end)
      srv.test(app):request(case[1], case[2]):expect(case[3])
      assert(over:wait "5s")
      assert.same({ "request " .. case[2], "send " .. case[3], "sent " .. case[3] }, list)
    end)
  end

  it("beneath a mount, those of the mount too", function()
    local app, inner, list = srv.app(), srv.router(), {}
    inner:hook("send", note(list, "inner"))
    inner:post("/only", function() return "ok" end)
    app:mount("/m", inner)
    local t = srv.test(app)
    t:get "/m/only"
    t:get "/m/none"
    t:options "/m/only"
    t:get "/none"
    assert.same({ "inner", "inner", "inner" }, list)
  end)
end)

describe("an error in a hook", function()
  it("`request` is the answer, and app:error makes it", function()
    local app, ran = srv.app(), false
    app:hook("request", function(req) if req.query.no then srv.error(403, "not you") end end)
    app:error(function(err) return { said = err.message }, err.status end)
    app:get("/", function() ran = true return "ok" end)
    srv.test(app):get("/?no=1"):expect(403):expect { said = "not you" }
    assert.is_false(ran)
  end)

  it("`validated` is the answer too", function()
    local app, ran = srv.app(), false
    app:hook("validated", function() srv.error(422) end)
    app:get("/", function() ran = true return "ok" end)
    srv.test(app):get("/"):expect(422)
    assert.is_false(ran)
  end)

  it("`send` takes the answer's place, and `send` does not run again", function()
    local app, count = srv.app(), 0
    app:hook("send", function() count = count + 1 error "boom" end)
    app:get("/", function() return "ok" end)
    srv.test(app):get("/"):expect(500)
    assert.equal(1, count)
  end)

  it("`error`, `timeout` or `sent` is logged and takes no answer away", function()
    local app = srv.app { timeout = "20ms" }
    app:hook("error", function() error "in error" end):hook("timeout", function() error "in timeout" end)
    local over = on_sent(app, function() error "in sent" end)
    app:get("/", function() srv.sleep "10s" end)
    local r = srv.test(app):get("/"):expect(503)
    local said = {}
    for _, line in ipairs(r.log) do said[line.message] = tostring(line.fields.message) end
    assert.matches("in timeout", said["hook timeout failed"])
    assert.matches("in error", said["hook error failed"])
    assert.is_nil((over:wait "20ms"))
  end)

  it("`error` of one function keeps the next from running, and no more", function()
    local app, list = srv.app(), {}
    app:hook("error", function() error "first" end):hook("error", note(list, "second"))
    app:get("/", function() srv.error(404) end)
    srv.test(app):get("/"):expect(404)
    assert.same({ "second" }, list)
  end)

  it("`start` keeps the app from serving, and `stop` stops nothing", function()
    local app, list = srv.app(), {}
    app:hook("start", function() error "no database" end)
    assert.error_matches(function() srv.test(app) end, "no database")
    local other = srv.app()
    other:hook("stop", function() error "first" end):hook("stop", note(list, "second"))
    srv.test(other):close()
    assert.same({ "second" }, list)
  end)
end)

describe("a hook may wait", function()
  it("at each point, and the request waits with it where it must", function()
    local app, list = srv.app(), {}
    local function slow(name)
      return function()
        srv.sleep "2ms"
        list[#list + 1] = name
      end
    end
    for _, name in ipairs { "start", "request", "validated", "error", "send", "stop" } do app:hook(name, slow(name)) end
    local over = on_sent(app, slow "sent")
    app:get("/", function() srv.error(404) end)
    local t = srv.test(app)
    t:get("/"):expect(404)
    assert(over:wait "5s")
    t:close()
    assert.equal("start request validated error send sent stop", table.concat(list, " "))
  end)

  it("and the deadline counts for `request`", function()
    local app = srv.app { timeout = "20ms" }
    app:hook("request", function() srv.sleep "10s" end)
    app:get("/", function() return "ok" end)
    srv.test(app):get("/"):expect(503)
  end)
end)

describe("hook `abort`", function()
  --- A stream that never ends by itself; its client leaves after the first chunk.
  local function leave(app, path)
    local opened = srv.test(app):open("GET", path)
    assert(opened:chunk())
    opened:close()
  end

  it("gets the request when the client leaves, and `sent` does not run", function()
    local app, told, sent, over = srv.app(), {}, false, srv.event()
    app:hook("sent", function() sent = true end)
    app:hook("abort", function(req, more)
      told = { req.path, req.state.who, more == nil }
      over:set()
    end)
    app:get("/ticks", function(req, res)
      req.state.who = "ada"
      while true do
        res:write "x"
        srv.sleep "2ms"
      end
    end)
    leave(app, "/ticks")
    assert(over:wait "5s")
    assert.same({ { "/ticks", "ada", true }, false }, { told, sent })
  end)

  it("is told where an error cuts an answer, and `sent` does not run", function()
    local app, list, over = srv.app(), {}, srv.event()
    app:hook("sent", note(list, "sent"))
    app:hook("error", function(err) list[#list + 1] = err.message:match "boom" end)
    app:hook("abort", function() list[#list + 1] = "abort" over:set() end)
    app:get("/", function(_, res) res:write "x" error "boom" end)
    assert.is_true(srv.test(app):get("/").cut)
    assert(over:wait "5s")
    assert.same({ "boom", "abort" }, list)
  end)

  it("is scoped by mount, and quiet when the answer went out whole", function()
    local app, inner, list, over = srv.app(), srv.router(), {}, srv.event()
    app:hook("abort", function(req) list[#list + 1] = "app " .. req.path over:set() end)
    inner:hook("abort", function(req) list[#list + 1] = "inner " .. req.path end)
    local function ticks(_, res)
      while true do
        res:write "x"
        srv.sleep "2ms"
      end
    end
    app:get("/ticks", ticks)
    inner:get("/whole", function() return "ok" end)
    app:mount("/m", inner)
    srv.test(app):get("/m/whole"):expect "ok"
    leave(app, "/ticks")
    assert(over:wait "5s")
    assert.same({ "app /ticks" }, list)
  end)
end)

describe("hooks `start` and `stop`", function()
  it("of a plugin run wherever it stands, also before one route", function()
    local app, list = srv.app(), {}
    app:get("/", { name = "p", hooks = { start = note(list, "start"), stop = note(list, "stop") } }, function() return "ok" end)
    srv.test(app):close()
    assert.same({ "start", "stop" }, list)
  end)

  it("of a router run once, however often it is mounted and however many paths a route has", function()
    local app, inner, list = srv.app(), srv.router(), {}
    inner:hook("start", note(list, "start")):hook("stop", note(list, "stop"))
    local own = { name = "own", hooks = { start = note(list, "own") } }
    inner:route("GET", { "/a", "/b" }, own, function() return "ok" end)
    app:mount("/1", inner):mount("/2", inner)
    srv.test(app):close()
    assert.same({ "start", "own", "stop" }, list)
  end)

  it("run outer mounts first", function()
    local app, inner, list = srv.app(), srv.router(), {}
    inner:hook("start", note(list, "inner"))
    app:mount("/m", inner)
    app:hook("start", note(list, "app"))
    srv.test(app):close()
    assert.same({ "app", "inner" }, list)
  end)

  it("`once` is for them alone", function()
    assert.error_matches(function() srv.app():hook("send", print, { once = true }) end,
      "`once` is for hooks start and stop")
    srv.app():hook("start", print, { once = true }):hook("stop", print, { once = true }):hook("send", print, { once = false })
  end)
end)
