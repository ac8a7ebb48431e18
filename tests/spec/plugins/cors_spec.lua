local srv = require "srv"

local ORIGIN = "https://a.example"

local function routes(app)
  app:get("/ok", function() return { ok = true } end)
  app:put("/ok", function() return { ok = true } end)
  app:get("/broken", function() error "broken" end)
  app:get("/stream", function(_, res) res:write "a" end)
  app:options("/own", function() return "my own OPTIONS" end)
  return app
end

local function client_of(opts)
  local app = srv.app()
  app:use(srv.cors(opts))
  return srv.test(routes(app))
end

local function from(t, path, origin) return t:get(path, { headers = { Origin = origin } }) end

local function preflight(t, path, origin, method, headers)
  return t:options(path, { headers = {
    Origin = origin, ["Access-Control-Request-Method"] = method or "PUT", ["Access-Control-Request-Headers"] = headers,
  } })
end

local function allowed(answer) return answer.headers["access-control-allow-origin"] end

describe("srv.cors", function()
  it("lets everybody read, without credentials, on every status", function()
    local t = client_of()
    for path, status in pairs { ["/ok"] = 200, ["/broken"] = 500, ["/stream"] = 200, ["/none"] = 404 } do
      local answer = from(t, path, ORIGIN):expect(status)
      assert.equal("*", allowed(answer), path)
      assert.is_nil(answer.headers["access-control-allow-credentials"])
      assert.is_nil((answer.headers.vary or ""):find "Origin")
    end
    assert.is_nil(from(t, "/ok", ORIGIN).headers.vary)
    assert.equal("*", allowed(t:post("/ok", { headers = { Origin = ORIGIN } }):expect(405)))
  end)

  it("answers a preflight with what may be asked", function()
    local answer = preflight(client_of(), "/ok", ORIGIN, "PUT", "x-a, content-type"):expect(204)
    assert.same({ "*", "GET,HEAD,PUT,PATCH,POST,DELETE", "x-a, content-type", "Access-Control-Request-Headers" }, {
      allowed(answer), answer.headers["access-control-allow-methods"], answer.headers["access-control-allow-headers"],
      answer.headers.vary,
    })
    assert.is_nil(answer.headers["access-control-max-age"])
    assert.equal("", answer.body)
    preflight(client_of(), "/none", ORIGIN):expect(204)
  end)

  it("takes true preflights only", function()
    local t = client_of()
    t:options("/own", { headers = { Origin = ORIGIN } }):expect(200):expect "my own OPTIONS"
    t:options("/own", { headers = { ["Access-Control-Request-Method"] = "GET" } }):expect "my own OPTIONS"
    t:options("/ok"):expect(204):expect("allow", "^GET, HEAD, PUT, OPTIONS$")
    preflight(t, "/own", ORIGIN):expect(204)
  end)

  it("answers a preflight before anybody asks for credentials, wherever it stands", function()
    local app, ran = srv.app(), false
    app:use(function(_, _, next)
      ran = true
      return next()
    end, srv.basic_auth { users = { a = "b" } }, srv.cors { origins = { ORIGIN } })
    local t = srv.test(routes(app))
    assert.equal(ORIGIN, allowed(preflight(t, "/ok", ORIGIN):expect(204)))
    assert.is_false(ran)
    assert.equal(ORIGIN, allowed(from(t, "/ok", ORIGIN):expect(401)))
  end)

  it("reflects listed origins, and says that they differ on every answer", function()
    local t = client_of {
      origins = { ORIGIN, "https://*.b.example", "http://localhost:3000" }, credentials = true,
      expose = { "X-Total", "X-Page" }, max_age = "10m", methods = { "GET" }, headers = { "X-A", "X-B" },
    }
    for _, origin in ipairs { ORIGIN, "https://x.b.example", "https://x.y.b.example", "http://localhost:3000", "HTTPS://A.example" } do
      local headers = from(t, "/ok", origin):expect(200):expect("vary", "^Origin$").headers
      assert.equal(origin, headers["access-control-allow-origin"])
      assert.equal("true", headers["access-control-allow-credentials"])
      assert.equal("X-Total,X-Page", headers["access-control-expose-headers"])
    end
    local headers = preflight(t, "/ok", ORIGIN, "GET", "x-z"):expect(204).headers
    assert.same({ ORIGIN, "GET", "X-A,X-B", "600", "true", "Origin" }, {
      headers["access-control-allow-origin"], headers["access-control-allow-methods"],
      headers["access-control-allow-headers"], headers["access-control-max-age"],
      headers["access-control-allow-credentials"], headers.vary,
    })
  end)

  it("says nothing to other origins, and serves them", function()
    local t = client_of { origins = { ORIGIN, "https://*.b.example" }, credentials = true, expose = { "X-A" } }
    for _, origin in ipairs {
      "https://evil.example", "http://a.example", "https://a.example.evil.example", "https://b.example", "https://xb.example",
      "https://evil.example/.b.example", "https://evil.example#.b.example", "null", "https://a.example:1", "https://.b.example",
      "https://evil@x.b.example", "",
    } do
      local headers = from(t, "/ok", origin):expect(200):expect("vary", "^Origin$").headers
      for name in pairs(headers) do assert.is_nil(name:match "^access%-control", origin) end
    end
    t:get("/ok"):expect("vary", "^Origin$"):expect("access-control-allow-origin", false)
    preflight(t, "/ok", "https://evil.example"):expect(204):expect("vary", "^Origin$"):expect("access-control-allow-methods", false)
  end)

  it("asks a function, which may wait", function()
    local asked = 0
    local t = client_of { credentials = true, origins = function(origin, req)
      srv.sleep "1ms"
      asked = asked + 1
      if origin == "https://away.example" then return nil, srv.error.new(503, "no list") end
      return origin == ORIGIN and req.path ~= "/none"
    end }
    assert.equal(ORIGIN, allowed(from(t, "/ok", ORIGIN)))
    assert.is_nil(allowed(from(t, "/none", ORIGIN)))
    assert.is_nil(allowed(t:get("/ok"):expect("vary", "^Origin$")))
    assert.equal(2, asked)
    assert.equal(ORIGIN, allowed(preflight(t, "/ok", ORIGIN):expect(204)))
    assert.equal(3, asked)
    from(t, "/ok", "https://away.example"):expect(503)
  end)

  it("allows nobody's credentials to everybody, and warns", function()
    local warned = {}
    srv.test.stub(srv.log, "warn", function(message) warned[#warned + 1] = message end)
    local headers = from(client_of { credentials = true }, "/ok", ORIGIN).headers
    assert.equal("*", headers["access-control-allow-origin"])
    assert.is_nil(headers["access-control-allow-credentials"])
    assert.is_truthy(#warned == 1 and warned[1]:find "needs a list of origins")
  end)

  it("of a mount further in has the last word", function()
    local app, inner = srv.app(), srv.router()
    app:use(srv.cors { origins = { ORIGIN }, credentials = true, max_age = 5 })
    inner:use(srv.cors { origins = { "https://inner.example" } })
    app:mount("/inner", routes(inner))
    local t = srv.test(routes(app))
    assert.equal(ORIGIN, allowed(from(t, "/ok", ORIGIN)))
    local headers = from(t, "/inner/ok", "https://inner.example"):expect("vary", "^Origin$").headers
    assert.equal("https://inner.example", headers["access-control-allow-origin"])
    assert.is_nil(headers["access-control-allow-credentials"])
    assert.is_nil(allowed(from(t, "/inner/ok", ORIGIN)))
    headers = preflight(t, "/inner/ok", ORIGIN):expect(204).headers
    assert.is_nil(headers["access-control-allow-origin"])
    assert.is_nil(headers["access-control-max-age"])
  end)

  it("leaves a prefix alone that it does not stand on", function()
    local app = srv.app()
    app:use("/api", srv.cors())
    app:get("/api/ok", function() return "x" end)
    routes(app)
    local t = srv.test(app)
    assert.equal("*", allowed(from(t, "/api/ok", ORIGIN)))
    preflight(t, "/api/ok", ORIGIN):expect(204):expect("access-control-allow-origin", "*")
    assert.is_nil(allowed(from(t, "/ok", ORIGIN)))
    preflight(t, "/own", ORIGIN):expect(200):expect "my own OPTIONS"
  end)

  it("refuses what is no origin, no name", function()
    for _, opts in ipairs {
      { origins = {} }, { origins = { "*" } }, { origins = { "a.example" } }, { origins = { "https://a.example/" } },
      { origins = { "null" } }, { origins = { "https://*" } }, { origins = { "https://a.*.example" } }, { origins = "https://a.example" },
      { origins = { 5 } }, { methods = { "G ET" } }, { methods = {} }, { headers = { 5 } }, { expose = { "a,b" } }, { origin = "*" },
    } do
      assert.error_matches(function() srv.cors(opts) end, "^srv%.cors: ")
    end
  end)
end)
