--- API, section 14: the plugins that there are, by their options and defaults.
local srv = require "srv"

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

local function misuse(...)
  for _, fn in ipairs { ... } do
    assert.is_truthy(message_of(fn):find "s14_plugins_spec.lua:%d+: srv%.", debug.getinfo(fn, "S").linedefined .. ": " .. message_of(fn))
  end
end

local made = 0

--- Counts of one test are no other's.
local function name()
  made = made + 1
  return "s14-" .. made .. "-" .. srv.crypto.token(4)
end

local function routes(app)
  app:get("/", function() return "x" end)
  app:post("/", function() return "posted" end)
  app:get("/raised", function() srv.error(409) end)
  app:get("/broken", function() error "broken" end)
  app:get("/stream", function(_, res) res:write "a" end)
  app:get("/empty", function() return nil, 204 end)
  app:get("/q", { query = { n = "integer" } }, function() return "x" end)
  app:get("/ip", function(req) return { ip = req.ip, proto = req.proto, host = req.host, secure = req.secure, ips = req.ips } end)
  return app
end

local function client(...)
  local app = srv.app()
  app:use(...)
  return srv.test(routes(app))
end

local EVERY = { ["/"] = 200, ["/raised"] = 409, ["/broken"] = 500, ["/stream"] = 200, ["/empty"] = 204, ["/q?n=x"] = 400, ["/none"] = 404 }

describe("plugins", function()
  it("are order-free: headers stand on every status, wherever the plugin is in the file", function()
    local app = routes(srv.app())
    app:use(srv.request_id(), srv.rate_limit { name = name() })
    local t = srv.test(app)
    for path, status in pairs(EVERY) do
      local answer = t:get(path):expect(status)
      assert.is_string(answer.headers["x-request-id"], path)
      assert.is_string(answer.headers["ratelimit-policy"], path)
    end
    assert.is_string(t:patch("/"):expect(405).headers["x-request-id"])
    assert.is_string(t:options("/"):expect(204).headers["x-request-id"])
  end)

  it("stand wherever middleware may: app, prefix, router, route", function()
    local app, inner = srv.app(), srv.router()
    app:use("/prefix", srv.request_id())
    inner:use(srv.request_id())
    app:mount("/inner", routes(inner))
    app:get("/route", srv.request_id(), function() return "x" end)
    app:get("/prefix/a", function() return "x" end)
    app:get("/bare", function() return "x" end)
    local t = srv.test(app)
    for _, path in ipairs { "/prefix/a", "/prefix/none", "/inner", "/inner/none", "/route" } do assert.is_string(t:get(path).headers["x-request-id"], path) end
    assert.is_nil(t:get("/bare").headers["x-request-id"])
  end)
end)

describe("helmet", function()
  it("helmet 8's set on every status; HSTS and upgrade-insecure-requests on TLS only; each a string or false", function()
    local t = client(srv.proxy_trust { "loopback" }, srv.helmet())
    for path, status in pairs(EVERY) do
      local headers = t:get(path):expect(status).headers
      for field, value in pairs {
        ["cross-origin-opener-policy"] = "same-origin", ["cross-origin-resource-policy"] = "same-origin", ["origin-agent-cluster"] = "?1",
        ["referrer-policy"] = "no-referrer", ["x-content-type-options"] = "nosniff", ["x-dns-prefetch-control"] = "off", ["x-download-options"] = "noopen",
        ["x-frame-options"] = "SAMEORIGIN", ["x-permitted-cross-domain-policies"] = "none", ["x-xss-protection"] = "0",
      } do assert.equal(value, headers[field], path) end
      assert.is_truthy(headers["content-security-policy"]:find("default-src 'self';base-uri 'self';", 1, true))
      assert.is_nil(headers["content-security-policy"]:find "upgrade%-insecure")
      assert.is_nil(headers["strict-transport-security"])
      assert.is_nil(headers["cross-origin-embedder-policy"])
    end
    t:get("/", { ip = "127.0.0.1", headers = { ["X-Forwarded-For"] = "203.0.113.7", ["X-Forwarded-Proto"] = "https" } })
      :expect("strict-transport-security", "^max%-age=31536000; includeSubDomains$"):expect("content-security-policy", "^.*;upgrade%-insecure%-requests$")
    t = client(srv.helmet { csp = "default-src 'none'", frame = false, referrer = "origin", coep = "require-corp" })
    t:get("/"):expect("content-security-policy", "^default%-src 'none'$"):expect("x-frame-options", false):expect("referrer-policy", "^origin$")
      :expect("cross-origin-embedder-policy", "^require%-corp$")
    misuse(function() srv.helmet { csp = true } end, function() srv.helmet { hsts = "soon" } end, function() srv.helmet { frame = "a\nb" } end)
  end)
end)

describe("cors", function()
  local function from(origin) return { headers = { Origin = origin } } end
  local function preflight(origin) return { headers = { Origin = origin, ["Access-Control-Request-Method"] = "PUT", ["Access-Control-Request-Headers"] = "x-a" } } end

  it("origins = \"*\" on every status; headers reflected; only true preflights", function()
    local t = client(srv.cors())
    for path, status in pairs(EVERY) do t:get(path, from "https://a.example"):expect(status):expect("access-control-allow-origin", "^%*$") end
    t:options("/", preflight "https://a.example"):expect(204):expect("access-control-allow-methods", "^GET,HEAD,PUT,PATCH,POST,DELETE$")
      :expect("access-control-allow-headers", "^x%-a$"):expect("access-control-max-age", false)
    t:options("/", from "https://a.example"):expect(204):expect("allow", "^GET, HEAD, POST"):expect("access-control-allow-methods", false)
  end)

  it("a list with https://*.b.example, or fn(origin, req); credentials, expose, max_age", function()
    local opts = { credentials = true, expose = { "X-A" }, max_age = "1m" }
    for _, origins in ipairs { { "https://a.example", "https://*.b.example" }, function(origin) return origin:find "[ax]%.?b?%.example" ~= nil end } do
      opts.origins = origins
      local t = client(srv.cors(opts))
      for _, origin in ipairs { "https://a.example", "https://x.b.example" } do
        local headers = t:get("/", from(origin)):expect("vary", "Origin"):expect("access-control-expose-headers", "X-A").headers
        assert.same({ origin, "true" }, { headers["access-control-allow-origin"], headers["access-control-allow-credentials"] })
        t:options("/", preflight(origin)):expect("access-control-max-age", "^60$")
      end
      t:get("/", from "https://evil.example.org"):expect(200):expect("vary", "Origin"):expect("access-control-allow-origin", false)
      t:get("/"):expect("vary", "Origin")
    end
  end)

  it("credentials without a list: * alone, and a warning at start", function()
    local warned = 0
    srv.test.stub(srv.log, "warn", function() warned = warned + 1 end)
    client(srv.cors { credentials = true }):get("/", from "https://a.example"):expect("access-control-allow-origin", "^%*$"):expect("access-control-allow-credentials", false)
    assert.equal(1, warned)
    misuse(function() srv.cors { origins = "https://a.example" } end, function() srv.cors { origins = { "*" } } end, function() srv.cors { methods = { "a b" } } end)
  end)
end)

describe("etag", function()
  it("weak = true, limit = \"1MiB\" of body, a set tag stays", function()
    local app = srv.app()
    app:use(srv.etag())
    app:get("/big", function() return ("x"):rep(1024 * 1024 + 1) end)
    app:get("/most", function() return ("x"):rep(1024 * 1024) end)
    app:get("/own", function(_, res) return res:etag("mine"):text "x" end)
    local t = srv.test(routes(app))
    local tag = t:get("/"):expect("etag", '^W/"').headers.etag
    t:get("/", { headers = { ["If-None-Match"] = tag } }):expect(304)
    t:get("/most"):expect("etag", '^W/"')
    t:get("/big"):expect("etag", false)
    t:get("/own"):expect("etag", '^"mine"$')
    for _, path in ipairs { "/raised", "/broken", "/stream", "/empty", "/none" } do t:get(path):expect("etag", false) end
    client(srv.etag { weak = false }):get("/"):expect("etag", '^"')
  end)
end)

describe("basic_auth, bearer, jwt", function()
  local KEY = ("k"):rep(32)

  local function asked(plugin)
    local app = srv.app()
    app:use(plugin)
    app:get("/who", function(req) return { user = req.state.user or srv.null } end)
    return srv.test(app)
  end

  local function as(value) return { headers = { Authorization = value } } end

  it("basic_auth: users or check; realm, optional; the user is in req.state.user", function()
    local pair = "Basic " .. srv.crypto.encode("base64", "ann:secret")
    for _, opts in ipairs { { users = { ann = "secret" } }, { check = function(user, password) return password == "secret" and user end } } do
      local t = asked(srv.basic_auth(opts))
      t:get("/who"):expect(401):expect("www-authenticate", '^Basic realm="api", charset="UTF%-8"$')
      t:get("/who", as(pair)):expect { user = "ann" }
      t:get("/who", as("Basic " .. srv.crypto.encode("base64", "ann:other"))):expect(401)
    end
    asked(srv.basic_auth { users = { ann = "secret" }, optional = true }):get("/who"):expect { user = srv.null }
    asked(srv.basic_auth { users = { ann = "secret" }, realm = "shop" }):get("/who"):expect("www-authenticate", '^Basic realm="shop"')
    misuse(function() srv.basic_auth {} end, function() srv.basic_auth { users = {} } end)
  end)

  it("bearer: check(token, req) gives the user", function()
    local t = asked(srv.bearer { check = function(token, req) return token == "good" and { path = req.path } end })
    t:get("/who"):expect(401):expect("www-authenticate", '^Bearer realm="api"$')
    t:get("/who", as "Bearer good"):expect { user = { path = "/who" } }
    t:get("/who", as "Bearer bad"):expect(401):expect("www-authenticate", '^Bearer realm="api", error="invalid_token"')
    misuse(function() srv.bearer {} end)
  end)

  it("jwt: key, one alg, issuer, audience, leeway = \"30s\", cookie", function()
    local function sign(claims, alg) return srv.crypto.jwt_sign(claims, { key = alg and KEY .. KEY or KEY, alg = alg or "HS256" }) end
    local t = asked(srv.jwt { key = KEY, alg = "HS256", issuer = "us", audience = "app", cookie = "token" })
    local good = { iss = "us", aud = "app", sub = "ann" }
    t:get("/who", as("Bearer " .. sign(good))):expect { user = { sub = "ann" } }
    t:get("/who", { cookies = { token = sign(good) } }):expect(200)
    t:get("/who", as("Bearer " .. sign({ iss = "us", aud = "app", exp = srv.now() - 10 }))):expect(200)
    for _, claims in ipairs { { iss = "them", aud = "app" }, { iss = "us", aud = "other" }, { iss = "us", aud = "app", exp = srv.now() - 40 } } do
      t:get("/who", as("Bearer " .. sign(claims))):expect(401)
    end
    t:get("/who", as("Bearer " .. sign(good, "HS512"))):expect(401):expect { code = "bad_alg" }
    misuse(function() srv.jwt { key = KEY } end, function() srv.jwt { alg = "HS256" } end, function() srv.jwt { key = "short", alg = "HS256" } end)
  end)
end)

describe("request_id", function()
  it("sends the id back in `header`, and takes it from `trust` only; traceparent is understood", function()
    local t = client(srv.request_id { header = "X-Id", trust = { "10.0.0.0/8" } })
    t:get("/", { ip = "10.1.2.3", headers = { ["X-Id"] = "theirs" } }):expect("x-id", "theirs")
    assert.is_true(t:get("/", { ip = "192.0.2.1", headers = { ["X-Id"] = "theirs" } }).headers["x-id"] ~= "theirs")
    local trace = "0af7651916cd43dd8448eb211c80319c"
    t:get("/", { ip = "10.1.2.3", headers = { traceparent = "00-" .. trace .. "-b7ad6b7169203331-01" } }):expect("x-id", trace)
    assert.is_true(client(srv.request_id()):get("/", { ip = "127.0.0.1", headers = { ["X-Request-Id"] = "theirs" } }).headers["x-request-id"] ~= "theirs")
    misuse(function() srv.request_id { header = "a b" } end, function() srv.request_id { trust = { "nonsense" } } end, function() srv.request_id { trust = "10.0.0.0/8" } end)
  end)
end)

describe("rate_limit", function()
  it("limit = 60 in window = \"1m\"; 429, Retry-After, RateLimit and RateLimit-Policy", function()
    local id = name()
    local t, answer = client(srv.rate_limit { name = id }), nil
    t:get("/"):expect("ratelimit-policy", ('"%s"; q=60; w=60'):format(id)):expect("ratelimit", ('^"%s"; r=59; t=%%d+$'):format((id:gsub("%p", "%%%0"))))
    for _ = 2, 61 do answer = t:get("/") end
    answer:expect(429):expect("retry-after", "^%d+$"):expect("content-type", "^application/problem%+json")
  end)

  it("counts by client address, IPv6 by /64; key and cost say otherwise", function()
    local t = client(srv.rate_limit { limit = 1, name = name() })
    for ip, status in pairs { ["192.0.2.1"] = 200, ["192.0.2.2"] = 200, ["2001:db8:1:1::1"] = 200, ["2001:db8:1:2::1"] = 200 } do
      t:get("/", { ip = ip }):expect(status)
    end
    t:get("/", { ip = "2001:db8:1:1:ffff::9" }):expect(429)
    t = client(srv.rate_limit { limit = 3, name = name(), key = function(req) return req:header "x-key" end, cost = function(req) return req.query.cost and 3 or 1 end })
    for _ = 1, 5 do t:get("/"):expect(200) end
    t:get("/?cost=1", { headers = { ["X-Key"] = "a" } }):expect(200):expect("ratelimit", "^.*r=0; ")
    t:get("/", { headers = { ["X-Key"] = "a" } }):expect(429)
    t:get("/", { headers = { ["X-Key"] = "b" } }):expect(200):expect("ratelimit", "^.*r=2; ")
  end)

  it("a key's window starts with its first request, and ends", function()
    local clock = srv.test.clock()
    local t = client(srv.rate_limit { limit = 1, window = "1s", name = name() })
    t:get("/"):expect(200)
    clock:advance "900ms"
    t:get("/"):expect(429)
    clock:advance "200ms"
    t:get("/"):expect(200)
  end)

  it("misuse is blamed on the line", function()
    misuse(function() srv.rate_limit { limit = 0 } end, function() srv.rate_limit { limit = "60" } end, function() srv.rate_limit { window = "10ms" } end,
      function() srv.rate_limit { key = "ip" } end, function() srv.rate_limit { cost = -1 } end, function() srv.rate_limit { name = 'a"b' } end)
  end)
end)

describe("session", function()
  local function sessions(opts)
    local app = srv.app()
    app:use(srv.session(opts))
    app:get("/count", function(req)
      req.session.n = (req.session.n or 0) + 1
      return { n = req.session.n }
    end)
    app:get("/read", function(req) return { n = req.session.n or srv.null } end)
    app:post("/login", function(req)
      req.session:rotate().user = "ann"
      return "in"
    end)
    app:post("/logout", function(req)
      req.session:destroy()
      return "out"
    end)
    app:get("/flash", function(req)
      req.session:flash("note", "once")
      return "x"
    end)
    app:get("/heard", function(req) return { note = req.session:flash "note" or srv.null } end)
    return srv.test(app)
  end

  for _, store in ipairs { "cache", "cookie" } do
    it("in the " .. store .. ": a table, saved when changed; rotate, destroy, flash", function()
      local t = sessions { store = store }
      local line = t:get("/count"):expect { n = 1 }.headers["set-cookie"]
      assert.is_truthy(line:find "^sid=" and line:find "Max%-Age=1209600" and line:find "HttpOnly" and line:find "SameSite=Lax", line)
      t:get("/count"):expect { n = 2 }
      assert.is_nil(t:get("/read"):expect { n = 2 }.headers["set-cookie"])
      local before = t.cookies.sid
      t:post("/login"):expect(200)
      assert.is_true(t.cookies.sid ~= before)
      t:get("/flash")
      t:get("/heard"):expect { note = "once" }
      assert.equal(srv.null, t:get("/heard"):json().note)
      t:post("/logout"):expect("set-cookie", "^sid=;.*Max%-Age=0")
      assert.equal(srv.null, t:get("/read"):json().n)
      assert.is_nil(t.cookies.sid)
    end)
  end

  it("ttl = \"browser\" has no Max-Age; name and cookie are the app's to say; a cookie of ours only", function()
    local line = sessions { ttl = "browser", name = "mine", cookie = { path = "/a", secure = true, same_site = "strict" } }:get("/count").headers["set-cookie"]
    assert.is_nil(line:find "Max%-Age")
    for _, part in ipairs { "^mine=", "Path=/a", "Secure", "SameSite=Strict" } do assert.is_truthy(line:find(part), line) end
    for _, store in ipairs { "cache", "cookie" } do
      local t = sessions { store = store }
      t:get("/count", { cookies = { sid = "chosen-by-somebody" } }):expect { n = 1 }
      assert.is_true(t.cookies.sid ~= "chosen-by-somebody")
    end
  end)

  it("csrf = true: other sites' pages change nothing, unless it is off", function()
    local cross = { headers = { ["Sec-Fetch-Site"] = "cross-site" } }
    sessions():post("/login", cross):expect(403)
    sessions { csrf = false }:post("/login", cross):expect(200)
  end)

  it("what is in a cookie cannot be read", function()
    local app = srv.app()
    app:use(srv.session { store = "cookie" })
    app:get("/", function(req)
      req.session.secret = "plain-secret"
      return "x"
    end)
    local line = srv.test(app):get("/").headers["set-cookie"]
    assert.is_nil(line:find "plain")
    assert.is_nil((srv.crypto.decode("base64url", line:match "^sid=([^;]*)") or ""):find "plain")
  end)

  it("misuse is blamed on the line", function()
    misuse(function() srv.session { ttl = "long" } end, function() srv.session { ttl = 0 } end, function() srv.session { store = "redis" } end,
      function() srv.session { cookie = { max_age = 5 } } end, function() srv.session { csrf = 1 } end)
    for _, fn in ipairs { function() srv.session { cookie = { htp_only = true } } end, function() srv.session { name = "a b" } end } do
      assert.is_truthy(message_of(fn):find "s14_plugins_spec.lua:%d+: ", message_of(fn))
    end
  end)
end)

describe("csrf", function()
  it("by Sec-Fetch-Site and Origin, 403; our own origin, `origins` and programs pass", function()
    local t = client(srv.csrf { origins = { "https://app.example" } })
    for headers, status in pairs {
      [{}] = 200, [{ ["Sec-Fetch-Site"] = "same-origin" }] = 200, [{ ["Sec-Fetch-Site"] = "none" }] = 200, [{ ["Sec-Fetch-Site"] = "cross-site" }] = 403,
      [{ ["Sec-Fetch-Site"] = "same-site" }] = 403, [{ Origin = "http://test.local" }] = 200, [{ Origin = "https://evil.example" }] = 403, [{ Origin = "null" }] = 403,
      [{ Origin = "https://app.example", ["Sec-Fetch-Site"] = "cross-site" }] = 200,
    } do t:post("/", { headers = headers }):expect(status) end
    t:get("/", { headers = { ["Sec-Fetch-Site"] = "cross-site" } }):expect(200)
    misuse(function() srv.csrf { origins = { "app.example" } } end, function() srv.csrf { origins = "https://a" } end)
  end)
end)

describe("proxy_trust", function()
  it("a list of CIDRs, \"loopback\", \"private\"; ip ips proto secure host follow", function()
    local t = client(srv.proxy_trust { "loopback", "10.0.0.0/8" })
    local headers = { ["X-Forwarded-For"] = "203.0.113.7, 10.9.9.9", ["X-Forwarded-Proto"] = "https", ["X-Forwarded-Host"] = "app.example" }
    t:get("/ip", { ip = "127.0.0.1", headers = headers }):expect { ip = "203.0.113.7", proto = "https", host = "app.example", secure = true, ips = { "203.0.113.7", "10.9.9.9" } }
    t:get("/ip", { ip = "192.0.2.1", headers = headers }):expect { ip = "192.0.2.1", proto = "http", host = "test.local", secure = false }
    client(srv.proxy_trust { "private" }):get("/ip", { ip = "192.168.1.1", headers = headers }):expect { ip = "203.0.113.7" }
    srv.test(routes(srv.app())):get("/ip", { ip = "127.0.0.1", headers = headers }):expect { ip = "127.0.0.1" }
  end)

  it("for the app or one router", function()
    local app, inner = srv.app(), srv.router()
    inner:use(srv.proxy_trust { "loopback" })
    app:mount("/inner", routes(inner))
    routes(app)
    local t, opts = srv.test(app), { ip = "127.0.0.1", headers = { ["X-Forwarded-For"] = "203.0.113.7" } }
    t:get("/inner/ip", opts):expect { ip = "203.0.113.7" }
    t:get("/ip", opts):expect { ip = "127.0.0.1" }
    misuse(function() srv.proxy_trust() end, function() srv.proxy_trust {} end, function() srv.proxy_trust { "lopback" } end, function() srv.proxy_trust { 5 } end)
  end)

  it("what is counted and limited follows it", function()
    local t = client(srv.proxy_trust { "loopback" }, srv.rate_limit { limit = 1, name = name() })
    local function ask(client_ip) return t:get("/", { ip = "127.0.0.1", headers = { ["X-Forwarded-For"] = client_ip } }) end
    ask "203.0.113.1":expect(200)
    ask "203.0.113.1":expect(429)
    ask "203.0.113.2":expect(200)
  end)
end)

describe("health and metrics", function()
  it("live = \"/livez\", ready = \"/readyz\", checks: nil, err is not ready", function()
    local fault = srv.error.new(503, "secret host is away")
    local t = client(srv.health { checks = { good = function() return true end, bad = function() return nil, fault end } })
    t:get("/livez"):expect(200)
    local answer = t:get("/readyz"):expect(503):expect { checks = { good = "ok", bad = "failed" } }
    assert.is_nil(answer.body:find "secret")
    client(srv.health { live = "/alive", ready = "/go" }):get("/go"):expect(200)
    misuse(function() srv.health { checks = { 5 } } end, function() srv.health { checks = { db = 5 } } end)
  end)

  it("path = \"/metrics\", allow = { \"loopback\", \"private\" }", function()
    local t = client(srv.metrics())
    t:get("/metrics", { ip = "127.0.0.1" }):expect(200):expect("content-type", "^text/plain")
    t:get("/metrics", { ip = "10.1.1.1" }):expect(200)
    t:get("/metrics", { ip = "203.0.113.1" }):expect(403)
    client(srv.metrics { path = "/m", allow = { "203.0.113.0/24" } }):get("/m", { ip = "203.0.113.1" }):expect(200)
    misuse(function() srv.metrics { allow = { "anybody" } } end)
  end)

  it("come before the app's own wildcard routes, as the gateway wants", function()
    local app = srv.app()
    app:use(srv.health(), srv.metrics())
    app:all("/*path", function() return "wild" end)
    local t = srv.test(app)
    t:get("/livez"):expect { status = "ok" }
    t:get("/else"):expect "wild"
  end)
end)
