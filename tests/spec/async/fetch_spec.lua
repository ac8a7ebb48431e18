local errors = require "srv.base.errors"
local fetch = require "srv.async.fetch"
local fetch_url = require "srv.async.fetch_url"
local reader = require "srv.base.reader"
local task = require "srv.async.task"
local tcp = require "srv.async.tcp"
local unix = require "srv.async.unix"

--- One request from SOCK: { line, headers, body }, or nil at its end.
local function read_request(sock)
  local head = sock:read_until("\r\n\r\n", "64KiB")
  if not head then return nil end
  local request = { line = head:match("^[^\r\n]*"), headers = {}, body = "" }
  request.method, request.target = request.line:match("^(%S+) (%S+) HTTP/1%.1$")
  for name, value in head:gmatch("\r\n([^:\r\n]+): ([^\r\n]*)") do
    local lower = name:lower()
    request.headers[lower] = request.headers[lower] and request.headers[lower] .. "|" .. value or value
  end
  if request.headers["transfer-encoding"] then
    while true do
      local line = sock:read_until "\r\n"
      if not line then return nil end
      local size = tonumber((line:gsub("\r\n$", "")), 16)
      local piece = size > 0 and sock:read_exactly(size) or ""
      sock:read_until("\r\n")
      request.body = request.body .. piece
      if size == 0 then break end
    end
  elseif request.headers["content-length"] then
    local length = tonumber(request.headers["content-length"])
    request.body = length > 0 and sock:read_exactly(length) or ""
  end
  return request
end

local function answer(body, fields, status)
  return ("HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s"):format(status or "200 OK", #body, fields or "", body)
end

--- A server that answers each request with what FN(request, sock, count) returns: text, and whether the
--- connection ends with it. Its URL, what it was asked, and how many connections there were.
local open_listeners = {}
local function serve(fn, listen)
  local seen = { connections = 0, open = 0 }
  local listener = assert((listen or tcp.listen)(listen and seen.path or "127.0.0.1:0", function(sock)
    seen.connections, seen.open = seen.connections + 1, seen.open + 1
    task.defer(function() seen.open = seen.open - 1 end)
    while true do
      local request = read_request(sock)
      if not request then return end
      seen[#seen + 1] = request
      local text, ends = fn(request, sock, #seen)
      if text then sock:write(text) end
      if ends then return sock:close() end
    end
  end))
  open_listeners[#open_listeners + 1] = listener
  return "http://" .. listener.address, seen
end

local function fails(code, value, err)
  assert.is_nil(value)
  assert.is_true(errors.is(err), tostring(err))
  assert.equal(code, err.code)
  return err
end

local function wait_until(claim)
  for _ = 1, 500 do
    if claim() then return end
    task.sleep(0.01)
  end
  error("in vain")
end

local function is_at_rest()
  local pool = fetch.pool()
  return pool.open == pool.idle and pool.waiting == 0
end

describe("srv.http", function()
  after_each(function()
    for _, listener in ipairs(open_listeners) do listener:close() end
    open_listeners = {}
    wait_until(is_at_rest)
  end)

  describe("a request", function()
    it("has its target, its fields and no more", function()
      local url, seen = serve(function() return answer "" end)
      assert(fetch.get(url .. "/a/b?c=d#e", { query = { q = "x y", n = { 1, 2 } }, headers = { ["X-A"] = 1, X_B = { "b", "c" } } }))
      assert.equal("GET", seen[1].method)
      assert.equal("/a/b?c=d&n=1&n=2&q=x%20y", seen[1].target)
      assert.equal(url:match "//(.*)", seen[1].headers.host)
      assert.equal("1", seen[1].headers["x-a"])
      assert.equal("b|c", seen[1].headers.x_b)
      assert.equal("gzip, deflate, br", seen[1].headers["accept-encoding"])
      assert.is_nil(seen[1].headers["content-length"])
      assert.is_nil(seen[1].headers.connection)
    end)

    it("has a body of JSON, of a form, of parts or of text", function()
      local url, seen = serve(function() return answer "" end)
      fetch.post(url, { json = { a = 1 } })
      fetch.put(url, { form = { a = "x y", b = 2 } })
      fetch.patch(url, { multipart = { t = "v", f = { name = 'a"b.txt', type = "text/plain", body = "file" } } })
      fetch.request("REPORT", url, { body = "text", headers = { ["content-type"] = "text/csv" } })
      fetch.post(url)
      assert.equal('{"a":1}', seen[1].body)
      assert.equal("application/json", seen[1].headers["content-type"])
      assert.equal("a=x%20y&b=2", seen[2].body)
      assert.equal("application/x-www-form-urlencoded", seen[2].headers["content-type"])
      local boundary = seen[3].headers["content-type"]:match("^multipart/form%-data; boundary=(%w+)$")
      assert.equal(("--%s\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a%%22b.txt\"\r\nContent-Type: text/plain\r\n\r\nfile\r\n--%s\r\nContent-Disposition: form-data; name=\"t\"\r\n\r\nv\r\n--%s--\r\n")
        :format(boundary, boundary, boundary), seen[3].body)
      assert.equal("REPORT", seen[4].method)
      assert.equal("text/csv", seen[4].headers["content-type"])
      assert.equal("0", seen[5].headers["content-length"])
    end)

    it("streams a function or a reader, chunked or with the length it is said to have", function()
      local url, seen = serve(function() return answer "" end)
      local pieces = { "one ", "two ", ("x"):rep(200000) }
      local function body() return table.remove(pieces, 1) end
      assert(fetch.post(url, { body = body }))
      assert.equal("chunked", seen[1].headers["transfer-encoding"])
      assert.equal(200008, #seen[1].body)
      local given = "12345"
      local r = reader.new(function() local piece = given given = nil return piece end)
      assert(fetch.post(url, { body = r, headers = { ["Content-Length"] = 5 } }))
      assert.equal("5", seen[2].headers["content-length"])
      assert.equal("12345", seen[2].body)
    end)

    it("fails as its body does", function()
      local url = serve(function() return answer "" end)
      assert.has_error(function() fetch.post(url, { body = function() error("my fault", 0) end }) end, "my fault")
      fails("busy", fetch.post(url, { body = function() return nil, errors.coded("busy", "x") end }))
      local function once(text)
        return function()
          local piece = text
          text = nil
          return piece
        end
      end
      fails("closed", fetch.post(url, { body = once "1234", headers = { ["Content-Length"] = 5 } }))
      fails("closed", fetch.post(url, { body = once "123456", headers = { ["Content-Length"] = 5 } }))
    end)

    it("cannot be split by what it is made of", function()
      assert.has_error(function() fetch.get("http://a/", { headers = { A = "b\r\nC: d" } }) end)
      assert.has_error(function() fetch.get("http://a/", { headers = { A = "b\0" } }) end)
      assert.has_error(function() fetch.get("http://a/", { headers = { ["A: b"] = "c" } }) end)
      assert.has_error(function() fetch.request("GET / HTTP/1.1\r\nA: b", "http://a/") end)
      assert.has_error(function() fetch.get("http://a/", { query = "a b" }) end)
      assert.has_error(function() fetch.get("http://a/", { headers = { ["Transfer-Encoding"] = "chunked" } }) end)
      assert.has_error(function() fetch.get("http://a/", { auth = { "a:b", "c" } }) end)
      for _, url in ipairs { "http://a/\r\nX: y", "http://a\r\n/", "http://a/ b", "http://a/\0", "ftp://a/", "/x", "http:///x", "http://a:0/" } do
        fails("invalid", fetch.get(url))
      end
    end)

    it("refuses unknown options and two bodies", function()
      assert.error_matches(function() fetch.get("http://a/", { time_out = 1 }) end, "did you mean \"timeout\"")
      assert.error_matches(function() fetch.post("http://a/", { json = {}, body = "x" }) end, "only one of")
      assert.error_matches(function() fetch.get("http://a/", { expect = "ok" }) end, "expect")
      assert.error_matches(function() fetch.get(7) end, "the URL must be a string")
    end)

    it("says what is wrong with options of TLS", function()
      local function refuses(words, opts)
        assert.error_matches(function() fetch.get("https://a/", opts) end, words)
      end
      refuses('option "tls": unknown option "verfy", did you mean "verify"', { tls = { verfy = false } })
      refuses('option "key" belongs to a "cert"', { tls = { key = "me.key" } })
      refuses('option "ca" must be the path', { tls = { ca = "" } })
      refuses('option "server_name" must be the name', { tls = { server_name = "a/b" } })
      refuses('option "pin" must be "sha256/"', { tls = { pin = "sha256/AAAA" } })
      refuses("1 to 32 pins", { tls = { pin = {} } })
      refuses('option "http2" must be true, false or "prior"', { http2 = "yes" })
    end)

    it("takes a pin with one slash or two, whatever its hash begins with", function()
      local tls = require "srv.async.tls"
      for _, hash in ipairs { "\255" .. ("\0"):rep(31), ("\0"):rep(32) } do
        local text = require("srv.core.crypto").encode("base64", hash)
        for _, slashes in ipairs { "/", "//" } do
          assert.equal(hash, tls.settings("spec", { pin = "sha256" .. slashes .. text }).pins)
        end
      end
    end)

    it("finds nobody at a port of https that is closed, nor a proxy there", function()
      fails("refused", fetch.get("https://127.0.0.1:1/", { retries = 0 }))
      fails("refused", fetch.get("https://name.example/", { proxy = "https://127.0.0.1:1/", retries = 0 }))
    end)
  end)

  describe("a response", function()
    it("has status, fields in any case, and a body", function()
      local url = serve(function() return answer("hello", "X-A: b\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n", "404 Not Found") end)
      local r = assert(fetch.get(url))
      assert.equal(404, r.status)
      assert.is_false(r.ok)
      assert.equal("hello", r.body)
      assert.equal("b", r:header "X-a")
      assert.equal("b", r.headers["X-A"])
      assert.same({ "a=1", "b=2" }, r:header_lines "Set-Cookie")
      assert.equal(url .. "/", r.url)
      assert.equal("hello", r:stream():all())
    end)

    it("is JSON or says that it is not", function()
      local url = serve(function(request) return answer(request.target == "/good" and '{"a":[1]}' or "{") end)
      assert.same({ 1 }, fetch.get(url .. "/good"):json().a)
      fails("bad_response", fetch.get(url .. "/bad"):json())
    end)

    it("without a body: HEAD, 204, 304", function()
      local url = serve(function(request)
        if request.method == "HEAD" then return "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" end
        return "HTTP/1.1 " .. request.target:sub(2) .. " X\r\n\r\n"
      end)
      assert.equal("500", fetch.head(url):header "content-length")
      assert.equal("", fetch.get(url .. "/204").body)
      assert.equal("", fetch.get(url .. "/304").body)
    end)

    it("is freed from gzip, deflate and brotli", function()
      local GZIP = "\31\139\8\0\0\0\0\0\2\3\203\72\205\201\201\7\0\134\166\16\54\5\0\0\0"
      local DEFLATE = "\203\72\205\201\201\7\0"
      local BROTLI = "\11\2\128hello\3"
      local url = serve(function(request)
        local coding = request.target:sub(2)
        local body = ({ gzip = GZIP, deflate = DEFLATE, br = BROTLI })[coding]
        return answer(body, "Content-Encoding: " .. coding .. "\r\n")
      end)
      for _, coding in ipairs { "gzip", "deflate", "br" } do
        local r = assert(fetch.get(url .. "/" .. coding))
        assert.equal("hello", r.body)
        assert.is_nil(r:header "content-encoding")
        assert.is_nil(r:header "content-length")
        assert.equal("hello", fetch.get(url .. "/" .. coding, { stream = true }):stream():all())
      end
    end)

    it("has trailers behind chunks", function()
      local url = serve(function()
        return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 7\r\n\r\n"
      end)
      assert.equal("7", fetch.get(url).trailers["x-sum"])
      local r = fetch.get(url, { stream = true })
      assert.is_nil(r.trailers["x-sum"])
      assert.equal("hi", r:stream():all())
      assert.equal("7", r.trailers["X-Sum"])
    end)

    it("comes as a stream", function()
      local url = serve(function(_, sock)
        sock:write "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
        for i = 1, 3 do
          sock:write("a" .. i)
          task.sleep(0.01)
        end
      end)
      local r = assert(fetch.get(url, { stream = true }))
      assert.is_nil(r.body)
      assert.equal(6, r.length)
      local all = {}
      for chunk in r:stream() do all[#all + 1] = chunk end
      assert.equal("a1a2a3", table.concat(all))
      assert.is_nil((r:stream():read()))
    end)

    it("over its limit is too large, also when it was small on the way", function()
      local url = serve(function(request)
        if request.target == "/z" then -- 1 MB of zeros
          local file = assert(io.popen "head -c 1000000 /dev/zero | gzip -c")
          local body = file:read "*a"
          file:close()
          return answer(body, "Content-Encoding: gzip\r\n")
        end
        return answer(("x"):rep(1001))
      end)
      fails("too_large", fetch.get(url, { limit = 1000 }))
      assert.equal(1001, #fetch.get(url, { limit = 1001 }).body)
      fails("too_large", fetch.get(url .. "/z", { limit = "64KiB" }))
      fails("too_large", fetch.get(url, { stream = true }):stream():all { limit = 1000 })
    end)

    it("with a head at its limits is read, and refused beyond", function()
      local url = serve(function(request)
        local bytes = tonumber(request.target:sub(2))
        return answer("x", "A: " .. ("v"):rep(bytes) .. "\r\n"), true
      end)
      local fixed = #"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nA: \r\n"
      for delta = -2, 0 do assert.equal("x", fetch.get(("%s/%d"):format(url, 64 * 1024 - fixed + delta)).body) end
      fails("bad_response", fetch.get(("%s/%d"):format(url, 64 * 1024 - fixed + 1), { retries = 0 }))
    end)

    it("that is malformed or breaks off is none", function()
      local texts = {
        ["/two"] = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ["/lf"] = "HTTP/1.1 200 OK\n\n", ["/html"] = "<html>\r\n\r\n",
      }
      local url = serve(function(request) return texts[request.target], true end)
      for target in pairs(texts) do fails("bad_response", fetch.get(url .. target, { retries = 0 })) end
      local cut = serve(function() return "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", true end)
      fails("closed", fetch.get(cut, { retries = 0 }))
      local r = fetch.get(cut, { stream = true })
      assert.equal("abc", r:stream():read())
      fails("closed", r:stream():read())
    end)
  end)

  describe("an expectation", function()
    it("is a status, a class or a list; another is an error with the response", function()
      local url = serve(function() return answer("no", nil, "404 Not Found") end)
      local err = fails("unexpected_status", fetch.get(url, { expect = "2xx" }))
      assert.equal(502, err.status)
      assert.equal("no", err.data.response.body)
      assert(fetch.get(url, { expect = 404 }))
      assert(fetch.get(url, { expect = { 200, "4xx" } }))
      fails("unexpected_status", fetch.get(url, { expect = { 200, 201 } }))
    end)
  end)

  describe("redirects", function()
    it("are followed as browsers do, five at most", function()
      local url, seen = serve(function(request)
        local n = tonumber(request.target:match("/(%d+)$"))
        if not n then return answer("done") end
        return answer("", ("Location: %s\r\n"):format(n == 1 and "../end" or n - 1), "302 Found")
      end)
      local r = assert(fetch.get(url .. "/a/b/5"))
      assert.equal(url .. "/a/end", r.url)
      assert.equal(6, #seen)
      fails("too_many_redirects", fetch.get(url .. "/a/b/6"))
      assert.equal(302, fetch.get(url .. "/a/b/6", { redirects = 0 }).status)
    end)

    it("make a GET of a POST on 301, 302 and 303, and keep it on 307 and 308", function()
      local url, seen = serve(function(request)
        local status = request.target:match("^/(%d+)$")
        return answer("", status and "Location: /end\r\n", status and status .. " X")
      end)
      for _, status in ipairs { 301, 302, 303, 307, 308 } do
        fetch.post(url .. "/" .. status, { body = "b" })
        local last = seen[#seen]
        assert.equal(status < 307 and "GET" or "POST", last.method)
        assert.equal(status < 307 and "" or "b", last.body)
      end
      fetch.put(url .. "/302", { body = "b" })
      assert.equal("PUT", seen[#seen].method)
      fetch.put(url .. "/303", { body = "b" })
      assert.equal("GET", seen[#seen].method)
    end)

    it("keep credentials to their origin", function()
      local other, seen_there = serve(function() return answer "" end)
      local url, seen = serve(function(request)
        return answer("", request.target == "/out" and "Location: " .. other .. "/x\r\n" or request.target == "/in" and "Location: /y\r\n",
          request.target ~= "/y" and "302 Found")
      end)
      local opts = { auth = { "u", "p" }, headers = { Cookie = "a=1", ["X-Other"] = "kept" } }
      fetch.get(url .. "/in", opts)
      assert.equal("Basic dTpw", seen[2].headers.authorization)
      assert.equal("a=1", seen[2].headers.cookie)
      fetch.get(url .. "/out", opts)
      assert.equal("Basic dTpw", seen[3].headers.authorization)
      assert.is_nil(seen_there[1].headers.authorization)
      assert.is_nil(seen_there[1].headers.cookie)
      assert.equal("kept", seen_there[1].headers["x-other"])
      assert.equal(other:match "//(.*)", seen_there[1].headers.host)
    end)

    it("to nowhere are a bad response", function()
      local url = serve(function() return answer("", "Location: ftp://x/\r\n", "302 Found") end)
      fails("bad_response", fetch.get(url))
    end)
  end)

  describe("retries", function()
    it("are for idempotent methods, faults and 502-504", function()
      local url, seen = serve(function(_, _, count)
        if count % 3 == 1 then return nil, true end
        if count % 3 == 2 then return answer("", nil, "503 X") end
        return answer "third time"
      end)
      assert.equal("third time", fetch.get(url).body)
      assert.equal(3, #seen)
      fails("closed", fetch.post(url, { body = "x" }))
      assert.equal(4, #seen)
      assert.equal(503, fetch.get(url, { retries = 0 }).status)
      assert.equal(5, #seen)
    end)

    it("keep Retry-After, and give up when there is no time for it", function()
      local url, seen = serve(function(_, _, count)
        if count == 1 then return answer("", "Retry-After: 1\r\n", "503 X") end
        if count == 2 then return answer "back" end
        return answer("", "Retry-After: 60\r\n", "503 X")
      end)
      local env = require "srv.core.env"
      local begun = env.monotonic()
      assert.equal("back", fetch.get(url).body)
      assert.is_true(env.monotonic() - begun >= 1)
      assert.equal(503, fetch.get(url).status)
      assert.equal(3, #seen)
    end)
  end)

  describe("limits of time", function()
    it("end a call that gets no answer, and its connection", function()
      local url, seen = serve(function() task.sleep(60) end)
      local err = fails("timeout", fetch.get(url, { timeout = "500ms" }))
      assert.equal(504, err.status)
      fails("timeout", fetch.get(url, { first_byte_timeout = "500ms" }))
      assert.equal(2, #seen)
    end)

    it("end a body that drips", function()
      local url = serve(function(_, sock)
        sock:write "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
        repeat task.sleep(0.01) until not sock:write "x"
      end)
      fails("timeout", fetch.get(url, { timeout = "100ms" }))
    end)

    it("are not the upload's, where a request is passed on", function()
      local url, seen = serve(function() return answer "x" end)
      local send = require "srv.async.fetch_send".send
      local request = require "srv.async.fetch_request"
      local left = 4
      local made = assert(request.new("spec", "POST", url, request.merge({}, { timeout = 1, stream = true, body = function()
        left = left - 1
        task.sleep(0.4)
        return left > 0 and "piece" or nil
      end })))
      made.opts.paces = true
      assert.equal("x", assert(send(made, require "srv.core.env".monotonic() + 1)):stream():all())
      assert.equal("piecepiecepiece", seen[1].body)
    end)

    it("of a stream are for each read", function()
      local url = serve(function(_, sock)
        sock:write "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
        for _ = 1, 4 do
          sock:write "x"
          task.sleep(0.4)
        end
        task.sleep(60)
      end)
      local r = fetch.get(url, { stream = true, timeout = "1s" })
      local bytes = 0
      while true do
        local piece, err = r:stream():read()
        if not piece then
          assert.equal("timeout", err.code)
          break
        end
        bytes = bytes + #piece
      end
      assert.equal(4, bytes)
    end)
  end)

  describe("connections", function()
    it("are kept and used again", function()
      local url, seen = serve(function() return answer "x" end)
      for _ = 1, 5 do assert(fetch.get(url)) end
      assert.equal(1, seen.connections)
    end)

    it("are not kept after bytes that nobody announced", function()
      local url, seen = serve(function() return answer "abc" .. "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison" end)
      for _ = 1, 3 do assert.equal("abc", fetch.get(url).body) end
      assert.equal(3, seen.connections)
    end)

    it("that went stale are replaced once, also for a body that was whole", function()
      local url, seen = serve(function(_, _, count)
        if count == 2 then return nil, true end
        return answer("n" .. count)
      end)
      assert.equal("n1", fetch.get(url).body)
      assert.equal("n3", fetch.get(url, { retries = 0 }).body)
      assert.equal(2, seen.connections)
    end)

    it("of another kind are never mixed up", function()
      local url, seen = serve(function() return answer "x" end)
      fetch.get(url)
      fetch.get(url, { proxy = url })
      assert.equal(2, seen.connections)
      assert.equal(url .. "/", seen[2].target)
    end)

    it("are closed when their task ends before the body", function()
      local url, seen = serve(function(_, sock)
        sock:write "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx"
        sock:read()
        return nil, true
      end)
      local kept
      task.spawn(function() kept = fetch.get(url, { stream = true }) end):wait()
      fails("closed", kept:stream():read())
      wait_until(function() return seen.open == 0 end)
      local waiting = task.spawn(function() fetch.get(url, { stream = true }):stream():all() end)
      wait_until(function() return seen.open == 1 end)
      waiting:cancel()
      wait_until(function() return seen.open == 0 end)
      local r = fetch.get(url, { stream = true })
      r:close()
      wait_until(function() return seen.open == 0 end)
    end)

    it("are bounded for each origin, and who waits is served in turn", function()
      local most, now = 0, 0
      local url, seen = serve(function(request)
        now = now + 1
        most = math.max(most, now)
        task.sleep(0.005)
        now = now - 1
        return answer(request.target)
      end)
      fetch.pool { per_origin = 2 }
      local targets = {}
      for i = 1, 20 do targets[i] = url .. "/" .. i end
      local all = assert(task.map(targets, fetch.get, { limit = 20 }))
      fetch.pool {}
      assert.equal("/20", all[20].body)
      assert.equal(2, most)
      assert.equal(2, seen.connections)
    end)

    it("that cannot be made are refused, names that are none are dns", function()
      local listener = assert(tcp.listen("127.0.0.1:0", function() end))
      local address = listener.address
      listener:close()
      local err = fails("refused", fetch.get("http://" .. address .. "/", { retries = 0 }))
      assert.equal(502, err.status)
      fails("dns", fetch.get("http://no-such-host.invalid/", { retries = 0, timeout = "5s" }))
    end)

    it("go over Unix sockets", function()
      local path = os.tmpname()
      os.remove(path)
      local listener = assert(unix.listen(path, function(sock)
        local request = read_request(sock)
        sock:write(answer(request.headers.host .. request.target))
      end))
      assert.equal("name.example/x", fetch.get("http://name.example/x", { unix = path }).body)
      listener:close()
    end)
  end)

  describe("a client", function()
    it("has defaults that a call may override", function()
      local url, seen = serve(function() return answer "x" end)
      local api = fetch.client { base = url .. "/v1/", headers = { ["X-Key"] = "k", A = "1" }, query = { a = 1 }, expect = "2xx" }
      assert(api.get("/items", { query = { b = 2 }, headers = { a = "2" } }))
      assert.equal("/v1/items?a=1&b=2", seen[1].target)
      assert.equal("k", seen[1].headers["x-key"])
      assert.equal("2", seen[1].headers.a)
      local narrower = api.client { headers = { B = "3" } }
      assert(narrower.post("items", { json = {} }))
      assert.equal("/v1/items?a=1", seen[2].target)
      assert.equal("3", seen[2].headers.b)
    end)

    it("refuses a base that is none", function()
      for _, base in ipairs { "api.example", "ftp://a", "http://a/?q", "http://a/#f" } do
        assert.error_matches(function() fetch.client { base = base } end, "base")
      end
    end)

    it("sends its credentials to its base alone", function()
      local other, seen_there = serve(function() return answer "" end)
      local url, seen = serve(function() return answer "" end)
      local api = fetch.client { base = url, auth = { "u", "p" }, headers = { Cookie = "a=1" }, query = { key = "k" } }
      api.get("/x")
      api.get(other .. "/x")
      assert.equal("Basic dTpw", seen[1].headers.authorization)
      assert.same({ "/x?key=k", "/x" }, { seen[1].target, seen_there[1].target })
      assert.is_nil(seen_there[1].headers.authorization)
      assert.is_nil(seen_there[1].headers.cookie)
    end)
  end)

  describe("a proxy", function()
    it("is asked with the whole URL, and authorized", function()
      local proxy, seen = serve(function() return answer "by proxy" end)
      local r = fetch.get("http://name.example/x?y", { proxy = (proxy:gsub("//", "//u:p@")) })
      assert.equal("by proxy", r.body)
      assert.equal("http://name.example/x?y", seen[1].target)
      assert.equal("name.example", seen[1].headers.host)
      assert.equal("Basic dTpw", seen[1].headers["proxy-authorization"])
    end)

    it("is the environment's, but for names in NO_PROXY and for this machine", function()
      local env = { HTTP_PROXY = "proxy:3128", NO_PROXY = "example.org, .inner, 10.0.0.1:81" }
      local real = os.getenv
      os.getenv = function(name) return env[name] end -- luacheck: ignore 122
      local function proxy_of(url) return fetch_url.proxy_of_environment(fetch_url.target(url)) end
      finally(function() os.getenv = real end) -- luacheck: ignore 122
      assert.equal("http://proxy:3128", proxy_of "http://other.org/")
      assert.is_nil(proxy_of "http://example.org/")
      assert.is_nil(proxy_of "http://www.example.org/")
      assert.equal("http://proxy:3128", proxy_of "http://badexample.org/")
      assert.is_nil(proxy_of "http://x.inner/")
      assert.is_nil(proxy_of "http://10.0.0.1:81/")
      assert.equal("http://proxy:3128", proxy_of "http://10.0.0.1/")
      assert.is_nil(proxy_of "http://localhost:99/")
      assert.is_nil(proxy_of "http://127.0.0.2/")
      assert.is_nil(proxy_of "http://[::1]/")
      env.NO_PROXY = "*"
      assert.is_nil(proxy_of "http://other.org/")
    end)
  end)

  describe("freshness", function()
    local function fresh(fields, opts, status)
      local url = serve(function() return answer("x", fields, status) end)
      return fetch.get(url, opts):fresh_for()
    end

    it("is what a shared cache may count on", function()
      assert.equal(60, fresh "Cache-Control: max-age=60\r\n")
      assert.equal(90, fresh "Cache-Control: max-age=60, s-maxage=90\r\n")
      assert.equal(50, fresh "Cache-Control: public, max-age=60\r\nAge: 10\r\n")
      assert.equal(0, fresh "Cache-Control: max-age=60\r\nAge: 100\r\n")
      assert.equal(3600, fresh "Date: Mon, 30 Nov 2026 15:00:00 GMT\r\nExpires: Mon, 30 Nov 2026 16:00:00 GMT\r\n")
      assert.equal(0, fresh "Date: Mon, 30 Nov 2026 15:00:00 GMT\r\nExpires: 0\r\n")
      assert.equal(0, fresh "")
      for _, directive in ipairs { "no-store", "no-cache", "private" } do
        assert.equal(0, fresh("Cache-Control: max-age=60, " .. directive .. "\r\n"))
      end
      assert.equal(0, fresh "Cache-Control: max-age=60\r\nSet-Cookie: a=1\r\n")
      assert.equal(0, fresh "Cache-Control: max-age=60\r\nVary: *\r\n")
      assert.equal(0, fresh("Cache-Control: max-age=60\r\n", nil, "500 X"))
      assert.equal(0, fresh("Cache-Control: max-age=60\r\n", { auth = { "u", "p" } }))
      assert.equal(60, fresh("Cache-Control: public, max-age=60\r\n", { auth = { "u", "p" } }))
    end)
  end)
end)

describe("references", function()
  --- RFC 3986, 5.4
  local base = fetch_url.target "http://a/b/c/d;p?q"
  local cases = {
    ["g"] = "http://a/b/c/g", ["./g"] = "http://a/b/c/g", ["g/"] = "http://a/b/c/g/", ["/g"] = "http://a/g",
    ["//g"] = "http://g/", ["?y"] = "http://a/b/c/d;p?y", ["g?y"] = "http://a/b/c/g?y", ["#s"] = "http://a/b/c/d;p?q",
    ["g;x?y#s"] = "http://a/b/c/g;x?y", [""] = "http://a/b/c/d;p?q", ["."] = "http://a/b/c/", ["./"] = "http://a/b/c/",
    [".."] = "http://a/b/", ["../g"] = "http://a/b/g", ["../.."] = "http://a/", ["../../g"] = "http://a/g",
    ["../../../g"] = "http://a/g", ["/./g"] = "http://a/g", ["/../g"] = "http://a/g", ["g."] = "http://a/b/c/g.",
    ["..g"] = "http://a/b/c/..g", ["./g/."] = "http://a/b/c/g/", ["g/../h"] = "http://a/b/c/h",
    ["http://x:81/y z"] = "http://x:81/y%20z", ["//x/\xc3\xa4"] = "http://x/%C3%A4",
  }
  for reference, want in pairs(cases) do
    it(("%q"):format(reference), function() assert.equal(want, fetch_url.text(assert(fetch_url.resolve(base, reference)))) end)
  end
end)
