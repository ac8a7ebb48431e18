local env = require "srv.core.env"
local srv = require "srv"

local function get(handler, opts, path)
  local app = srv.app()
  app:get("/", handler)
  return srv.test(app):get(path or "/", opts)
end

describe("errors", function()
  it("are problems of RFC 9457, or pages for browsers", function()
    local function teapot() srv.error(418, "short", { data = { spout = 1 }, headers = { ["X-Pot"] = "tea" } }) end
    local r = get(teapot):expect(418):expect("content-type", "application/problem+json"):expect("x-pot", "tea")
    assert.same({ type = "about:blank", title = "I'm a Teapot", status = 418, detail = "short", code = "i_m_a_teapot",
      spout = 1, request_id = r:json().request_id }, setmetatable(r:json(), nil))
    get(teapot, { headers = { Accept = "text/html,application/xhtml+xml,*/*;q=0.8" } }):expect(418)
      :expect("content-type", "text/html; charset=utf-8"):expect(function(page) return page.body:find("short", 1, true) end)
    get(teapot, { headers = { Accept = "*/*" } }):expect("content-type", "application/problem+json")
  end)

  it("are made of what other frameworks raise", function()
    get(function() error { statusCode = 418, message = "teapot" } end):expect(418):expect { detail = "teapot" }
    local function logged(raised) return get(function() error(raised) end):expect(500).log[1].fields.err.message end
    assert.equal("no pot", logged { message = "no pot", statusCode = "418" })
    assert.equal("its own words", logged(setmetatable({}, { __tostring = function() return "its own words" end })))
    assert.equal("a table without a message was raised; its fields: a, token", logged { token = "secret", a = 1 })
    assert.equal("a table without a message was raised; its fields: ", logged {})
  end)

  it("tell nothing of a 5xx in production, and all in --dev", function()
    local function boom() error "secret <detail>" end
    local r = get(boom):expect(500)
    assert.is_nil(r.body:find("secret", 1, true))
    local page = get(boom, { headers = { Accept = "text/html" } }):expect(500)
    assert.is_nil(page.body:find("secret", 1, true))
    assert.matches("request " .. ("%w"):rep(16), page.body)
    srv.test.stub(env, "dev", true)
    srv.test.stub(env, "root", ".")
    assert.matches("secret <detail>", get(boom):json().detail)
    assert.matches("stack traceback", get(boom):json().trace)
    page = get(boom, { headers = { Accept = "text/html" } })
    assert.matches("secret &lt;detail&gt;", page.body)
    assert.matches('<mark> *%d+ *local function boom%(%) error &quot;secret', page.body)
  end)

  it("show the route in --dev where the handler has left no frame, not the middleware around it", function()
    srv.test.stub(env, "dev", true)
    srv.test.stub(env, "root", ".")
    local app = srv.app()
    app:use(function(_, _, next) next() end)
    app:get("/returned", function() return nil, srv.error.new(500, "returned") end)
    app:get("/tail", function() return error(srv.error.new(500, "raised")) end)
    app:get("/nothing", function() end)
    local t = srv.test(app)
    for _, path in ipairs { "returned", "tail", "nothing" } do
      local page = t:get("/" .. path, { headers = { Accept = "text/html" } }):expect(500)
      assert.matches('<mark> *%d+ *app:get%(&quot;/' .. path, page.body)
    end
  end)

  it("become error objects whatever was raised", function()
    get(function() error() end):expect(500)
    get(function() error { status = 422, message = "own" } end):expect(422):expect { detail = "own" }
    get(function() error(setmetatable({}, { __tostring = function() return "odd" end })) end):expect(500)
    get(function() local x = nil; return x.y end):expect(500)
    get(function() local function deep() return 1 + deep() end return deep() end):expect(500)
  end)

  it("have fields that follow from the status, and a text with causes", function()
    local err = srv.error.new(404)
    assert.same({ "not_found", "Not Found", "Not Found", true }, { err.code, err.title, err.message, err.expose })
    local outer = srv.error.new(503, "later", { code = "restocking", cause = err })
    assert.equal("restocking: later; caused by not_found: Not Found", tostring(outer))
    assert.is_false(outer.expose)
    assert.is_true(srv.error.is(outer, "restocking"))
    assert.is_false(srv.error.is(outer, "other"))
    assert.is_false(srv.error.is("text"))
    assert.error_matches(function() srv.error.new(200) end, "whole number from 400 to 599")
    assert.error_matches(function() srv.error.new(400, "x", { cod = "y" }) end, 'unknown field "cod", did you mean "code"?')
  end)

  it("may be kept and raised for many requests", function()
    local gone, down = srv.error.new(410), srv.error.new(503)
    local app = srv.app()
    app:get("/gone", function() return nil, gone end)
    app:get("/down", function() error(down) end)
    local t = srv.test(app)
    assert.are_not.equal(t:get("/gone"):json().request_id, t:get("/gone"):json().request_id)
    t:get("/down"):expect(503)
    assert.is_nil(rawget(gone, "request_id"))
    assert.is_nil(rawget(down, "trace"))
  end)

  it("drop what described the answer, and keep other fields", function()
    get(function(_, res)
      res:header("X-Kept", "1"):etag("v1"):type("csv"):header("Cache-Control", "max-age=60"):cookie("a", "1")
      srv.error(404)
    end):expect(404):expect("x-kept", "1"):expect("etag", false):expect("cache-control", false)
      :expect("content-type", "application/problem+json"):expect("set-cookie", "^a=1")
  end)
end)

describe("app:error", function()
  it("makes the answer; its status is the error's unless it gives one", function()
    local app = srv.app()
    app:error(function(err) return { error = err.expose and err.message or err.title } end)
    app:get("/422", function() srv.error(422, "bad thing") end)
    app:get("/500", function() error "secret" end)
    local t = srv.test(app)
    t:get("/422"):expect(422):expect '{"error":"bad thing"}'
    t:get("/500"):expect(500):expect '{"error":"Internal Server Error"}'
    t:get("/nope"):expect(404):expect { error = "nothing is at this path" }
  end)

  it("is asked from the inner mount outward, until one answers", function()
    local app, outer, inner, asked = srv.app(), srv.router(), srv.router(), {}
    app:error(function(err) asked[#asked + 1] = "app" return { by = "app", code = err.code } end)
    outer:error(function() asked[#asked + 1] = "outer" end)
    inner:error(function(err, _, res)
      asked[#asked + 1] = "inner"
      if err.status == 409 then res:header("X-By", "inner"):json { by = "inner" } end
    end)
    inner:get("/conflict", function() srv.error(409) end)
    inner:get("/gone", function() srv.error(410) end)
    outer:mount("/inner", inner)
    app:mount("/outer", outer)
    local t = srv.test(app)
    t:get("/outer/inner/conflict"):expect(409):expect { by = "inner" }:expect("x-by", "inner")
    t:get("/outer/inner/gone"):expect(410):expect { by = "app", code = "gone" }
    assert.same({ "inner", "inner", "outer", "app" }, asked)
  end)

  it("of a mount answers inside: middleware around sees the answer and res.error", function()
    local app, inner, seen = srv.app(), srv.router(), nil
    app:use(function(_, res, next)
      next()
      seen = res:status() .. " " .. res.error.code
      res:header("X-Outside", "yes")
    end)
    inner:error(function() return "inner says no" end)
    inner:use(function(_, _, next) next() error "not reached" end)
    inner:get("/", function() srv.error(403) end)
    app:mount("/inner", inner)
    srv.test(app):get("/inner"):expect(403):expect("inner says no"):expect("x-outside", "yes")
    assert.equal("403 forbidden", seen)
  end)

  it("passes errors up through next(), so that middleware may see them", function()
    local app, rolled_back = srv.app(), false
    app:use(function(_, _, next)
      local ok, err = pcall(next)
      if not ok then
        rolled_back = true
        error(err, 0)
      end
    end)
    app:get("/", function() srv.error(409, "conflict") end)
    srv.test(app):get("/"):expect(409):expect { detail = "conflict" }
    assert.is_true(rolled_back)
  end)

  it("that fails itself leaves the error to the outer one, as its cause", function()
    local app, inner, cause = srv.app(), srv.router(), nil
    app:error(function(err) cause = err.cause and err.cause.code return "app" end)
    inner:error(function() error "formatter" end)
    inner:get("/", function() srv.error(409) end)
    app:mount("/inner", inner)
    srv.test(app):get("/inner"):expect(500):expect("app")
    assert.equal("conflict", cause)
    local alone = srv.app()
    alone:error(function() error "formatter" end)
    srv.test(alone):get("/"):expect(500):expect("content-type", "application/problem+json")
  end)

  it("may stream its answer, also to a stream that fails; one that fails too leaves the default", function()
    local app = srv.app()
    app:error(function(err, req)
      local left = req.path == "/good" and { err.message:match "%a+$", "!" } or {}
      return function() return table.remove(left, 1) or req.path == "/bad" and error "again" or nil end
    end)
    local function broken() return function() error "broken" end end
    app:get("/good", broken):get("/bad", broken)
    app:get("/bad/raised", function() error "raised" end)
    local t = srv.test(app)
    t:get("/good"):expect(500):expect "broken!"
    t:get("/bad"):expect(500):expect("content-type", "application/problem+json")
    t:get("/good"):expect(500):expect "broken!"
  end)

  it("answers what a __tojson raises", function()
    local app, told = srv.app(), {}
    app:hook("error", function(err) told[#told + 1] = err.status end)
    app:hook("send", function(_, res) res:header("X-Hook", "ran") end)
    app:error(function(err) return { caught = err.message }, err.status end)
    local function gone() return setmetatable({}, { __tojson = function() srv.error(410, "gone") end }) end
    app:get("/", function() return { list = { gone() } } end)
    app:get("/coded", srv.compress(), function() return { list = { gone() } } end)
    local again = srv.router()
    again:error(function() return gone() end)
    again:get("/", gone)
    app:mount("/again", again)
    local t = srv.test(app)
    t:get("/"):expect(410):expect { caught = "gone" }:expect("x-hook", "ran")
    t:get("/coded", { headers = { ["Accept-Encoding"] = "gzip" } }):expect(410):expect { caught = "gone" }:expect("x-hook", "ran")
    assert.same({ 410, 410 }, told)
    t:get("/again"):expect(500)
  end)
end)

describe("app:not_found", function()
  it("is scoped: the innermost that answers wins", function()
    local app, inner = srv.app(), srv.router()
    app:not_found(function() return "app knows nothing" end)
    inner:use(function(_, res, next) res:header("X-Inner", "1") return next() end)
    inner:not_found(function(req) if req.path:find("nope") then return { scoped = true } end end)
    app:mount("/scope", inner)
    local t = srv.test(app)
    t:get("/scope/nope"):expect(404):expect { scoped = true }:expect("x-inner", "1")
    t:get("/scope/other"):expect(404):expect("app knows nothing"):expect("x-inner", "1")
    t:get("/scoped"):expect(404):expect("app knows nothing"):expect("x-inner", false)
  end)
end)

describe("deadlines", function()
  it("are a 503 by formatters and hooks, and the work is cancelled", function()
    local app, deferred, told, resumed = srv.app { timeout = "30ms" }, nil, nil, false
    app:hook("timeout", function(req) told = req.path .. " " .. req.state.user end)
    app:hook("send", function(_, res) res:header("X-Hook", "ran") end)
    app:get("/hang", function(req)
      req.state.user = "ada"
      srv.defer(function(err) deferred = err.code end)
      pcall(srv.sleep, 10)
      resumed = true
    end)
    app:get("/slow", { timeout = "1s" }, function() srv.sleep(0.05) return "ok" end)
    local t = srv.test(app)
    t:get("/hang"):expect(503):expect { status = 503 }:expect("x-hook", "ran")
    t:get("/slow"):expect("ok")
    assert.same({ "cancelled", "/hang ada", false }, { deferred, told, resumed })
  end)

  it("do not count for a stream whose head is out", function()
    local app = srv.app { timeout = "30ms" }
    app:get("/", function(_, res)
      for i = 1, 3 do
        res:write(tostring(i))
        srv.sleep(0.02)
      end
    end)
    srv.test(app):get("/"):expect("123")
  end)

  it("are answered in C when formatters fail or hang", function()
    local app = srv.app { timeout = "20ms" }
    app:error(function() error "formatter" end)
    app:hook("send", function() error "hook" end)
    app:get("/", function() srv.sleep(10) end)
    srv.test(app):get("/"):expect(503)
  end)
end)

local function comes_true(claim)
  for _ = 1, 4000 do
    if claim() then return end
    srv.sleep "5ms"
  end
  error("this did not come true within twenty seconds", 2)
end

describe("clients that leave", function()
  local function leave(app, path)
    local t = srv.test(app)
    srv.timeout("20ms", function() t:get(path) end)
  end

  it("cancel the work, and the hook is told", function()
    local app, deferred, aborted, finished = srv.app(), nil, nil, false
    app:hook("abort", function(req) aborted = req.path end)
    app:get("/work", function()
      srv.defer(function(err) deferred = err.message end)
      srv.sleep "1h"
      finished = true
    end)
    leave(app, "/work")
    comes_true(function() return deferred and aborted end)
    assert.matches("client gone", deferred)
    assert.same({ "/work", false }, { aborted, finished })
  end)

  it("do not, where the route finishes what it began", function()
    local app, aborted, finished = srv.app(), nil, false
    app:get("/work", { abort = "finish" }, function(req)
      comes_true(function() return req.aborted end)
      srv.sleep "5ms"
      aborted, finished = req.aborted, true
      return "done"
    end)
    leave(app, "/work")
    comes_true(function() return finished end)
    assert.is_true(aborted)
  end)

  it("end a stream", function()
    local app, written, ended = srv.app(), 0, false
    app:get("/", function(_, res)
      srv.defer(function() ended = true end)
      while true do
        res:write("x")
        written = written + 1
        srv.sleep("5ms")
      end
    end)
    leave(app, "/")
    comes_true(function() return ended end)
    assert.is_true(written > 0)
  end)
end)

describe("app:spawn and app:every", function()
  it("run beside requests until the app ends", function()
    local app, ran, noted, spawned = srv.app(), 0, nil, srv.event()
    app:spawn(function(word) noted = word end, "while loading")
    local timer = app:every("2ms", { at_start = true }, function() ran = ran + 1 end)
    app:get("/", function()
      app:spawn(function() srv.sleep("1ms") spawned:set() end)
      return "started"
    end)
    local t = srv.test(app)
    srv.sleep("1ms")
    assert.equal("while loading", noted)
    t:get("/"):expect("started")
    assert.is_true(spawned:wait "20s")
    comes_true(function() return ran >= 2 end)
    timer:cancel()
    local before = ran
    srv.sleep("10ms")
    assert.equal(before, ran)
    t:close()
  end)

  it("end with the app; hooks `stop` run", function()
    local app, cause, stopped = srv.app(), nil, false
    app:hook("stop", function() stopped = true end)
    app:spawn(function()
      srv.defer(function(err) cause = err.code end)
      srv.sleep(10)
    end)
    local t = srv.test(app)
    srv.sleep("1ms")
    t:close()
    comes_true(function() return cause and stopped end)
    assert.same({ "cancelled", true }, { cause, stopped })
  end)

  it("refuse what is no time", function()
    local app = srv.app()
    assert.error_matches(function() app:every("often", function() end) end, "app:every")
    assert.error_matches(function() app:every("cron: 99 * * * *", function() end) end, '"99" is no minute')
    assert.error_matches(function() app:every("1s", { jiter = 1 }, function() end) end, 'did you mean "jitter"?')
    assert.error_matches(function() app:every("cron: 0 4 * * *", { zone = "Mars" }, function() end) end,
      'app:every: there is no time zone "Mars"')
  end)
end)

describe("slips are answered with the way it is done here", function()
  local function message_of(fn)
    local ok, raised = pcall(fn)
    assert.is_false(ok)
    return tostring(raised)
  end

  it("a dot where a colon belongs", function()
    local db = srv.sqlite(":memory:slips", { migrations = false })
    for _, method in ipairs { "query", "one", "exec", "insert", "delete", "tx", "rows" } do
      assert.matches("errors_spec.lua:%d+: db." .. method .. ": methods of a database stand behind a colon: db:" .. method,
        message_of(function() db[method]("select 1") end))
    end
  end)

  it("req.body, and req.session without the plugin", function()
    local app = srv.app()
    app:get("/body", function(req) return req.body end)
    app:get("/session", function(req) return req.session end)
    local t = srv.test(app)
    assert.matches("errors_spec.lua:%d+: req.body: .*req:json%(%)", t:get("/body"):expect(500).log[1].fields.err.message)
    assert.matches("app:use%(srv.session%(%)%)", t:get("/session"):expect(500).log[1].fields.err.message)
  end)

  it("an option that is like none: all that there are", function()
    assert.matches('unknown option "path"; known: checks, live, ready', message_of(function() srv.health { path = "/healthz" } end), 1, true)
    assert.matches('srv.test: unknown name "fetch"; known: clock, db, ', message_of(function() return srv.test.fetch end), 1, true)
  end)

  it("an array of functions for srv.all", function()
    local f = function() end
    assert.matches("errors_spec.lua:%d+: srv.all: { f, g } calls f with g", message_of(function() srv.all { f, f } end))
    assert.equal(7, (srv.all { function(v) return v end, 7 }))
  end)

  it("a body of another type: what is taken, and how to send it", function()
    local app = srv.app()
    app:post("/form", function(req) return req:form() end)
    app:post("/both", { body = { a = "string" } }, function(req) return req.valid.body end)
    local t = srv.test(app)
    local multipart = { body = "x", headers = { ["Content-Type"] = "multipart/form-data; boundary=x" } }
    t:post("/form", multipart):expect(415):expect { detail = "the body must be an urlencoded form "
      .. "(Content-Type: application/x-www-form-urlencoded); it is multipart/form-data; boundary=x" }
    t:post("/both", { body = "x" }):expect(415):expect { detail = "the body must be JSON (Content-Type: application/json) or "
      .. "an urlencoded form (Content-Type: application/x-www-form-urlencoded); it has no Content-Type" }
  end)
end)
