local fetch = require "srv.async.fetch"
local srv = require "srv"
local task = require "srv.async.task"
local tcp = require "srv.async.tcp"

local open_listeners = {}

--- An origin that answers with what FN(head, body) returns. Its URL, and the heads it got.
local function origin(fn)
  local seen = {}
  local listener = assert(tcp.listen("127.0.0.1:0", function(sock)
    while true do
      local head = sock:read_until("\r\n\r\n", "64KiB")
      if not head then return end
      local length, body = tonumber(head:match "[Cc]ontent%-[Ll]ength: (%d+)"), ""
      if length and length > 0 then body = sock:read_exactly(length) end
      if head:find "chunked" then body = sock:read_until("0\r\n\r\n"):match "^%x+\r\n(.-)\r\n" end
      seen[#seen + 1] = head
      local text, ends = fn(head, body)
      if text then sock:write(text) end
      if ends then return sock:close() end
    end
  end))
  open_listeners[#open_listeners + 1] = listener
  return "http://" .. listener.address, seen
end

local function answer(body, fields)
  return ("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s"):format(#body, fields or "", body)
end

--- The URL of a port on which nobody listens.
local function nobody()
  local listener = assert(tcp.listen("127.0.0.1:0", function() end))
  listener:close()
  return "http://" .. listener.address
end

--- Field NAME of a head, all its lines.
local function field(head, name)
  local lines = {}
  for line in head:gmatch("\r\n([^\r\n]+)") do
    local its_name, value = line:match("^([^:]+): (.*)$")
    if its_name and its_name:lower() == name:lower() then lines[#lines + 1] = value end
  end
  return table.concat(lines, "|")
end

local function proxy_to(origins, opts)
  local app = srv.app()
  app:all("/*path", function(req) return srv.http.forward(req, origins, opts) end)
  return srv.test(app)
end

describe("srv.http.forward", function()
  after_each(function()
    for _, listener in ipairs(open_listeners) do listener:close() end
    open_listeners = {}
  end)

  it("passes method, path as sent, fields and body on", function()
    local url, seen = origin(function(_, body) return answer("got " .. body, "X-Answer: yes\r\n") end)
    proxy_to(url):post("/a%20b/c?d=%41&e", { body = "text", headers = { ["X-A"] = "b", ["content-type"] = "text/plain" } })
      :expect(200):expect("got text"):expect("x-answer", "yes")
    assert.matches("^POST /a%%20b/c%?d=%%41&e HTTP/1.1\r\n", seen[1])
    assert.equal("b", field(seen[1], "x-a"))
    assert.equal("text/plain", field(seen[1], "content-type"))
    assert.equal(url:match "//(.*)", field(seen[1], "host"))
  end)

  it("sends no body where there is none", function()
    local url, seen = origin(function() return answer "" end)
    proxy_to(url):get("/"):expect(200)
    assert.equal("", field(seen[1], "content-length"))
    assert.equal("", field(seen[1], "transfer-encoding"))
  end)

  it("keeps what belongs to one connection", function()
    local url, seen = origin(function()
      return answer("x", "Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: x\r\nX-End: 1\r\n")
    end)
    proxy_to(url):get("/", { headers = {
      Connection = "x-hop, close", ["X-Hop"] = "1", TE = "trailers", ["Proxy-Authorization"] = "x", ["Keep-Alive"] = "a", ["X-End"] = "1",
    } }):expect(200):expect("x-hop", false):expect("keep-alive", false):expect("proxy-authenticate", false):expect("x-end", "1")
    for _, name in ipairs { "x-hop", "te", "proxy-authorization", "keep-alive", "connection" } do
      assert.equal("", field(seen[1], name), name)
    end
    assert.equal("1", field(seen[1], "x-end"))
  end)

  it("gives a response that can be taken apart and answered with", function()
    local url = origin(function() return answer("abc", "Connection: x-hop\r\nX-Hop: 1\r\nX-End: 2\r\n") end)
    local app = srv.app()
    app:get("/", function(req)
      local r = srv.http.forward(req, url)
      return r:stream():all():upper(), r.status, r.headers
    end)
    srv.test(app):get("/"):expect(200):expect("ABC"):expect("x-end", "2"):expect("x-hop", false)
  end)

  it("says for whom it asks, and believes no client about it", function()
    local url, seen = origin(function() return answer "" end)
    proxy_to(url):get("/", { host = "shop.example", headers = {
      ["X-Forwarded-For"] = "6.6.6.6", Forwarded = "for=6.6.6.6", ["X-Forwarded-Proto"] = "https", ["X-Forwarded-Host"] = "evil",
    } }):expect(200)
    local ip = field(seen[1], "x-forwarded-for")
    assert.not_matches("6.6.6.6", ip)
    assert.equal("http", field(seen[1], "x-forwarded-proto"))
    assert.equal("shop.example", field(seen[1], "x-forwarded-host"))
    assert.matches('^for=.*;host="shop.example";proto=http$', field(seen[1], "forwarded"))
    assert.not_matches("6.6.6.6", field(seen[1], "forwarded"))
    assert.equal("1.1 srv", field(seen[1], "via"))
  end)

  it("sends the Host it is told to, and headers besides", function()
    local url, seen = origin(function() return answer "" end)
    proxy_to(url, { host = "client" }):get("/", { host = "shop.example" }):expect(200)
    proxy_to(url, { host = "inner.example", headers = { ["X-Key"] = "k", Cookie = false } }):get("/", { headers = { Cookie = "a=1" } }):expect(200)
    proxy_to(url .. "/base/", { path = "/p?q" }):get("/x"):expect(200)
    assert.equal("shop.example", field(seen[1], "host"))
    assert.equal("inner.example", field(seen[2], "host"))
    assert.equal("k", field(seen[2], "x-key"))
    assert.equal("", field(seen[2], "cookie"))
    assert.matches("^GET /base/p%?q HTTP", seen[3])
  end)

  it("sends headers of ours in the place of the client's and of its own, in one line each or several", function()
    local url, seen = origin(function() return answer "" end)
    local headers = { ["X-Key"] = { "a", "b" }, ["x-forwarded-for"] = "10.1.1.1", Via = false }
    proxy_to(url, { headers = headers }):get("/"):expect(200)
    assert.equal("a|b", field(seen[1], "x-key"))
    assert.equal("10.1.1.1", field(seen[1], "x-forwarded-for"))
    assert.equal("", field(seen[1], "via"))
    for _, name in ipairs { "Host", "content-length" } do
      proxy_to(url, { headers = { [name] = "1" } }):get("/"):expect(500)
    end
    assert.equal(1, #seen)
  end)

  it("believes no other spelling of who a client is, and of what ends here", function()
    local url, seen = origin(function() return answer "" end)
    proxy_to(url):get("/", { headers = {
      ["X_Forwarded_For"] = "6.6.6.6", ["X-Real-IP"] = "6.6.6.6", ["X-Forwarded-Prefix"] = "/evil",
      ["Content_Length"] = "5", ["Transfer_Encoding"] = "chunked", ["X_Key"] = "kept",
    } }):expect(200)
    for _, name in ipairs { "x_forwarded_for", "x-real-ip", "x-forwarded-prefix", "content_length", "transfer_encoding" } do
      assert.equal("", field(seen[1], name))
    end
    assert.equal("kept", field(seen[1], "x_key"))
  end)

  it("asks origins in turn, and the next one where one is down", function()
    local a, seen_a = origin(function() return answer "a" end)
    local b, seen_b = origin(function() return answer "b" end)
    local t = proxy_to { a, nobody(), b }
    for _ = 1, 9 do t:get("/"):expect(200) end
    assert.equal(9, #seen_a + #seen_b)
    assert.is_true(#seen_a >= 3 and #seen_b >= 3)
    t:post("/", { body = "x" }):expect(200)
    proxy_to { nobody(), nobody() }:get("/"):expect(502)
  end)

  it("sends a request that may have been seen to one origin only, unless it may be seen twice", function()
    local a, seen_a = origin(function() return nil, true end)
    local b, seen_b = origin(function() return answer "b" end)
    local t = proxy_to { a, b }
    t:post("/", { body = "x" })
    t:post("/", { body = "x" })
    t:post("/", { body = "x" })
    assert.equal(1, #seen_a) -- it is thought to be down then
    assert.is_true(#seen_b >= 1)
    local c, seen_c = origin(function() return nil, true end)
    proxy_to({ c, b }):get("/"):expect(200)
    assert.equal(1, #seen_c)
  end)

  it("streams the answer and passes redirects and codings as they are", function()
    local url = origin(function(head)
      if head:find "/moved" then return "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n" end
      if head:find "/gzip" then return answer("\31\139", "Content-Encoding: gzip\r\n") end
      return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    end)
    local t = proxy_to(url)
    t:get("/moved"):expect(302):expect("location", "/x")
    t:get("/gzip"):expect(200):expect("content-encoding", "gzip"):expect("\31\139")
    t:get("/chunks"):expect(200):expect("abc")
  end)

  it("answers HEAD and 304 without a body", function()
    local url = origin(function(head)
      if head:find "^HEAD" then return "HTTP/1.1 200 OK\r\nContent-Length: 70\r\nETag: \"a\"\r\n\r\n" end
      return "HTTP/1.1 304 Same\r\nETag: \"a\"\r\nContent-Length: 70\r\n\r\n"
    end)
    local t = proxy_to(url)
    t:request("HEAD", "/"):expect(200):expect("content-length", "70"):expect("")
    t:get("/", { headers = { ["If-None-Match"] = '"a"' } }):expect(304):expect("")
  end)

  it("refuses what is no origin, and upgrades", function()
    local app = srv.app()
    app:get("/a", function(req) return srv.http.forward(req, {}) end)
    app:get("/b", function(req) return srv.http.forward(req, "10.0.0.1") end)
    app:get("/c", function(req) return srv.http.forward(req, "http://a/", { pathh = "/" }) end)
    app:get("/d", function(req) return srv.http.forward(req, "http://127.0.0.1:1/") end)
    local t = srv.test(app)
    for _, path in ipairs { "/a", "/b", "/c" } do t:get(path):expect(500) end
    t:get("/d", { headers = { Connection = "Upgrade", Upgrade = "h2c" } }):expect(501)
  end)
end)

describe("a handler that returns a response", function()
  after_each(function()
    for _, listener in ipairs(open_listeners) do listener:close() end
    open_listeners = {}
  end)

  local function passing(url, opts, ...)
    local app, more = srv.app(), { ... }
    app:get("/", function()
      local r, err = fetch.get(url, opts)
      if not r then return nil, err end
      return r, unpack(more)
    end)
    return srv.test(app)
  end

  it("passes on status, fields one by one and the body", function()
    local url = origin(function()
      return "HTTP/1.1 201 Made\r\nContent-Type: text/x\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 4\r\n\r\nbody"
    end)
    for _, opts in ipairs { { stream = false }, { stream = true } } do
      local r = passing(url, opts):get("/"):expect(201):expect("content-type", "text/x"):expect("body")
      assert.same({ a = "1", b = "2" }, { a = r.cookies.a, b = r.cookies.b })
    end
  end)

  it("may have asked with HEAD", function()
    local url = origin(function() return "HTTP/1.1 200 OK\r\nContent-Length: 70\r\nX-A: 1\r\n\r\n" end)
    local app = srv.app()
    app:get("/", function() return fetch.head(url) end)
    assert.is_falsy(srv.test(app):get("/"):expect(200):expect(""):expect("x-a", "1").cut)
  end)

  it("may say another status and other fields", function()
    local url = origin(function() return answer("x", "X-A: 1\r\nX-B: 2\r\n") end)
    passing(url, {}, 203, { ["X-A"] = "changed", ["x-b"] = false }):get("/"):expect(203):expect("x-a", "changed"):expect("x-b", false)
  end)

  it("cuts its answer where the upstream breaks off", function()
    local url = origin(function() return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", true end)
    assert.is_true(passing(url, { stream = true }):get("/").cut)
  end)

  it("answers an upstream's fault with 502 or 504", function()
    passing(nobody(), { retries = 0 }):get("/"):expect(502)
    local url = origin(function() task.sleep(30) end)
    passing(url, { timeout = "30ms" }):get("/"):expect(504)
  end)
end)
