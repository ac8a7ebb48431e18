local srv = require "srv"

--- An app with one GET route for each pattern, that answers with its pattern and parameters.
local function app_of(patterns, opts)
  local app = srv.app(opts)
  for _, pattern in ipairs(patterns) do
    app:get(pattern, function(req) return { route = pattern, params = req.params } end)
  end
  return srv.test(app)
end

--- The message of what FN raises, with its position, which assert.error_matches takes away.
local function message_of(fn)
  local ok, raised = pcall(fn)
  return not ok and tostring(raised) or "no error"
end

describe("an app that is written as for another framework", function()
  local function told(want, fn)
    local ok, message = pcall(fn, srv.app())
    assert.is_false(ok)
    assert.truthy(tostring(message):find(want, 1, true), tostring(message))
    assert.truthy(tostring(message):find("router_spec.lua:", 1, true))
  end

  it("is told of the colon", function()
    for _, name in ipairs { "get", "post", "all", "route", "use", "mount", "static", "hook", "error", "not_found" } do
      told(("app.%s: methods of an app stand behind a colon: app:%s(...)"):format(name, name),
        function(app) app[name]("/x", function() end) end)
    end
  end)

  it("is told where methods, guards and patterns stand", function()
    local function show() end
    told("app:route: methods come before the path", function(app) app:route("/x", show) end)
    told("app:route: methods come before the path", function(app) app:route({ "/x", "/y" }, show) end)
    told("guards are arguments, no list: app:get(path, guard, another, handler)", function(app) app:get("/x", { show, show }, show) end)
    for _, path in ipairs { "/u/:id(%d+)", "/u/:id(\\d+)", "/u/:id(\\w{3}|a)" } do
      told(":id<int>, or a Lua pattern, :id<%d+>", function(app) app:get(path, show) end)
    end
    srv.app():get("/call/:name(now)", show)
  end)

  it("is told how a router is mounted", function()
    told("a router is mounted: app:mount(path, router)", function(app) app:use("/x", srv.router()) end)
    told("a router is mounted: app:mount(path, router)", function(app) app:get("/x", srv.router()) end)
  end)

  it("is told who answers errors, instead of a function of four parameters that never gets one", function()
    local function format(err, _, res, next) return next and res:json(err) end -- luacheck: ignore
    told("app:error(function(err, req, res) ... end)", function(app) app:use(format) end)
    told("app:error(function(err, req, res) ... end)", function(app) app:get("/x", format) end)
    told("app:error(function(err, req, res) ... end)", function(app) app:use { name = "x", use = format } end)
    srv.app():error(format):use(function(...) return select(3, ...)() end)
  end)
end)

describe("router", function()
  it("takes fixed text before types, types before parameters, parameters before wildcards", function()
    local t = app_of { "/*rest", "/:any", "/:n<int>", "/fixed", "/:name.png" }
    t:get("/fixed"):expect { route = "/fixed" }
    t:get("/7"):expect { route = "/:n<int>", params = { n = 7 } }
    t:get("/a.png"):expect { route = "/:name.png", params = { name = "a" } }
    t:get("/x"):expect { route = "/:any", params = { any = "x" } }
    t:get("/x/y"):expect { route = "/*rest", params = { rest = "x/y" } }
  end)

  it("decodes a parameter once", function()
    local t = app_of { "/users/:id" }
    t:get("/users/a%2Fb"):expect { params = { id = "a/b" } }
    t:get("/users/a%252Fb"):expect { params = { id = "a%2Fb" } }
    t:get("/users/%E0%A4%A"):expect(400)
  end)

  it("leaves an optional segment out", function()
    local t = app_of { "/opt/:name?" }
    t:get("/opt"):expect(200):expect('{"params":{},"route":"/opt/:name?"}')
    t:get("/opt/x"):expect { params = { name = "x" } }
  end)

  it("is 404 where a type does not fit", function()
    local t = app_of { "/n/:id<int>", "/w/:lang<en|de>", "/p/:code<%u%d+>" }
    t:get("/n/ab"):expect(404)
    t:get("/w/fr"):expect(404)
    t:get("/w/de"):expect { params = { lang = "de" } }
    t:get("/p/A12"):expect { params = { code = "A12" } }
    t:get("/p/a12"):expect(404)
  end)

  it("ignores a slash at the end unless told otherwise", function()
    app_of({ "/a" }):get("/a/"):expect(200)
    app_of({ "/a" }, { slash = "strict" }):get("/a/"):expect(404)
    local moved = app_of({ "/a" }, { slash = "redirect" })
    moved:get("/a/?x=1"):expect(301):expect("location", "/a?x=1")
    app_of({ "/a" }):get("//a"):expect(404)
  end)

  it("serves HEAD by GET, answers OPTIONS, refuses other methods with Allow", function()
    local app = srv.app()
    app:get("/items", function() return "list" end)
    app:post("/items", function() return "made", 201 end)
    app:delete("/items", function() return nil, 204 end)
    local t = srv.test(app)
    t:head("/items"):expect(200):expect(""):expect("content-length", "4")
    t:options("/items"):expect(204):expect("allow", "DELETE, GET, HEAD, POST, OPTIONS"):expect("")
    t:put("/items"):expect(405):expect("allow", "^.*DELETE.*POST")
    t:options("/nope"):expect(404)
    t:head("/nope"):expect(404):expect("")
    t:options("*"):expect(204)
  end)

  it("takes any method that the parser knows, and several paths", function()
    local app = srv.app()
    app:route({ "GET", "PURGE" }, { "/a", "/b" }, function(req) return req.method .. " " .. req.path end)
    local t = srv.test(app)
    t:get("/a"):expect("GET /a")
    t:request("PURGE", "/b"):expect("PURGE /b")
    assert.matches('router_spec.lua:%d+: .*"FETCH" is no method', message_of(function() app:route("FETCH", "/", function() end) end))
  end)

  it("refuses a Lua pattern that is malformed or could be held up, and gives it no more than 1,000 bytes", function()
    local app = srv.app()
    local function declare(path) return message_of(function() app:get(path, function() return "x" end) end) end
    assert.matches("router_spec.lua:%d+: .*malformed pattern \"%[%%d\": a %[ has no %]", declare "/a/:id<[%d>")
    assert.matches("router_spec.lua:%d+: .*may try too many ways", declare "/a/:id<%w+%-?%w+%-?%w+%-?%w+>")
    app:get("/b/:id<[%w-]+%-%d+>", function(req) return req.params.id end)
    local t = srv.test(app)
    t:get("/b/a-title-7"):expect "a-title-7"
    t:get("/b/" .. ("x"):rep(996) .. "-77"):expect(200)
    t:get("/b/" .. ("x"):rep(999) .. "-77"):expect(404)
  end)

  it("passes on with next(), and refuses two equal routes unless the second is a fallback", function()
    local app = srv.app()
    app:get("/a/:id<int>", function(req, _, next) if req.params.id == 1 then return "one" end return next() end)
    app:get("/a/:id", function(req) return "any " .. req.params.id end)
    app:get("/b", function(_, _, next) return next() end)
    app:get("/c", function(_, _, next) return next "route" end, function() return "never" end)
    app:get("/c", { fallback = true }, function() return "second" end)
    local t = srv.test(app)
    t:get("/a/1"):expect("one")
    t:get("/a/2"):expect("any 2")
    t:get("/b"):expect(404)
    t:get("/c"):expect("second")
    app:get("/b", function() return "again" end)
    assert.matches("router_spec.lua:%d+: the route GET /b is declared already, at .*router_spec.lua:%d+", message_of(function() srv.test(app) end))
  end)

  it("runs middleware around a route that was passed on only once", function()
    local app, ran = srv.app(), {}
    app:use(function(_, _, next) ran[#ran + 1] = "app" return next() end)
    app:use("/a", function(_, _, next) ran[#ran + 1] = "a" return next() end)
    app:get("/a/:x", function(_, _, next) return next() end)
    app:get("/*", function() return "rest" end)
    srv.test(app):get("/a/1"):expect("rest")
    assert.same({ "app", "a" }, ran)
  end)

  it("joins mounts, and shows their parameters unless told otherwise", function()
    local app, inner, alone = srv.app(), srv.router(), srv.router { merge_params = false }
    local function show(req)
      return { params = req.params, base = req.base_url, url = req.url, original = req.original_url, path = req.path }
    end
    inner:get("/members/:m", show)
    alone:get("/members/:m", show)
    app:mount("/orgs/:org", inner)
    app:mount("/iso/:org", alone)
    local t = srv.test(app)
    t:get("/orgs/o1/members/m1?x=1"):expect {
      params = { org = "o1", m = "m1" }, base = "/orgs/o1", url = "/members/m1?x=1",
      original = "/orgs/o1/members/m1?x=1", path = "/orgs/o1/members/m1",
    }
    t:get("/iso/o1/members/m1"):expect(function(r) return r:json().params.org == nil and r:json().params.m == "m1" end)
  end)

  it("lets middleware outside see what an isolated router does not", function()
    local app, alone = srv.app(), srv.router { merge_params = false }
    local seen
    app:use(function(req, _, next)
      local res = next()
      seen = req.params.org
      return res
    end)
    alone:get("/:m", function(req) return { params = req.params } end)
    app:mount("/iso/:org", alone)
    srv.test(app):get("/iso/o1/m1"):expect('{"params":{"m":"m1"}}')
    assert.equal("o1", seen)
  end)

  it("matches the host, and fills its parameters", function()
    local app, tenants, admin = srv.app(), srv.router { host = ":tenant.example.com" }, srv.router { host = "admin.example.com" }
    tenants:get("/", function(req) return "tenant " .. req.params.tenant end)
    admin:get("/", function() return "admin" end)
    app:mount("/", tenants)
    app:mount("/", admin)
    app:get("/", function() return "any" end)
    app:get("/only", function() return "only" end)
    local t = srv.test(app)
    t:get("/", { host = "acme.example.com:8080" }):expect("tenant acme")
    t:get("/", { host = "ADMIN.example.com" }):expect("admin")
    t:get("/", { host = "example.org" }):expect("any")
    t:get("/only", { host = "acme.example.com" }):expect("only")
  end)

  it("builds URLs by name", function()
    local app, news = srv.app(), srv.router()
    news:get("/:id<int>/:slug?", { name = "news.show" }, function() return app:url("news.show", { id = 8 }) end)
    app:mount("/news", news)
    assert.equal("/news/7/a%20b?page=2&tag=x&tag=y", app:url("news.show", { id = 7, slug = "a b" }, { page = 2, tag = { "x", "y" } }))
    srv.test(app):get("/news/1"):expect("/news/8")
    assert.matches("router_spec.lua:%d+: app:url: news.show", message_of(function() app:url("news.show", { id = "x" }) end))
    assert.matches('no route has the name "nope"', message_of(function() app:url("nope") end))
  end)

  it("lists its routes with their places", function()
    local app = srv.app()
    app:use({ name = "guard", use = function(_, _, next) return next() end })
    app:get("/a", { name = "a" }, function() return "a" end)
    local route = app:routes()[1]
    assert.equal("GET /a a", route.method .. " " .. route.path .. " " .. route.name)
    assert.matches("router_spec.lua$", route.file)
    assert.same({ "guard" }, route.middleware)
  end)

  it("names the nearest option that it knows", function()
    assert.matches('router_spec.lua:%d+: srv.app: unknown option "time_out", did you mean "timeout"?', message_of(function() srv.app { time_out = 1 } end))
    assert.matches('router_spec.lua:%d+: app:route: unknown option "timout", did you mean "timeout"?', message_of(function() srv.app():get("/", { timout = 1 }, function() end) end))
    assert.matches("router_spec.lua:%d+: app:route", message_of(function() srv.app():get("users", function() end) end))
    assert.matches("router_spec.lua:%d+: app:mount: a router is missing", message_of(function() srv.app():mount("/x", true) end))
    assert.matches("router_spec.lua:%d+: app:route: the handler is missing", message_of(function() srv.app():get("/x") end))
    assert.matches("app:listen is the server's", message_of(function() srv.app():listen(80) end))
  end)
end)
