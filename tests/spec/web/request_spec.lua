local srv = require "srv"

local function client_of(handler, opts)
  local app = srv.app()
  app:all("/*", opts or {}, handler)
  return srv.test(app)
end

describe("req", function()
  it("tells of the request line and the peer", function()
    client_of(function(req)
      return {
        method = req.method, path = req.path, original = req.original_url, host = req.host, hostname = req.hostname,
        ip = req.ip, ips = req.ips, proto = req.proto, secure = req.secure, protocol = req.protocol, route = req.route,
      }
    end, { name = "all" }):get("/a%20b?x=1", { host = "api.example:8443", ip = "203.0.113.7" }):expect {
      method = "GET", path = "/a%20b", original = "/a%20b?x=1", host = "api.example:8443", hostname = "api.example",
      ip = "203.0.113.7", ips = {}, proto = "http", secure = false, protocol = "HTTP/1.1",
      route = { path = "/*", name = "all", method = "GET" },
    }
  end)

  it("tells what TLS it came over", function()
    local t = client_of(function(req, res)
      res:cookie("a", "b")
      return { secure = req.secure, proto = req.proto, tls = req.tls or srv.null, kept = req.tls == req.tls }
    end)
    t:get("/"):expect { secure = false, proto = "http", tls = srv.null }
    t:get("/", { tls = true }):expect { secure = true, proto = "https", kept = true }:expect("set-cookie", "^a=b; .*; Secure")
      :expect(function(answer)
        local tls = answer:json().tls
        return tls.sni == nil and tls.client == nil and tls.resumed == false
      end)
    local tls = {
      version = "TLSv1.2", cipher = "TLS_X", sni = "shop.test", resumed = true,
      client = { subject = "CN=alice", serial = "01:A3", fingerprint = ("ab"):rep(32) },
    }
    t:get("/", { tls = tls }):expect { tls = tls }
    assert.has_error(function() t:get("/", { tls = { snl = "a" } }) end)
    assert.has_error(function() t:get("/", { tls = { client = { name = "a" } } }) end)
  end)

  it("reads headers in any case, several lines joined", function()
    client_of(function(req)
      return {
        req:header "X-Many", req.headers["x-many"], req.headers["X-MANY"], req:header_lines "x-many",
        req:header "nope" == nil, req.headers.nope == nil,
      }
    end):get("/", { headers = { ["X-Many"] = { "a", "b" } } }):expect { "a, b", "a, b", "a, b", { "a", "b" }, true, true }
  end)

  it("gives nil for what was not sent, and never no value at all", function()
    client_of(function(req)
      return {
        tostring(req:header "nope"), tonumber(req:header "nope") == nil, tostring(req:header(("x"):rep(10000))),
        tostring(req:accepts "image/png"), tostring(req:accepts_language "en"), tostring(req:accepts_encoding "br"),
      }
    end):get("/", { headers = { Accept = "text/html", ["Accept-Language"] = "de", ["Accept-Encoding"] = "gzip" } })
      :expect { "nil", true, "nil", "nil", "nil", "nil" }
  end)

  it("parses the query: repeats, blanks, brackets, broken escapes", function()
    local t = client_of(function(req) return req.query end)
    t:get("/?a=1&a=2&b[c]=3&d=&e&f=%20+x&g=%ZZ"):expect('{"a":["1","2"],"b[c]":"3","d":"","e":"","f":"  x","g":"%ZZ"}')
    t:get("/"):expect("{}")
    t:get("/?" .. ("a&"):rep(1001)):expect(400)
  end)

  it("has an id, state of its own, and time left", function()
    local app = srv.app { timeout = "10s" }
    app:use(function(req, _, next) req.state.user = "ada" return next() end)
    app:get("/", function(req)
      return { id = #req.id, user = req.state.user, left = req:time_left() > 5 and req:time_left() <= 10, current = srv.current() == req }
    end)
    srv.test(app):get("/"):expect { id = 16, user = "ada", left = true, current = true }
    assert.is_nil(srv.current())
  end)

  it("has a log of its own", function()
    local r = client_of(function(req) req.log.info("seen", { n = 1 }) return "x" end):get("/")
    assert.same({ "info", "seen", 1 }, { r.log[1].level, r.log[1].message, r.log[1].fields.n })
  end)

  it("negotiates", function()
    local function accepts(header, ...)
      local offers = { ... }
      local r = client_of(function(req) return { best = req:accepts(unpack(offers)) } end)
        :get("/", { headers = { Accept = header } })
      return r:json().best
    end
    assert.equal("html", accepts("text/html,application/json;q=0.9", "json", "html"))
    assert.equal("json", accepts("*/*", "json", "html"))
    assert.equal("html", accepts("text/*;q=0.5, */*;q=0.1", "json", "html"))
    assert.is_nil(accepts("image/png", "json", "html"))
    assert.is_nil(accepts("application/json;q=0", "json"))
    client_of(function(req)
      return {
        language = req:accepts_language("en", "de"), encoding = req:accepts_encoding("br", "identity"),
        is = req:is("html", "json"), image = req:is("image/*"),
      }
    end):post("/", {
      headers = { ["Accept-Language"] = "de-AT, en;q=0.5", ["Accept-Encoding"] = "gzip", ["Content-Type"] = "application/problem+json" },
      body = "{}",
    }):expect { language = "de", encoding = "identity", is = "json" }
  end)

  it("reads cookies; signed ones are checked", function()
    local app = srv.app()
    app:get("/set", function(_, res)
      res:cookie("plain", "a b;c", { max_age = 60 }):cookie("name", "tobi", { signed = true }):cookie("b", { x = 1 })
      return "set"
    end)
    app:get("/get", function(req)
      return { plain = req.cookies.plain, hidden = req.cookies.name == nil, name = req:cookie("name", { signed = true }), b = req:cookie("b", { json = true }) }
    end)
    app:get("/clear", function(_, res) res:clear_cookie "plain" return "x" end)
    local t = srv.test(app)
    t:get("/set"):expect("set-cookie", "^plain=a%%20b%%3Bc; Max%-Age=60; Path=/; Expires=%a+, %d%d %a+ %d+ [%d:]+ GMT; HttpOnly; SameSite=Lax, ")
    t:get("/get"):expect { plain = "a b;c", hidden = true, name = "tobi", b = { x = 1 } }
    t:get("/get", { cookies = { name = "s%3Atobi.forged" } }):expect { name = false }
    t:get("/clear"):expect("set-cookie", "^plain=; Max%-Age=0; Path=/; Expires=Thu, 01 Jan 1970")
    t:get("/get"):expect(function(r) return r:json().plain == nil end)
  end)

  it("takes the first cookie of a name, without its quotes", function()
    client_of(function(req) return req.cookies end):get("/", { headers = { Cookie = 'a=1; a=2; b="q"; broken; c=%zz' } })
      :expect('{"a":"1","b":"q","c":"%zz"}')
  end)
end)

describe("bodies", function()
  it("are nil when there is none", function()
    client_of(function(req) return { json = req:json() == nil, form = req:form() == nil, text = req:text() == nil, stream = req:stream() == nil } end)
      :post("/", { headers = { ["Content-Type"] = "application/json" } }):expect { json = true, form = true, text = true, stream = true }
  end)

  it("are JSON of the right type, charset and form", function()
    local t = client_of(function(req) return { body = req:json(), again = req:json() } end)
    local function post(body, content_type)
      return t:post("/", { body = body, headers = { ["Content-Type"] = content_type or "application/json" } })
    end
    post('{"a":1}'):expect { body = { a = 1 }, again = { a = 1 } }
    post('[1]', "application/vnd.api+json; charset=UTF-8"):expect { body = { 1 } }
    post('{"a":'):expect(400):expect { code = "bad_json" }
    post('"text"'):expect(400)
    post("{}", "application/json; charset=latin1"):expect(415)
    post("a=1", "text/plain"):expect(415)
    t:post("/", { body = "a=1" }):expect(415)
    t:post("/", { body = "{}", headers = { ["Content-Type"] = "application/json", ["Content-Encoding"] = "zzz" } }):expect(415)
    client_of(function(req) return { body = req:json { strict = false } } end)
      :post("/", { body = '"str"', headers = { ["Content-Type"] = "application/json" } }):expect { body = "str" }
  end)

  it("are forms, flat or nested", function()
    local t = client_of(function(req) return req:form() end)
    t:post("/", { body = "a=1&b=2&a=3&c%5Bd%5D=x&e=%20+&f", headers = { ["Content-Type"] = "application/x-www-form-urlencoded" } })
      :expect('{"a":["1","3"],"b":"2","c[d]":"x","e":"  ","f":""}')
    t:post("/", { body = "a=%E9", headers = { ["Content-Type"] = "application/x-www-form-urlencoded; charset=iso-8859-1" } })
      :expect { a = "é" }
    t:post("/", { body = "a=1" .. ("&a=1"):rep(1000), headers = { ["Content-Type"] = "application/x-www-form-urlencoded" } }):expect(413)
    local nested = client_of(function(req) return req:form { nested = true } end)
    nested:post("/", { form = { ["a[b][c]"] = "1", ["l[]"] = "x" } }):expect { a = { b = { c = "1" } }, l = { "x" } }
    nested:post("/", { form = { ["a" .. ("[b]"):rep(33)] = "1" } }):expect(400)
  end)

  it("are none if they turn out empty", function()
    local coded_empty = "\31\139\8\0\0\0\0\0\0\3\3\0\0\0\0\0\0\0\0\0" -- gzip's
    for name, kind in pairs { json = "application/json", form = "application/x-www-form-urlencoded", text = "text/plain", bytes = "x/y" } do
      local t = client_of(function(req) return { none = req[name](req) == nil } end)
      t:post("/", { body = coded_empty, headers = { ["Content-Type"] = kind, ["Content-Encoding"] = "gzip" } }):expect { none = true }
    end
  end)

  it("are text by their charset", function()
    local t = client_of(function(req) return req:text() end)
    local function post(kind, text) return t:post("/", { body = text, headers = { ["Content-Type"] = kind } }) end
    post("text/plain; charset=iso-8859-1", "\228\191a"):expect "\195\164\194\191a"
    post("text/plain; charset=UTF-8", "\195\164"):expect "\195\164"
    post("text/plain", "\228"):expect(400):expect { code = "bad_encoding" }
    post("text/plain; charset=utf-16", "a"):expect(415)
    client_of(function(req) return req:json() end):post("/", { body = '["\228"]', headers = { ["Content-Type"] = "application/json; charset=latin1" } })
      :expect(415)
  end)

  it("in no coding at all are read as they are", function()
    client_of(function(req) return req:json() end):post("/", { json = { a = 1 }, headers = { ["Content-Encoding"] = "" } }):expect { a = 1 }
  end)

  it("are nested forms by their names alone, not by the order these came in", function()
    local t = client_of(function(req) return req:form { nested = true } end)
    local function post(text) return t:post("/", { body = text, headers = { ["Content-Type"] = "application/x-www-form-urlencoded" } }) end
    for text, wanted in pairs {
      ["l[]=1&l[]=2&m[]=3"] = '{"l":["1","2"],"m":["3"]}',
      ["l[1]=b&l[0]=a"] = '{"l":["a","b"]}',
      ["l[1]=b&l[2]=c"] = '{"l":{"1":"b","2":"c"}}',
      ["r[0][n]=x&r[1][n]=y&r[0][t][]=z"] = '{"r":[{"n":"x","t":["z"]},{"n":"y"}]}',
      ["a[b=1"] = '{"a[b":"1"}', ["a[b]c=1"] = '{"a[b]c":"1"}', ["[a]=1"] = '{"[a]":"1"}', ["a]=1"] = '{"a]":"1"}',
      ["a[__proto__][x]=1"] = '{"a":{"__proto__":{"x":"1"}}}',
    } do
      assert.equal(wanted, post(text):expect(200).body)
    end
    for _, text in ipairs { "a=1&a[b]=2", "a[b]=2&a=1", "a[b]=1&a[]=2", "a[]=2&a[b]=1", "a[]=1&a=2", "a[][b]=1", "a[][]=1", "a[b][]=1&a[b][c]=1" } do
      post(text):expect(400):expect { code = "bad_form" }
    end
    assert.is_true(#post("a=1&a[" .. ("x"):rep(10000) .. "]=2"):json().detail < 200)
  end)

  it("are text or bytes of any type", function()
    client_of(function(req) return { req:text(), #req:bytes() } end):post("/", { body = "é" }):expect { "é", 2 }
    client_of(function(req) return req:text() end):post("/", { body = "\255" }):expect(400)
    client_of(function(req) return req:bytes() end):post("/", { body = "\255\0" }):expect("\255\0")
  end)

  it("are bounded, for the app or for a route", function()
    local app = srv.app { body_limit = 10 }
    app:post("/small", function(req) return req:text() end)
    app:post("/large", { body_limit = "1KiB" }, function(req) return req:text() end)
    local t = srv.test(app)
    t:post("/small", { body = ("x"):rep(10) }):expect(200)
    t:post("/small", { body = ("x"):rep(11) }):expect(413)
    t:post("/large", { body = ("x"):rep(1024) }):expect(200)
    t:post("/large", { body = ("x"):rep(1025) }):expect(413)
  end)

  it("are streams that nothing else reads", function()
    local t = client_of(function(req)
      local stream, pieces, length = req:stream { chunk = "16KiB" }, 0, 0
      for chunk in stream do
        assert(#chunk <= 16 * 1024)
        pieces, length = pieces + 1, length + #chunk
      end
      return { length = length, several = pieces > 1 }
    end)
    t:post("/", { body = ("x"):rep(200000) }):expect { length = 200000, several = true }
    local r = client_of(function(req) req:stream() return req:text() end):post("/", { body = "x" }):expect(500)
    assert.matches("handed out by req:stream", r.log[1].fields.err.message)
    client_of(function(req)
      local stream = req:stream()
      return { stream:line(), stream:line(), stream:line() == nil }
    end):post("/", { body = "one\r\ntwo" }):expect { "one", "two", true }
  end)

  it("are checked by schemas, with all faults at once", function()
    local app = srv.app()
    app:post("/:id<int>", {
      body = { title = "string 1..10", tags = "slug[] = []" }, query = { dry = "boolean = false" },
    }, function(req) return { body = req.valid.body, query = req.valid.query } end)
    app:get("/", function(req) return { req.valid.body } end)
    local t = srv.test(app)
    t:post("/1?dry=1", { json = { title = "x" } }):expect { body = { title = "x", tags = {} }, query = { dry = true } }
    t:post("/1", { form = { title = "x", tags = "a" } }):expect { body = { title = "x", tags = { "a" } } }
    t:post("/1?dry=maybe", { json = { title = "", more = 1 } }):expect(400):expect(function(r)
      local faults = {}
      for _, fault in ipairs(r:json().errors) do faults[#faults + 1] = fault["in"] .. " " .. fault.path .. " " .. fault.code end
      table.sort(faults)
      return table.concat(faults, ", ") == "body /more unknown, body /title too_short, query /dry type", table.concat(faults, ", ")
    end)
    t:post("/1", { body = "x", headers = { ["Content-Type"] = "text/plain" } }):expect(415)
    t:post("/1"):expect(400)
    local r = t:get("/"):expect(500)
    assert.matches("req.valid.body: this route has no schema for it", r.log[1].fields.err.message)
  end)

  it("come to answers too: undeclared fields are dropped", function()
    local app = srv.app()
    app:get("/", { response = { name = "string", age = "integer" } }, function() return { name = "xy", age = 5, secret = "s" } end)
    app:get("/by", { response = { [201] = { id = "integer" } } }, function() return { id = 1, x = 2 }, 201 end)
    srv.test(app):get("/"):expect('{"age":5,"name":"xy"}')
    srv.test(app):get("/by"):expect('{"id":1}')
  end)
end)
