--- API, section 3: the request as handlers see it.
local srv = require "srv"

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

--- A client of an app whose one route runs FN.
local function app_with(fn, opts, path)
  local app = srv.app()
  app:all(path or "/*", opts or {}, fn)
  return srv.test(app)
end

local function post(fn, body, content_type, opts)
  local headers = content_type and { ["Content-Type"] = content_type } or {}
  return app_with(fn, opts):post("/", { body = body, headers = headers })
end

describe("request fields", function()
  it("tell method, path and URLs, which mounts do not change", function()
    local app, org, members = srv.app(), srv.router(), srv.router()
    local function show(req)
      return { req.method, req.path, req.original_url, req.base_url, req.url, req.route.path, req.route.name, req.route.method }
    end
    members:get("/:m", { name = "m" }, show)
    org:mount("/members", members)
    org:get("/", { name = "o" }, show)
    app:mount("/orgs/:org", org)
    local t = srv.test(app)
    assert.same({ "GET", "/orgs/o%31/members/m1", "/orgs/o%31/members/m1?x=1", "/orgs/o%31/members", "/m1?x=1",
      "/orgs/:org/members/:m", "m", "GET" }, t:get("/orgs/o%31/members/m1?x=1"):json())
    assert.same({ "GET", "/orgs/o1", "/orgs/o1?x=1", "/orgs/o1", "/?x=1", "/orgs/:org", "o", "GET" },
      t:get("/orgs/o1?x=1"):json())
  end)

  it("give the query with plus as space, repeats as arrays, plain brackets, bad escapes as they are", function()
    local t = app_with(function(req) return req.query end)
    assert.same({ a = "1 2", b = { "x", "y", "z" }, ["c[d]"] = "e", f = "%zz", g = "", ["h i"] = "ü" },
      t:get("/?a=1+2&b=x&b=y&b=z&c[d]=e&f=%zz&g&h%20i=%C3%BC"):json())
    assert.equal("{}", t:get("/").body)
  end)

  it("refuse a query of more than 1,000 pairs", function()
    local t = app_with(function(req) return { n = #req.query.a } end)
    t:get("/?" .. ("a=1&"):rep(1000)):expect { n = 1000 }
    t:get("/?" .. ("a=1&"):rep(1001)):expect(400)
  end)

  it("give cookies: the first of a name wins, decoded, signed ones are not there", function()
    local app = srv.app()
    app:get("/", function(req) return req.cookies end)
    app:get("/set", function(_, res) res:cookie("s", "secret", { signed = true }) return "set" end)
    app:get("/read", function(req)
      local value = req:cookie("s", { signed = true })
      return { value = value == nil and "nil" or value }
    end)
    local t = srv.test(app)
    assert.same({ a = "1", b = "x y" }, t:get("/", { headers = { Cookie = "a=1; a=2; b=x%20y" } }):json())
    t:get("/read"):expect { value = "nil" }
    t:get("/set")
    t:get("/read"):expect { value = "secret" }
    assert.is_nil(t:get("/"):json().s)
    t:get("/read", { cookies = { s = "s%3Asecret.forged" } }):expect { value = false }
    t:get("/read", { cookies = { s = "plain" } }):expect { value = false }
  end)

  it("give a cookie's JSON back", function()
    local app = srv.app()
    app:get("/set", function(_, res) res:cookie("j", { a = { 1, 2 } }) return "x" end)
    app:get("/read", function(req) return req:cookie("j", { json = true }) or { none = true } end)
    local t = srv.test(app)
    t:get("/read"):expect { none = true }
    t:get("/set")
    assert.same({ a = { 1, 2 } }, t:get("/read"):json())
  end)

  it("give headers by any case, joined, one by one, and by lines", function()
    local t = app_with(function(req)
      return { req.headers["x-two"], req.headers["X-TWO"], req:header "X-tWo", req:header_lines "x-two",
        req:header "none" == nil, #req:header_lines "none" }
    end)
    assert.same({ "a, b", "a, b", "a, b", { "a", "b" }, true, 0 },
      t:get("/", { headers = { ["X-Two"] = { "a", "b" } } }):json())
  end)

  it("tell client, host, id, protocol and time", function()
    local app = srv.app { timeout = "10s" }
    app:get("/", function(req)
      local left = req:time_left()
      return { ip = req.ip, ips = #req.ips, proto = req.proto, secure = req.secure, host = req.host, hostname = req.hostname,
        peer = req.peer.ip, id = #req.id > 0, protocol = req.protocol, tls = req.tls == nil, aborted = req.aborted,
        left = left > 9 and left <= 10, current = srv.current() == req, same = srv.current().id == req.id }
    end)
    srv.test(app):get("/", { host = "h.test:81", ip = "10.1.2.3" }):expect {
      ip = "10.1.2.3", proto = "http", secure = false, host = "h.test:81", hostname = "h.test", peer = "10.1.2.3",
      id = true, protocol = "HTTP/1.1", tls = true, aborted = false, left = true, same = true,
    }
    srv.test(app):get("/", { host = "[::1]:81" }):expect { hostname = "[::1]" }
    assert.is_nil(srv.current())
  end)

  it("keep req.state for this request, also through srv.current()", function()
    local app = srv.app()
    local function user() return srv.current().state.user end
    app:use(function(req, _, next) req.state.user = "ann" return next() end)
    app:get("/", function(req) srv.sleep(0) return req.state.user .. user() end)
    app:get("/spawned", function() return srv.spawn(user):wait() end)
    local t = srv.test(app)
    t:get("/"):expect("annann")
    t:get("/spawned"):expect("ann")
  end)

  it("make a part of valid without a schema misuse", function()
    local t = app_with(function(req) return { message_of(function() return req.valid.query end) } end, { body = { a = "string?" } })
    local answer = t:post("/", { json = srv.json.object {} })
    assert.is_truthy(answer:json()[1]:find("s03_request_spec.lua:", 1, true), answer.body)
    assert.is_truthy(answer:json()[1]:find("no schema", 1, true), answer.body)
  end)
end)

describe("negotiation", function()
  it("chooses the best of the offers, the first without Accept", function()
    local t = app_with(function(req) return { req:accepts("json", "html") or "nil" } end)
    local function chosen(accept) return t:get("/", { headers = { Accept = accept } }):json()[1] end
    assert.equal("json", t:get("/"):json()[1])
    assert.equal("html", chosen "text/html, application/json;q=0.9")
    assert.equal("json", chosen "*/*")
    assert.equal("html", chosen "text/*;q=0.5, application/json;q=0.4")
    assert.equal("nil", chosen "image/png")
    assert.equal("html", chosen "application/json;q=0, */*")
  end)

  it("reads languages, encodings and the content type", function()
    local t = app_with(function(req)
      return { req:accepts_language("en", "de") or "nil", req:accepts_encoding("br", "gzip") or "nil",
        req:is("json", "image/*") or "nil" }
    end)
    assert.same({ "de", "gzip", "image/*" }, t:post("/", { body = "x",
      headers = { ["Accept-Language"] = "de-DE, en;q=0.5", ["Accept-Encoding"] = "gzip", ["Content-Type"] = "image/png" } }):json())
    assert.same({ "nil", "nil", "json" }, t:post("/", { body = "{}",
      headers = { ["Accept-Language"] = "fr", ["Accept-Encoding"] = "identity", ["Content-Type"] = "application/problem+json" } }):json())
  end)

  it("says by fresh() whether the validators would give 304", function()
    local t = app_with(function(req, res) res:etag "v1" return tostring(req:fresh()) end)
    t:get("/"):expect("false")
    t:get("/", { headers = { ["If-None-Match"] = '"v1"' } }):expect(304)
    local asked
    app_with(function(req, res) res:etag "v1" asked = req:fresh() return "x" end):get("/", { headers = { ["If-None-Match"] = 'W/"v1"' } })
    assert.is_true(asked)
  end)
end)

describe("bodies", function()
  it("are nil when there is none, also with a JSON type", function()
    local t = app_with(function(req)
      return { req:json() == nil, req:form() == nil, req:text() == nil, req:bytes() == nil, req:stream() == nil }
    end)
    assert.same({ true, true, true, true, true }, t:post("/", { headers = { ["Content-Type"] = "application/json" } }):json())
    assert.same({ true, true, true, true, true }, t:get("/"):json())
  end)

  it("as JSON: +json, charset, strict, depth, broken", function()
    local function json(req) return { got = req:json() } end
    post(json, '{"a":1}', "application/json"):expect { got = { a = 1 } }
    post(json, '{"a":1}', "application/vnd.api+json; charset=UTF-8"):expect { got = { a = 1 } }
    post(json, '{"a":1}', "text/plain"):expect(415)
    post(json, '{"a":1}', "application/json; charset=utf-16"):expect(415)
    post(json, '{"a":1}'):expect(415)
    post(json, '{"a":', "application/json"):expect(400):expect { code = "bad_json" }
    post(json, '"text"', "application/json"):expect(400):expect { code = "bad_json" }
    post(json, "[1]", "application/json"):expect(200)
    post(function(req) return { got = req:json { strict = false } } end, '"text"', "application/json"):expect { got = "text" }
    post(json, ("["):rep(65) .. ("]"):rep(65), "application/json"):expect(400)
    post(json, ("["):rep(64) .. ("]"):rep(64), "application/json"):expect(200)
    post(function(req) return { got = req:json { depth = 2 } } end, "[[[]]]", "application/json"):expect(400)
    post(json, '{"a":"\255"}', "application/json"):expect(400)
  end)

  it("as a form: flat, repeats, nested, limits, charsets", function()
    local form = "application/x-www-form-urlencoded"
    local function flat(req) return req:form() end
    local function nested(req) return req:form { nested = true } end
    assert.same({ a = "1 x", b = { "2", "3" }, ["c[d]"] = "4" }, post(flat, "a=1+x&b=2&b=3&c[d]=4", form):json())
    assert.same({ a = { b = "1", c = { d = "2" } } }, post(nested, "a[b]=1&a[c][d]=2", form):json())
    post(nested, "a" .. ("[b]"):rep(32) .. "=1", form):expect(200)
    post(nested, "a" .. ("[b]"):rep(33) .. "=1", form):expect(400):expect { code = "bad_form" }
    post(flat, ("a=1&"):rep(1000), form):expect(200)
    post(flat, ("a=1&"):rep(1001), form):expect(413)
    post(function(req) return req:form { fields = 1 } end, "a=1&b=2", form):expect(413)
    post(flat, "a=%FC", form .. "; charset=ISO-8859-1"):expect { a = "ü" }
    post(flat, "a=%FC", form):expect(400):expect { code = "bad_form" }
    post(flat, "a=1", form .. "; charset=koi8-r"):expect(415)
    post(flat, "{}", "application/json"):expect(415)
  end)

  it("as text and bytes of any type", function()
    post(function(req) return req:text() end, "ü", "image/png"):expect("ü")
    post(function(req) return req:text() end, "\255", "text/plain"):expect(400)
    post(function(req) return req:text() end, "x", "text/plain; charset=utf-16"):expect(415)
    post(function(req) return req:bytes() end, "\255\0"):expect("\255\0")
  end)

  it("may be asked for twice, in two ways, but not after stream()", function()
    post(function(req) return { req:json().a, req:json().a, req:text(), req:bytes() } end, '{"a":1}', "application/json")
      :expect { 1, 1, '{"a":1}', '{"a":1}' }
    local seen
    post(function(req) req:stream():close() seen = message_of(function() req:text() end) return "x" end, "abc", "text/plain")
    assert.is_truthy(seen:find("s03_request_spec.lua:", 1, true), seen)
  end)

  it("over the limit are 413, unknown codings 415", function()
    post(function(req) return req:text() end, ("x"):rep(11), "text/plain", { body_limit = 10 }):expect(413)
    app_with(function(req) return req:text() end)
      :post("/", { body = "x", headers = { ["Content-Encoding"] = "rot13", ["Content-Type"] = "text/plain" } }):expect(415)
  end)

  it("blame options that are no number or out of range", function()
    local wrong = {}
    post(function(req)
      for i, fn in ipairs {
        function() req:json { depth = -1 } end, function() req:json { depth = 1.5 } end, function() req:json { depth = 1e9 } end,
        function() req:form { fields = 0 } end, function() req:form { depth = "x" } end, function() req:stream { chunk = 0 } end,
      } do wrong[i] = message_of(fn) end
      return "x"
    end, "{}", "application/json"):expect(200)
    assert.equal(6, #wrong)
    for i, message in ipairs(wrong) do assert.is_truthy(message:find("s03_request_spec.lua:%d+:"), i .. " " .. message) end
  end)

  it("blame unknown options on the caller's line", function()
    local seen
    post(function(req) seen = message_of(function() req:json { dept = 1 } end) return "x" end, "{}", "application/json")
    assert.is_truthy(seen:find("s03_request_spec.lua:%d+: .*did you mean \"depth\"?"), seen)
  end)

  it("as a reader: read, line, all, loop, close", function()
    local function reads(fn) return post(function(req) return { fn(req:stream()) } end, "ab\ncd\nef", "text/plain"):json() end
    assert.same({ "ab", "\ncd\n", "ef", true }, reads(function(r) return r:read(2), r:read(4), r:read(100), r:read() == nil end))
    assert.same({ "ab", "cd", "ef", true }, reads(function(r) return r:line(), r:line(), r:line(), r:line() == nil end))
    assert.same({ "ab\ncd\nef" }, reads(function(r) return (r:all()) end))
    assert.same({ "ab\ncd\nef" }, reads(function(r) local t = {} for c in r do t[#t + 1] = c end return table.concat(t) end))
    assert.same({ true, "too_large" }, reads(function(r) local v, err = r:all { limit = 3 } return v == nil, err.code end))
    assert.same({ true }, reads(function(r) r:close() return r:read() == nil end))
  end)

  it("as a reader refuse what is no size and no option", function()
    local wrong = {}
    post(function(req)
      local r = req:stream()
      for i, fn in ipairs {
        function() r:read "x" end, function() r:read(0) end, function() r:all { limt = 1 } end, function() r:all { limit = "much" } end,
        function() r:all(5) end,
      } do wrong[i] = message_of(fn) end
      return r:all()
    end, "abc", "text/plain"):expect("abc")
    assert.equal(5, #wrong)
    for _, message in ipairs(wrong) do assert.is_truthy(message:find("s03_request_spec.lua:%d+:"), message) end
  end)

  it("come in chunks of at most `chunk`", function()
    local sizes = post(function(req)
      local list = {}
      for chunk in req:stream { chunk = 4 } do list[#list + 1] = #chunk end
      return list
    end, "0123456789", "text/plain"):json()
    local sum = 0
    for _, size in ipairs(sizes) do
      assert.is_true(size <= 4)
      sum = sum + size
    end
    assert.equal(10, sum)
  end)
end)
