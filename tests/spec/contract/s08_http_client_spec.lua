--- API, section 8: srv.http, against servers of our own on sockets.
local srv = require "srv"
local http = srv.http

local listeners = {}

local function message_of(fn, ...)
  local ok, raised = pcall(fn, ...)
  return ok and "no error" or tostring(raised)
end

--- One request from SOCK, or nil: { method, target, headers, body }.
local function read_request(sock)
  local head = sock:read_until("\r\n\r\n", "64KiB")
  if not head then return nil end
  local request = { headers = {}, body = "" }
  request.method, request.target = head:match "^(%S+) (%S+)"
  for name, value in head:gmatch "\r\n([^:\r\n]+): ([^\r\n]*)" do request.headers[name:lower()] = value end
  if request.headers["transfer-encoding"] then
    while true do
      local size = tonumber(sock:read_until "\r\n", 16)
      local piece = size > 0 and sock:read_exactly(size) or ""
      sock:read_until "\r\n"
      request.body = request.body .. piece
      if size == 0 then break end
    end
  elseif tonumber(request.headers["content-length"] or 0) > 0 then
    request.body = sock:read_exactly(tonumber(request.headers["content-length"]))
  end
  return request
end

local function response(body, fields, status)
  return ("HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s"):format(status or "200 OK", #body, fields or "", body)
end

--- Answers each request with what FN(request, sock) gives. Its URL and all that was asked.
local function serve(fn, address)
  local seen = { connections = 0, open = 0 }
  local listener = assert((address and srv.unix or srv.tcp).listen(address or "127.0.0.1:0", function(sock)
    seen.connections, seen.open = seen.connections + 1, seen.open + 1
    srv.defer(function() seen.open = seen.open - 1 end)
    for request in read_request, sock do
      seen[#seen + 1] = request
      local text, ends = fn(request, sock)
      if text then sock:write(text) end
      if ends then return end
    end
  end))
  listeners[#listeners + 1] = listener
  return "http://" .. listener.address, seen
end

local function ok() return response "ok" end

--- The URL of a port on which nobody listens.
local function nobody()
  local listener = assert(srv.tcp.listen("127.0.0.1:0", function() end))
  listener:close()
  return "http://" .. listener.address
end

local function fault(code, status, value, err)
  assert.is_nil(value)
  assert.is_true(srv.error.is(err, code), tostring(err))
  assert.equal(status, err.status)
  assert.is_true(#err.message > 5)
  return err
end

local function until_true(claim)
  for _ = 1, 500 do
    if claim() then return end
    srv.sleep(0.01)
  end
  error "in vain"
end

after_each(function()
  for _, listener in ipairs(listeners) do listener:close() end
  listeners = {}
end)

describe("the methods", function()
  it("get head post put patch delete, and request with any", function()
    local url, seen = serve(function(request) return request.method == "HEAD" and "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" or ok() end)
    for i, name in ipairs { "get", "head", "post", "put", "patch", "delete" } do
      local r = assert(http[name](url .. "/x"))
      assert.same({ 200, name:upper() }, { r.status, seen[i].method })
    end
    assert(http.request("PURGE", url .. "/x"))
    assert.equal("PURGE", seen[7].method)
  end)

  it("pass through map and all as they are", function()
    local url = serve(function(request) return response(request.target) end)
    local pages = assert(srv.map({ url .. "/a", url .. "/b" }, http.get, { limit = 8 }))
    assert.same({ "/a", "/b" }, { pages[1].body, pages[2].body })
    local a, b = assert(srv.all({ http.get, url .. "/c" }, { http.get, url .. "/d", { query = { q = 1 } } }))
    assert.same({ "/c", "/d?q=1" }, { a.body, b.body })
    local none, err = srv.map({ url .. "/a", nobody() .. "/" }, http.client { retries = 0 }.get)
    fault("refused", 502, none, err)
  end)

  it("of a client are the same module with defaults, which may go on", function()
    local url, seen = serve(function(request) return response("{}", nil, request.target:find "bad" and "404 Not Found" or "200 OK") end)
    local api = http.client { base = url .. "/v1", timeout = "2s", expect = "2xx", headers = { ["X-Key"] = "k" }, query = { v = "2" } }
    assert(api.get("/x", { query = { q = "a b" } }))
    assert.equal("/v1/x?q=a%20b&v=2", (seen[1].target:gsub("%+", "%%20")))
    assert.equal("k", seen[1].headers["x-key"])
    fault("unexpected_status", 502, api.get "/bad")
    local narrower = api.client { headers = { ["X-Other"] = "o" }, expect = { 404 } }
    assert(narrower.get "/bad")
    assert.same({ "k", "o" }, { seen[3].headers["x-key"], seen[3].headers["x-other"] })
    assert(api.request("OPTIONS", "/x"))
    for _, name in ipairs { "get", "head", "post", "put", "patch", "delete", "request", "client" } do assert.is_function(api[name], name) end
  end)
end)

describe("options", function()
  it("query and headers; a list is several, false takes a default away", function()
    local url, seen = serve(ok)
    assert(http.get(url .. "/p?a=1", { query = { b = { "x", "y" }, c = "&=" }, headers = { ["X-N"] = 5, ["User-Agent"] = false } }))
    assert.equal("/p?a=1&b=x&b=y&c=%26%3D", seen[1].target)
    assert.equal("5", seen[1].headers["x-n"])
    assert.is_nil(seen[1].headers["user-agent"])
  end)

  it("json, form, multipart, body: string, reader or function; one of them", function()
    local url, seen = serve(ok)
    assert(http.post(url, { json = { a = { 1 } } }))
    assert.same({ '{"a":[1]}', "application/json" }, { seen[1].body, seen[1].headers["content-type"] })
    assert(http.post(url, { form = { a = "1 2", b = { "x", "y" } } }))
    assert.equal("application/x-www-form-urlencoded", seen[2].headers["content-type"])
    assert.is_truthy(seen[2].body:find "b=x&b=y")
    assert(http.post(url, { multipart = { a = "text", f = { body = "bytes", name = "f.txt", type = "text/plain" } } }))
    assert.is_truthy(seen[3].headers["content-type"]:find "^multipart/form%-data; boundary=")
    assert.is_truthy(seen[3].body:find('name="f"; filename="f.txt"', 1, true))
    assert(http.put(url, { body = "text" }))
    assert.equal("text", seen[4].body)
    local pieces = { "one", "two" }
    assert(http.put(url, { body = function() return table.remove(pieces, 1) end }))
    assert.equal("onetwo", seen[5].body)
    local file = assert(srv.fs.temp())
    file:write "of a file"
    file:seek "set"
    assert(http.put(url, { body = file }))
    assert.equal("of a file", seen[6].body)
    assert(http.put(url, { body = http.get(url, { stream = true }):stream() }))
    assert.equal("ok", seen[8].body)
    for _, two in ipairs { { json = 1, body = "x" }, { form = {}, multipart = {} }, { json = {}, form = {} } } do
      assert.is_truthy(message_of(function() http.post(url, two) end):find "s08_http_client_spec.lua:%d+: .*only one of")
    end
    assert.is_truthy(message_of(function() http.post(url, { body = 5 }) end):find "s08_http_client_spec.lua:%d+: .*string, a reader or a function")
  end)

  it("what was sent to us goes on as it comes: a request's stream is a body", function()
    local url, seen = serve(ok)
    local app = srv.app()
    app:post("/", function(req) return http.put(url, { body = req:stream() }) end)
    srv.test(app):post("/", { body = ("x"):rep(200000) }):expect(200):expect "ok"
    assert.equal(200000, #seen[1].body)
  end)

  it("timeout is in all, connect_timeout and first_byte_timeout for their parts", function()
    local url = serve(function(_, sock)
      sock:write "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
      while sock:write "." do srv.sleep(0.02) end
    end)
    local err = fault("timeout", 504, http.get(url, { timeout = "60ms", retries = 0 }))
    assert.is_truthy(err.message:find(url, 1, true), err.message)
    local silent = serve(function() srv.sleep(5) end)
    fault("timeout", 504, http.get(silent, { first_byte_timeout = "30ms", retries = 0 }))
  end)

  it("never past the request's deadline: 503, and the connection is closed, not pooled", function()
    local url, seen = serve(function() srv.sleep(60) end)
    local app = srv.app()
    app:get("/", { timeout = "60ms" }, function() return http.get(url, { timeout = "1h" }) end)
    local from = srv.monotonic()
    srv.test(app):get("/"):expect(503)
    assert.is_true(srv.monotonic() - from < 30)
    until_true(function() return http.pool().open == http.pool().idle end)
    assert.is_true(seen.connections >= 1)
  end)

  it("expect: a status, a class or a list; else unexpected_status with the response", function()
    local url = serve(function() return response('{"why":"gone"}', nil, "410 Gone") end)
    for _, expect in ipairs { 410, "410", "4xx", { 200, 410 }, { "2xx", "4xx" } } do
      assert.equal(410, assert(http.get(url, { expect = expect })).status)
    end
    local err = fault("unexpected_status", 502, http.get(url, { expect = "2xx" }))
    assert.same({ 410, "gone" }, { err.data.response.status, err.data.response:json().why })
    assert.is_truthy(err.message:find "410")
    assert.equal(410, assert(http.get(url)).status)
    for _, bad in ipairs { "ok", 99, "6xx", { 200, "x" }, true } do
      assert.is_truthy(message_of(function() http.get(url, { expect = bad }) end):find "s08_http_client_spec.lua:%d+: .*expect")
    end
  end)

  it("an answer with an error that names a response tells the client nothing of it", function()
    local url = serve(function() return response("secret inner body", nil, "500 Oops") end)
    local app = srv.app()
    app:get("/", function() return http.get(url, { expect = 200 }) end)
    local answer = srv.test(app):get("/"):expect(502)
    assert.is_nil(answer.body:find "secret")
    assert.is_nil(answer.body:find("127.0.0.1", 1, true))
  end)

  it("redirects = 5, 0 follows none, and credentials stay with their origin", function()
    local elsewhere, there = serve(ok)
    local url, here
    url, here = serve(function(request)
      local n = tonumber(request.target:match "%d+$") or 0
      if request.target:find "away" then return response("", "Location: " .. elsewhere .. "/x\r\n", "302 Found") end
      return n == 0 and ok() or response("", "Location: /r/" .. n - 1 .. "\r\n", "302 Found")
    end)
    local r = assert(http.get(url .. "/r/5"))
    assert.same({ 200, url .. "/r/0" }, { r.status, r.url })
    fault("too_many_redirects", 502, http.get(url .. "/r/6"))
    assert.equal(302, assert(http.get(url .. "/r/1", { redirects = 0 })).status)
    assert(http.get(url .. "/away", { auth = { "u", "p" }, headers = { Cookie = "a=b" } }))
    assert.equal("Basic dTpw", here[#here].headers.authorization)
    assert.is_nil(there[1].headers.authorization)
    assert.is_nil(there[1].headers.cookie)
  end)

  it("retries = 2, of idempotent methods, after connection faults and 502-504", function()
    local url, seen = serve(function(request) return response("", nil, request.target:sub(2) .. " X") end)
    for _, status in ipairs { 502, 503, 504 } do
      local before = #seen
      assert.equal(status, assert(http.get(url .. "/" .. status)).status)
      assert.equal(3, #seen - before)
    end
    local before = #seen
    assert.equal(500, assert(http.get(url .. "/500")).status)
    assert.equal(503, assert(http.post(url .. "/503", { json = 1 })).status)
    assert.equal(503, assert(http.get(url .. "/503", { retries = 0 })).status)
    assert.equal(3, #seen - before)
    local cutting, cut = serve(function() return nil, true end)
    fault("closed", 502, http.delete(cutting, { retries = 1 }))
    assert.equal(2, #cut)
  end)

  it("Retry-After is kept: the second try comes no sooner", function()
    local at = {}
    local url = serve(function()
      at[#at + 1] = srv.monotonic()
      return #at == 1 and response("", "Retry-After: 1\r\n", "503 X") or ok()
    end)
    assert.equal(200, assert(http.get(url)).status)
    assert.is_true(at[2] - at[1] > 0.9)
  end)

  it("limit = 10MiB: too_large", function()
    local url = serve(function() return response(("x"):rep(2000)) end)
    fault("too_large", 500, http.get(url, { limit = 1999 }))
    assert.equal(2000, #assert(http.get(url, { limit = "2KiB" })).body)
  end)

  it("unix, proxy, auth", function()
    local _, seen = serve(function(request) return response(request.headers.host) end, "@s08")
    assert.equal("a.example", assert(http.get("http://a.example/x", { unix = "@s08", auth = { "u", "p" } })).body)
    assert.equal("Basic dTpw", seen[1].headers.authorization)
    local proxy, asked = serve(ok)
    assert.equal("ok", assert(http.get("http://a.example/x", { proxy = proxy })).body)
    assert.equal("http://a.example/x", asked[1].target)
  end)

  it("that are wrong are blamed on the caller's line, and name the way out", function()
    for _, opts in ipairs {
      { auth = "u:p" }, { auth = { "u:x", "p" } }, { proxy = 5 }, { unix = "" }, { unix = 5 }, { retries = -1 }, { redirects = 1.5 }, { stream = 1 },
      { headers = { ["A B"] = "x" } }, { headers = { A = "x\r\ny" } }, { headers = { A = print } }, { headers = { Connection = "close" } },
      { query = 5 }, { multipart = { a = print } }, { form = "a=b" }, { tls = true },
    } do
      local message = message_of(function() http.get("http://127.0.0.1:1/", opts) end)
      assert.is_truthy(message:find "s08_http_client_spec.lua:%d+: srv.http.get: ", message)
    end
    for _, fn in ipairs { function() http.get() end, function() http.get(5) end, function() http.request("GE T", "http://a/") end,
      function() http.client { base = "nothing" } end, function() http.client { base = "http://a/?q" } end, function() http.client(5) end } do
      assert.is_truthy(message_of(fn):find "s08_http_client_spec.lua:%d+: srv.http", message_of(fn))
    end
  end)

  it("a URL that is none, a name that is none, a port where nobody listens: nil, err", function()
    fault("invalid", 400, http.get "no url")
    fault("invalid", 400, http.get "ftp://a.example/")
    fault("dns", 502, http.get("http://no-such-name.invalid/", { retries = 0 }))
    local err = fault("refused", 502, http.get(nobody(), { retries = 0 }))
    assert.is_truthy(err.message:find("127.0.0.1", 1, true), err.message)
  end)
end)

describe("a response", function()
  it("has status ok headers url trailers body, header() and json()", function()
    local url = serve(function(request)
      if request.target == "/t" then
        return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\nab\r\n0\r\nX-T: end\r\n\r\n"
      end
      return response(request.target == "/bad" and "{" or '{"a":1}', "Content-Type: application/json\r\nX-A: 1\r\nx-a: 2\r\n", "201 Made")
    end)
    local r = assert(http.get(url .. "/x"))
    assert.same({ 201, true, url .. "/x", '{"a":1}' }, { r.status, r.ok, r.url, r.body })
    assert.same({ "1, 2", "1, 2", "1, 2" }, { r.headers["X-A"], r.headers["x-a"], r:header "X-a" })
    assert.equal(1, r:json().a)
    assert.same({ "ab", "end" }, { assert(http.get(url .. "/t")).body, assert(http.get(url .. "/t")).trailers["X-T"] })
    local v, err = assert(http.get(url .. "/bad")):json()
    fault("bad_response", 502, v, err)
    assert.equal("bad_json", err.cause.code)
  end)

  it("that is null as JSON is srv.null, so nil is always an error", function()
    local url = serve(function() return response "null" end)
    assert.equal(srv.null, assert(http.get(url)):json())
  end)

  it("with stream = true is a head, a reader and a length", function()
    local url = serve(function(request)
      if request.target == "/chunked" then return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab\n\r\n2\r\ncd\r\n0\r\n\r\n" end
      return response "ab\ncd"
    end)
    local r = assert(http.get(url, { stream = true }))
    assert.is_nil(r.body)
    assert.equal(5, r.length)
    local reader = r:stream()
    assert.equal("a", reader:read(1))
    assert.equal("b", reader:line())
    assert.equal("cd", reader:all { limit = "1KiB" })
    assert.is_nil((reader:read()))
    local chunked, pieces = assert(http.get(url .. "/chunked", { stream = true })), {}
    assert.is_nil(chunked.length)
    for chunk in chunked:stream() do pieces[#pieces + 1] = chunk end
    assert.equal("ab\ncd", table.concat(pieces))
    r = assert(http.get(url, { stream = true }))
    assert.equal("too_large", select(2, r:stream():all { limit = 3 }).code)
    assert.equal("ab\ncd", assert(http.get(url)):stream():all())
  end)

  it("fresh_for: as long as a shared cache may keep it, never with Set-Cookie", function()
    local function fresh(fields, opts)
      local url = serve(function() return response("x", fields) end)
      return assert(http.get(url, opts)):fresh_for()
    end
    assert.equal(60, fresh "Cache-Control: max-age=60\r\n")
    assert.equal(5, fresh "Cache-Control: max-age=60, s-maxage=5\r\n")
    assert.equal(50, fresh "Cache-Control: max-age=60\r\nAge: 10\r\n")
    for _, fields in ipairs { "", "Cache-Control: no-store\r\n", "Cache-Control: private, max-age=60\r\n", "Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n",
      "Cache-Control: max-age=60\r\nVary: *\r\n" } do assert.equal(0, fresh(fields), fields) end
    assert.equal(0, fresh("Cache-Control: max-age=60\r\n", { auth = { "u", "p" } }))
  end)

  it("is a whole handler: status, end-to-end headers, body streamed", function()
    local url = serve(function() return response("body", "X-A: 1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nConnection: X-Hop\r\nX-Hop: 1\r\n", "203 X") end)
    local app = srv.app()
    app:get("/", function() return http.get(url) end)
    app:get("/stream", function() return http.get(url, { stream = true }) end)
    local t = srv.test(app)
    for _, path in ipairs { "/", "/stream" } do
      t:get(path):expect(203):expect "body":expect("x-a", "1"):expect("x-hop", false):expect("set-cookie", "a=1, b=2")
    end
  end)
end)

describe("forward", function()
  it("passes method, path, headers and body on, and says for whom", function()
    local url, seen = serve(function(request) return response("got " .. request.body, "X-Up: 1\r\nKeep-Alive: 5\r\n", "201 Made") end)
    local app = srv.app()
    app:all("/*path", function(req) return http.forward(req, url) end)
    srv.test(app):post("/a%2Fb?x=1", { body = "hello", ip = "192.0.2.7", headers = { ["X-Mine"] = "m", TE = "trailers", ["X-Forwarded-For"] = "6.6.6.6" } })
      :expect(201):expect "got hello":expect("x-up", "1"):expect("keep-alive", false)
    local got = seen[1]
    assert.same({ "POST", "/a%2Fb?x=1", "hello", "m" }, { got.method, got.target, got.body, got.headers["x-mine"] })
    assert.is_nil(got.headers.te)
    assert.equal("192.0.2.7", got.headers["x-forwarded-for"])
    assert.is_truthy(got.headers.forwarded:find "for=192.0.2.7")
    for _, name in ipairs { "x-forwarded-proto", "x-forwarded-host", "via" } do assert.is_string(got.headers[name], name) end
  end)

  it("takes origins in turn, and the next one if one is down", function()
    local a, b = serve(function() return response "a" end), serve(function() return response "b" end)
    local down, answers = nobody(), {}
    local app = srv.app()
    app:get("/two", function(req) return http.forward(req, { a, b }) end)
    app:get("/three", function(req) return http.forward(req, { down, a }) end)
    app:get("/none", function(req) return http.forward(req, down) end)
    local t = srv.test(app)
    for _ = 1, 4 do answers[#answers + 1] = t:get("/two").body end
    table.sort(answers)
    assert.equal("aabb", table.concat(answers))
    for _ = 1, 3 do t:get("/three"):expect(200):expect "a" end
    assert.equal("refused", t:get("/none"):expect(502).log[1].fields.err.code)
  end)

  it("blames a wrong origin on the caller", function()
    local app = srv.app()
    app:get("/:which", function(req)
      local origins = { none = {}, number = 5, word = "nothing", query = "http://a/?x" }
      local r, err = http.forward(req, origins[req.params.which])   -- a tail call would leave no line to blame
      return r, err
    end)
    local t = srv.test(app)
    for _, which in ipairs { "none", "number", "word", "query" } do
      local logged = tostring(t:get("/" .. which):expect(500).log[1].fields.err)
      assert.is_truthy(logged:find "s08_http_client_spec.lua:%d+: srv.http.forward", logged)
    end
  end)
end)

describe("the pool", function()
  it("is one in each worker, bounded in total and for each origin; who finds no place waits", function()
    finally(function() http.pool { total = 256, per_origin = 64, idle = "60s" } end)
    local most, now = 0, 0
    local url = serve(function()
      now = now + 1
      most = math.max(most, now)
      srv.sleep(0.005)
      now = now - 1
      return ok()
    end)
    http.pool { per_origin = 2 }
    local urls = {}
    for i = 1, 8 do urls[i] = url .. "/" .. i end
    assert.equal(8, #assert(srv.map(urls, http.get, { limit = 8 })))
    assert.equal(2, most)
    http.pool { total = 1 }
    most = 0
    assert.equal(8, #assert(srv.map(urls, http.get, { limit = 8 })))
    assert.equal(1, most)
  end)

  it("keeps what tells connections apart apart", function()
    local url, seen = serve(ok)
    assert(http.get(url))
    assert(http.get(url))
    assert.equal(1, seen.connections)
    assert(http.get(url, { proxy = url }))
    assert.equal(2, seen.connections)
  end)

  it("a stream that is left when its task ends is closed, not kept", function()
    local url, seen = serve(function() return response(("x"):rep(1e6)) end)
    srv.spawn(function() assert(http.get(url, { stream = true })):stream():read(10) end):wait()
    until_true(function() return seen.open == 0 end)
    assert.equal(0, http.pool().open - http.pool().idle)
  end)
end)

describe("the same call works", function()
  it("at load, in middleware, in a timer, in a background task", function()
    local url, seen = serve(ok)
    local app, done = srv.app(), srv.event()
    app:use(function(_, _, next)
      assert(http.get(url .. "/middleware"))
      return next()
    end)
    app:get("/", function()
      app:spawn(function()
        assert(http.get(url .. "/background"))
        done:set()
      end)
      return "x"
    end)
    app:every("1h", { at_start = true }, function() assert(http.get(url .. "/timer")) end)
    local t = srv.test(app)
    t:get("/"):expect(200)
    assert.is_true(done:wait(5))
    until_true(function() return #seen == 3 end)
    local targets = {}
    for _, request in ipairs(seen) do targets[#targets + 1] = request.target end
    table.sort(targets)
    assert.same({ "/background", "/middleware", "/timer" }, targets)
    t:close()
  end)
end)
