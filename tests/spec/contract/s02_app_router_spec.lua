--- API, section 2: what an app declares, and in which order it runs.
local srv = require "srv"

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

local function line() return debug.getinfo(2, "l").currentline end

--- Asserts that FN's misuse is blamed on LINE of this file.
local function assert_blamed(at, wanted, fn)
  local message = message_of(fn)
  assert.is_truthy(message:find("s02_app_router_spec.lua:" .. at .. ":", 1, true), message)
  assert.is_truthy(message:find(wanted, 1, true), message)
end

local function echo(name) return function(req) return { at = name, params = req.params } end end

describe("app and router", function()
  it("blames unknown options on the caller's line and names the nearest", function()
    assert_blamed(line(), 'unknown option "time_out", did you mean "timeout"?', function() srv.app { time_out = 1 } end)
    assert_blamed(line(), 'unknown option "bodylimit", did you mean "body_limit"?', function() srv.router { bodylimit = 1 } end)
    local app = srv.app()
    assert_blamed(line(), 'did you mean "consumes"?', function() app:get("/", { consume = {} }, echo "x") end)
    assert_blamed(line(), 'did you mean "fallback"?', function() app:static("/", "public", { falback = "x" }) end)
    assert_blamed(line(), 'did you mean "sent"?', function() app:hook("sentt", print) end)
    assert_blamed(line(), 'did you mean "jitter"?', function() app:every("5m", { jiter = 1 }, print) end)
    assert_blamed(line(), "slash", function() srv.app { slash = "maybe" } end)
    assert_blamed(line(), "timeout", function() srv.app { timeout = "5 parsecs" } end)
    assert_blamed(line(), "app.lua", function() app:listen(80) end)
    assert_blamed(line(), "handler", function() app:get("/") end)
    assert_blamed(line(), "handler", function() app:post("/", nil) end)
    assert_blamed(line(), "router", function() app:mount("/x", {}) end)
    assert_blamed(line(), "middleware", function() app:use("/x") end)
    assert_blamed(line(), "middleware", function() app:use("/x", 1) end)
    assert_blamed(line(), 'begins with "/"', function() app:use("text", print) end)
    assert_blamed(line(), "FETCH", function() app:route("FETCH", "/", echo "x") end)
    assert_blamed(line(), "", function() app:get("/a/:1x", echo "x") end)
    assert_blamed(line(), "", function() app:get("/a/*rest/b", echo "x") end)
    assert_blamed(line(), "", function() app:get("/a/:x?/b", echo "x") end)
    assert_blamed(line(), "", function() app:get("no-slash", echo "x") end)
    assert_blamed(line(), "5m", function() app:every("often", print) end)
    assert_blamed(line(), "minute", function() app:every("cron: 61 * * * *", print) end)
    assert_blamed(line(), "function", function() app:error(1) end)
    assert_blamed(line(), "function", function() app:not_found() end)
    assert_blamed(line(), "function", function() app:spawn(1) end)
    assert_blamed(line(), "nope", function() app:url("nope") end)
  end)

  it("returns the app from what declares", function()
    local app, router = srv.app(), srv.router()
    local f = echo "x"
    for _, got in ipairs {
      app:get("/a", f), app:post("/a", f), app:put("/a", f), app:patch("/a", f), app:delete("/a", f), app:head("/h", f),
      app:options("/a", f), app:all("/all", f), app:route("GET", "/r", f), app:use(function() end),
      app:mount("/m", router), app:static("/s", "public"), app:error(f), app:not_found(f), app:hook("send", print),
    } do assert.equal(app, got) end
  end)

  it("takes the inner of inherited options", function()
    local app = srv.app { body_limit = 10 }
    local inner, innermost = srv.router { body_limit = 20 }, srv.router()
    local function read(req) return req:text() or "none" end
    app:post("/outer", read)
    inner:post("/inner", read)
    inner:post("/route", { body_limit = 5 }, read)
    innermost:post("/x", read)
    inner:mount("/most", innermost)
    app:mount("/m", inner)
    local t = srv.test(app)
    t:post("/outer", { body = ("x"):rep(11) }):expect(413)
    t:post("/m/inner", { body = ("x"):rep(20) }):expect(200)
    t:post("/m/inner", { body = ("x"):rep(21) }):expect(413)
    t:post("/m/route", { body = ("x"):rep(6) }):expect(413)
    t:post("/m/most/x", { body = ("x"):rep(20) }):expect(200)
    t:post("/m/most/x", { body = ("x"):rep(21) }):expect(413)
  end)

  it("inherits slash downward", function()
    local app, inner = srv.app { slash = "strict" }, srv.router { slash = "ignore" }
    app:get("/a", echo "a")
    app:get("/b/", echo "b")
    inner:get("/c", echo "c")
    app:mount("/m", inner)
    local t = srv.test(app)
    t:get("/a/"):expect(404)
    t:get("/b"):expect(404)
    t:get("/b/"):expect(200)
    t:get("/m/c/"):expect(200)
  end)

  it("matches a host without its port, a star over several labels, and fills the parameter", function()
    local app = srv.app()
    local tenant, star, fixed = srv.router { host = ":tenant.example.com" }, srv.router { host = "*.wild.test" },
      srv.router { host = "www.example.com" }
    tenant:get("/", echo "tenant")
    star:get("/", echo "star")
    fixed:get("/", echo "fixed")
    app:mount("/", tenant)
    app:mount("/", star)
    app:mount("/", fixed)
    app:get("/", echo "app")
    local t = srv.test(app)
    t:get("/", { host = "acme.example.com:8080" }):expect { at = "tenant", params = { tenant = "acme" } }
    t:get("/", { host = "ACME.example.com" }):expect { at = "tenant" }
    t:get("/", { host = "www.example.com" }):expect { at = "fixed" }
    t:get("/", { host = "a.b.wild.test" }):expect { at = "star" }
    t:get("/", { host = "a.b.example.com" }):expect { at = "app" }
    t:get("/", { host = "other" }):expect { at = "app" }
  end)

  it("allows the methods of all hosts that fit", function()
    local app, router = srv.app(), srv.router { host = "a.test" }
    router:get("/x", echo "get")
    app:mount("/", router)
    app:post("/x", echo "post")
    local t = srv.test(app)
    t:post("/x", { host = "a.test" }):expect { at = "post" }
    t:get("/x", { host = "b.test" }):expect(405):expect("allow", "POST, OPTIONS")
    t:put("/x", { host = "a.test" }):expect(405):expect("allow", "GET, HEAD, POST, OPTIONS")
    t:options("/x", { host = "a.test" }):expect(204):expect("allow", "GET, HEAD, POST, OPTIONS")
  end)

  it("shows the prefix's parameters inside unless merge_params is false", function()
    local app, open, closed = srv.app(), srv.router(), srv.router { merge_params = false }
    open:get("/x/:id", echo "open")
    closed:get("/x/:id", echo "closed")
    app:mount("/o/:org", open)
    app:mount("/c/:org", closed)
    local t = srv.test(app)
    assert.same({ org = "a", id = "1" }, t:get("/o/a/x/1"):json().params)
    assert.same({ id = "1" }, t:get("/c/a/x/1"):json().params)
  end)
end)

describe("paths", function()
  it("take one segment, several parameters in one, wildcards with and without a name", function()
    local app = srv.app()
    app:get("/users/:id", echo "user")
    app:get("/near/:lat-:lng", echo "near")
    app:get("/img/:file.png", echo "img")
    app:get("/files/*path", echo "files")
    app:get("/any/*", echo "any")
    app:get("/v::1/a**b", echo "literal")
    local t = srv.test(app)
    t:get("/users/a/b"):expect(404)
    t:get("/users/"):expect(404)
    t:get("/near/1.5-2.5"):expect { params = { lat = "1.5", lng = "2.5" } }
    t:get("/img/a.b.png"):expect { params = { file = "a.b" } }
    t:get("/img/.png"):expect(404)
    t:get("/files/a%2Fb/c%20d"):expect { params = { path = "a/b/c d" } }
    assert.same({ path = "" }, t:get("/files/"):json().params)
    assert.same({ path = "" }, t:get("/files"):json().params)
    assert.same({ ["*"] = "x/y" }, t:get("/any/x/y"):json().params)
    t:get("/v:1/a*b"):expect { at = "literal" }
    t:get("/Users/1"):expect(404)
    t:get("//users/1"):expect(404)
    t:get("/users//1"):expect(404)
    t:get("/users/%zz"):expect(400)
  end)

  it("convert int and number, and refuse what does not fit the type", function()
    local app = srv.app()
    app:get("/i/:v<int>", echo "int")
    app:get("/n/:v<number>", echo "number")
    app:get("/u/:v<uuid>", echo "uuid")
    app:get("/s/:v<slug>", echo "slug")
    app:get("/h/:v<hex>", echo "hex")
    app:get("/d/:v<date>", echo "date")
    app:get("/w/:v<en|de>", echo "words")
    app:get("/p/:v<%d+>", echo "pattern")
    app:get("/o/:v<int>?", echo "optional")
    local t = srv.test(app)
    assert.equal(7, t:get("/i/7"):json().params.v)
    assert.equal(-7, t:get("/i/-7"):json().params.v)
    t:get("/i/7.5"):expect(404)
    t:get("/i/0x10"):expect(404)
    t:get("/i/99999999999999999999"):expect(404)
    assert.equal(1.5, t:get("/n/1.5"):json().params.v)
    t:get("/n/nan"):expect(404)
    t:get("/n/inf"):expect(404)
    t:get("/u/123e4567-e89b-12d3-a456-426614174000"):expect(200)
    t:get("/u/123e4567"):expect(404)
    t:get("/s/a-1"):expect(200)
    t:get("/s/A_1"):expect(404)
    t:get("/h/0aF"):expect(200)
    t:get("/h/0g"):expect(404)
    t:get("/d/2024-02-29"):expect(200)
    t:get("/d/2023-02-29"):expect(404)
    t:get("/w/en"):expect(200)
    t:get("/w/enx"):expect(404)
    assert.equal("12", t:get("/p/12"):json().params.v)
    t:get("/p/12a"):expect(404)
    assert.same({}, t:get("/o"):json().params)
    assert.equal(5, t:get("/o/5"):json().params.v)
    t:get("/o/x"):expect(404)
  end)

  it("back up when a branch fails, and look at the method last", function()
    local app = srv.app()
    app:get("/a/b/c", echo "fixed")
    app:get("/a/:x/d", echo "param")
    app:get("/*rest", echo "rest")
    app:post("/m/fixed", echo "post fixed")
    app:get("/m/:any", echo "get any")
    app:post("/:z/only", echo "post only")
    local t = srv.test(app)
    t:get("/a/b/d"):expect { at = "param", params = { x = "b" } }
    t:get("/a/b/e"):expect { at = "rest", params = { rest = "a/b/e" } }
    t:get("/m/fixed"):expect { at = "get any", params = { any = "fixed" } }
    t:post("/m/fixed"):expect { at = "post fixed" }
    t:get("/q/only"):expect { at = "rest" }
    t:delete("/m/fixed"):expect(405):expect("allow", "^.*GET"):expect("allow", "^.*POST")
  end)

  it("take the earlier route between equals", function()
    local app = srv.app()
    app:get("/:a<int>", echo "first")
    app:get("/:b<%d+>", echo "second")
    srv.test(app):get("/1"):expect { at = "first" }
  end)

  it("serve HEAD by GET unless a HEAD route is there, and OPTIONS with Allow", function()
    local app = srv.app()
    app:get("/x", function(_, res) res:header("X-By", "get") return "body" end)
    app:head("/own", function(_, res) res:header("X-By", "head") return "" end)
    app:get("/own", function(_, res) res:header("X-By", "get") return "" end)
    app:options("/opt", function() return "mine" end)
    app:get("/opt", echo "opt")
    app:post("/post", echo "post")
    local t = srv.test(app)
    t:head("/x"):expect(200):expect("x-by", "get"):expect(""):expect("content-length", "4")
    t:head("/own"):expect("x-by", "head")
    t:options("/opt"):expect("mine")
    t:options("/x"):expect(204):expect("allow", "^.*GET"):expect("allow", "^.*HEAD"):expect("allow", "^.*OPTIONS")
    t:head("/post"):expect(405):expect("allow", "^.*POST")
    assert.is_nil(t:get("/post"):expect(405).headers.allow:find("GET"))
  end)

  it("put static folders behind all routes", function()
    local app = srv.app()
    app:static("/", "web/public")
    app:get("/*path", echo "route")
    srv.test(app):get("/hello.txt"):expect { at = "route" }
  end)

  it("refuse two routes of one pattern and method at start with both places", function()
    local app = srv.app()
    app:get("/a/:x", echo "1") local first = line()
    app:get("/a/:y", echo "2") local second = line()
    local message = message_of(function() srv.test(app) end)
    assert.is_truthy(message:find("spec.lua:" .. first, 1, true), message)
    assert.is_truthy(message:find("spec.lua:" .. second, 1, true), message)
  end)

  it("give way to a fallback when the first passes", function()
    local app = srv.app()
    app:get("/a/:x", function(req, _, next) if req.params.x == "1" then return "first" end return next() end)
    app:get("/a/:y", { fallback = true }, function(req) return "second " .. req.params.y end)
    local t = srv.test(app)
    t:get("/a/1"):expect("first")
    t:get("/a/2"):expect("second 2")
  end)
end)

describe("passing", function()
  it("runs the next matching route, or not-found", function()
    local app = srv.app()
    app:get("/a/b", function(_, _, next) return next() end)
    app:get("/a/:x", function(req, _, next) if req.query.stop then return "stopped" end return next() end)
    local t = srv.test(app)
    t:get("/a/b?stop=1"):expect("stopped")
    t:get("/a/b"):expect(404)
  end)

  it("leaves the route from a guard by next 'route'", function()
    local app, ran = srv.app(), {}
    app:get("/a/b", function(_, _, next) ran[#ran + 1] = "guard" return next "route" end,
      function() ran[#ran + 1] = "handler" return "handler" end)
    app:get("/a/:x", function() return "other" end)
    srv.test(app):get("/a/b"):expect("other")
    assert.same({ "guard" }, ran)
  end)

  it("refuses next() twice", function()
    local app = srv.app()
    app:use(function(_, _, next) next() next() end)
    app:get("/", function() return "x" end)
    srv.test(app):get("/"):expect(500)
  end)
end)

describe("routes and URLs", function()
  it("list method, path, name, file, line and middleware", function()
    local app = srv.app()
    local function guard(_, _, next) return next() end
    app:use(guard)
    app:get("/x/:id", { name = "x.show" }, guard, echo "x") local at = line()
    local route = app:routes()[1]
    assert.equal("GET", route.method)
    assert.equal("/x/:id", route.path)
    assert.equal("x.show", route.name)
    assert.is_truthy(route.file:find("s02_app_router_spec.lua", 1, true))
    assert.equal(at, route.line)
    assert.equal(2, #route.middleware)
  end)

  it("are built by name with parameters and query, encoded", function()
    local app, inner = srv.app(), srv.router()
    inner:get("/:id", { name = "news.show" }, echo "x")
    inner:get("/f/*path", { name = "file" }, echo "x")
    app:mount("/news", inner)
    assert.equal("/news/7?page=2", app:url("news.show", { id = 7 }, { page = 2 }))
    assert.equal("/news/a%2Fb", app:url("news.show", { id = "a/b" }))
    assert.equal("/news/f/a/b%20c", app:url("file", { path = "a/b c" }))
    assert_blamed(line(), "id", function() app:url("news.show", {}) end)
  end)
end)

describe("middleware", function()
  local function traced()
    local log = {}
    return log, function(name)
      return function(_, _, next)
        log[#log + 1] = name .. ">"
        local res = next()
        log[#log + 1] = "<" .. name
        return res
      end
    end
  end

  it("covers all beneath its prefix, earlier or later in the file, also 404, 405 and OPTIONS", function()
    local app, seen = srv.app(), 0
    app:get("/admin/x", echo "x")
    app:use("/admin", function(_, res, next) seen = seen + 1 res:header("X-Guard", "1") return next() end)
    app:get("/administrator", echo "y")
    local t = srv.test(app)
    t:get("/admin/x"):expect("x-guard", "1")
    t:get("/admin/nope"):expect(404):expect("x-guard", "1")
    t:post("/admin/x"):expect(405):expect("x-guard", "1")
    t:options("/admin/x"):expect(204):expect("x-guard", "1")
    t:get("/admin"):expect(404):expect("x-guard", "1")
    t:get("/administrator"):expect(200):expect("x-guard", false)
    assert.equal(5, seen)
  end)

  it("runs outside in, next() returns res, and the answer is recorded, not sent", function()
    local app, inner = srv.app(), srv.router()
    local log, traced_as = traced()
    app:use(traced_as "app")
    inner:use(traced_as "inner")
    app:use(function(_, res, next)
      local got = next()
      assert(got == res and not res.committed and res.answered)
      res:header("X-After", "1"):body("changed " .. res:body())
    end)
    inner:get("/x", traced_as "guard", function() log[#log + 1] = "handler" return "x" end)
    app:mount("/m", inner)
    srv.test(app):get("/m/x"):expect(200):expect("changed x"):expect("x-after", "1")
    assert.same({ "app>", "inner>", "guard>", "handler", "<guard", "<inner", "<app" }, log)
  end)

  it("counts what it returns as in a handler, nil leaves what next() recorded", function()
    local app = srv.app()
    app:use("/stop", function() return { stopped = true }, 403 end)
    app:use("/over", function(_, _, next) next() return "over", 202 end)
    app:use("/keep", function(_, _, next) next() end)
    app:use("/miss", function(_, _, next) next() return nil, 404 end)
    for _, path in ipairs { "/stop/x", "/over/x", "/keep/x", "/miss/x" } do app:get(path, function() return "inner", 201 end) end
    local t = srv.test(app)
    t:get("/stop/x"):expect(403):expect { stopped = true }
    t:get("/over/x"):expect(202):expect("over")
    t:get("/keep/x"):expect(201):expect("inner")
    t:get("/miss/x"):expect(404)
  end)

  it("lets an error pass up through next() to the nearest mount's app:error", function()
    local app, inner = srv.app(), srv.router()
    local seen = {}
    app:use(function(_, res, next)
      local ok, err = pcall(next)
      seen.outer_ok, seen.outer_err, seen.status = ok, res.error, res:status()
      if not ok then error(err, 0) end
    end)
    inner:use(function(_, _, next)
      local ok, err = pcall(next)
      seen.inner_ok = ok
      if not ok then error(err, 0) end
    end)
    inner:error(function(err) return { formatted = err.message }, err.status end)
    inner:get("/x", function() srv.error(418, "teapot") end)
    app:mount("/m", inner)
    srv.test(app):get("/m/x"):expect(418):expect { formatted = "teapot" }
    assert.is_false(seen.inner_ok)
    assert.is_true(seen.outer_ok)
    assert.equal(418, seen.status)
    assert.equal("teapot", seen.outer_err.message)
  end)

  it("asks outward when app:error returns nothing", function()
    local app, inner = srv.app(), srv.router()
    local asked = {}
    app:error(function(err) asked[#asked + 1] = "app" return { by = "app" }, err.status end)
    inner:error(function() asked[#asked + 1] = "inner" end)
    inner:get("/x", function() srv.error(404) end)
    app:mount("/m", inner)
    srv.test(app):get("/m/x"):expect(404):expect { by = "app" }
    assert.same({ "inner", "app" }, asked)
  end)

  it("scopes not_found by mount, the innermost that answers wins", function()
    local app, inner, silent = srv.app(), srv.router(), srv.router()
    app:not_found(function() return "app: nothing" end)
    inner:not_found(function() return { inner = true }, 410 end)
    silent:not_found(function() end)
    inner:get("/x", echo "x")
    silent:get("/x", echo "x")
    app:mount("/i", inner)
    app:mount("/s", silent)
    local t = srv.test(app)
    t:get("/zzz"):expect(404):expect("app: nothing")
    t:get("/i/zzz"):expect(410):expect { inner = true }
    t:get("/s/zzz"):expect(404):expect("app: nothing")
  end)

  it("keeps the error in a handler's app:error inside the request", function()
    local app = srv.app()
    app:error(function() error "broken formatter" end)
    app:get("/", function() srv.error(404) end)
    srv.test(app):get("/"):expect(500)
  end)
end)

describe("order", function()
  it("is match, request, middleware, validation, validated, functions, send, sent", function()
    local app, log = srv.app(), {}
    local function note(name) return function() log[#log + 1] = name end end
    app:hook("request", note "request"):hook("validated", note "validated"):hook("send", note "send"):hook("sent", note "sent")
    app:use(function(_, _, next) log[#log + 1] = "middleware" return next() end)
    app:post("/:id", { body = { a = function(v) log[#log + 1] = "validation" return v end } },
      function(_, _, next) log[#log + 1] = "guard" return next() end, function() log[#log + 1] = "handler" return "x" end)
    srv.test(app):post("/1", { json = { a = 1 } }):expect(200)
    assert.same({ "request", "middleware", "validation", "validated", "guard", "handler", "send", "sent" }, log)
  end)

  it("runs send on every status, with a last chance for headers", function()
    local app = srv.app()
    app:hook("send", function(_, res) res:header("X-Sent", tostring(res:status())) end)
    app:get("/", function() return "x" end)
    app:get("/boom", function() error "boom" end)
    local t = srv.test(app)
    t:get("/"):expect("x-sent", "200")
    t:get("/boom"):expect(500):expect("x-sent", "500")
    t:get("/none"):expect(404):expect("x-sent", "404")
    t:post("/"):expect(405):expect("x-sent", "405")
    t:options("/"):expect("x-sent", "204")
  end)

  it("gives hooks their arguments: error(err, req, res), timeout(req), the others (req, res)", function()
    local app, got = srv.app { timeout = 0.05 }, {}
    app:hook("error", function(err, req, res) got.error = { err.code, req.path, res ~= nil } end)
    app:hook("timeout", function(req, more) got.timeout = { req.path, more == nil } end)
    app:get("/boom", function() srv.error(409) end)
    app:get("/slow", function() srv.sleep(5) end)
    local t = srv.test(app)
    t:get("/boom"):expect(409)
    assert.same({ "conflict", "/boom", true }, got.error)
    t:get("/slow"):expect(503)
    assert.same({ "/slow", true }, got.timeout)
  end)

  it("scopes hooks by mount", function()
    local app, inner, count = srv.app(), srv.router(), 0
    inner:hook("send", function() count = count + 1 end)
    inner:get("/x", echo "x")
    app:get("/y", echo "y")
    app:mount("/m", inner)
    local t = srv.test(app)
    t:get("/y")
    assert.equal(0, count)
    t:get("/m/x")
    assert.equal(1, count)
  end)

  it("runs start and stop of the generation", function()
    local app, log = srv.app(), {}
    app:hook("start", function() log[#log + 1] = "start" end)
    app:hook("start", function() log[#log + 1] = "once" end, { once = true })
    app:hook("stop", function() log[#log + 1] = "stop" end)
    app:get("/", echo "x")
    local t = srv.test(app)
    assert.same({ "start", "once" }, log)
    t:close()
    assert.same({ "start", "once", "stop" }, log)
  end)

  it("runs a guard before the body is validated", function()
    local app = srv.app()
    app:use(function() return nil, 403 end)
    app:post("/", { body = { a = "string" } }, echo "x")
    srv.test(app):post("/", { json = {} }):expect(403)
  end)
end)

describe("route options", function()
  it("refuse what `consumes` does not name with 415", function()
    local app = srv.app()
    app:post("/both", { body = { a = "integer" } }, function(req) return req.valid.body end)
    app:post("/form", { body = { a = "integer" }, consumes = { "form" } }, function(req) return req.valid.body end)
    local t = srv.test(app)
    t:post("/both", { json = { a = 1 } }):expect { a = 1 }
    t:post("/both", { form = { a = 1 } }):expect { a = 1 }
    t:post("/both", { body = "a", headers = { ["Content-Type"] = "text/plain" } }):expect(415)
    t:post("/form", { json = { a = 1 } }):expect(415)
    t:post("/form", { form = { a = 1 } }):expect { a = 1 }
  end)

  it("answer 503 at the deadline, the inner timeout wins", function()
    local app = srv.app { timeout = "20s" }
    app:get("/slow", { timeout = "30ms" }, function() srv.sleep("10s") return "never" end)
    srv.test(app):get("/slow"):expect(503):expect { title = "Service Unavailable" }
  end)
end)

describe("plugins", function()
  it("stand wherever middleware may, with use, hooks and setup", function()
    local app, log = srv.app(), {}
    local plugin = {
      name = "stamp", use = function(_, res, next) res:header("X-Use", "1") return next() end,
      hooks = { send = function(_, res) res:header("X-Send", "1") end },
      setup = function(router) log[#log + 1] = router end,
    }
    app:use("/a", plugin)
    app:get("/a/x", echo "a")
    app:get("/b", plugin, echo "b")
    app:get("/c", echo "c")
    local t = srv.test(app)
    t:get("/a/x"):expect("x-use", "1"):expect("x-send", "1")
    t:get("/b"):expect("x-use", "1"):expect("x-send", "1")
    t:get("/c"):expect("x-use", false):expect("x-send", false)
    assert.same({ app, app }, log)
    assert.equal("stamp", app:routes()[1].middleware[1])
  end)

  it("check their options by rules", function()
    local rules = { header = "string = X-Stamp", ttl = "duration?" }
    assert.same({ header = "X-Stamp" }, srv.options("stamp", nil, rules))
    assert.same({ header = "Y", ttl = 2 }, srv.options("stamp", { header = "Y", ttl = "2s" }, rules))
    assert.is_truthy(message_of(function() srv.options("stamp", { heder = "Y" }, rules) end)
      :find('stamp: unknown option "heder", did you mean "header"?', 1, true))
    assert.is_truthy(message_of(function() srv.options("stamp", { header = 5 }, rules) end):find("stamp", 1, true))
  end)
end)

describe("timers and background tasks", function()
  it("run again and again, and end with cancel()", function()
    local app, runs = srv.app(), 0
    local seen = srv.event()
    local timer = app:every(0.01, function() runs = runs + 1 if runs == 3 then seen:set() end end)
    app:get("/", echo "x")
    local t = srv.test(app)
    assert.is_true(seen:wait(20))
    timer:cancel()
    local after = runs
    srv.sleep(0.05)
    assert.equal(after, runs)
    t:close()
  end)

  it("run at the start with at_start, never twice at once", function()
    local app, now, most = srv.app(), 0, 0
    local seen = srv.channel(10)
    app:every(0.01, { at_start = true }, function()
      now = now + 1
      most = math.max(most, now)
      srv.sleep(0.03)
      now = now - 1
      seen:send(1, 0)
    end)
    local t = srv.test(app)
    assert.equal(1, seen:receive(20))
    assert.equal(1, seen:receive(20))
    assert.equal(1, most)
    t:close()
  end)

  it("are tasks at load too, which begin when the app serves", function()
    local app, log = srv.app(), {}
    local task = app:spawn(function(...) log[#log + 1] = select("#", ...) return ... end, 1, nil)
    local dropped = app:spawn(function() log[#log + 1] = "dropped" end)
    app:get("/", echo "x")
    srv.sleep(0.005)
    assert.same({}, log)
    assert.equal("running", task.state)
    dropped:cancel()
    local t = srv.test(app)
    assert.equal(1, task:wait(20))
    t:close()
    t = srv.test(app)
    srv.sleep(0.005)
    assert.same({ 2, 2 }, log)
    t:close()
  end)

  it("outlive the request", function()
    local app, done = srv.app(), srv.event()
    app:get("/", function() app:spawn(function(word) srv.sleep(0.02) if word == "go" then done:set() end end, "go") return "x" end)
    local t = srv.test(app)
    t:get("/"):expect("x")
    assert.is_true(done:wait(20))
    t:close()
  end)
end)
