--- API, section 4: what a handler may return, and what `res` does.
local srv = require "srv"

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

local function get(fn, opts)
  local app = srv.app()
  app:get("/", fn)
  return srv.test(app):get("/", opts)
end

--- FN's misuse inside a handler must be blamed on this file.
local function assert_misuse(wanted, fn)
  local seen
  get(function(req, res) seen = message_of(function() fn(req, res) end) return nil, 204 end)
  assert.is_truthy(seen:find("s04_answer_spec.lua:%d+:"), seen)
  assert.is_truthy(seen:find(wanted), seen)
end

local function no_type(answer) return answer.headers["content-type"] == nil end

describe("a returned value", function()
  it("string: text, never sniffed; empty is an empty 200", function()
    get(function() return "<html>" end):expect(200):expect("content-type", "text/plain; charset=utf-8"):expect("<html>")
    get(function() return "" end):expect(200):expect(""):expect("content-length", "0")
    get(function(_, res) res:type "xml" return "<a/>" end):expect("content-type", "^application/xml")
    get(function() return "x", 201, { ["Content-Type"] = "text/csv" } end):expect(201):expect("content-type", "text/csv")
  end)

  it("table: JSON, __tojson first, then the response schema", function()
    get(function() return { b = 1, a = { 2 } } end):expect('{"a":[2],"b":1}'):expect("content-type", "^application/json")
    get(function() return setmetatable({}, { __tojson = function() return { made = true } end }) end):expect('{"made":true}')
    get(function() return {} end):expect("[]")
    local app = srv.app()
    app:get("/", { response = { a = "integer" } }, function()
      return setmetatable({}, { __tojson = function() return { a = 1, secret = 2 } end })
    end)
    srv.test(app):get("/"):expect('{"a":1}')
  end)

  it("srv.null: JSON null", function()
    get(function() return srv.null end):expect("null"):expect("content-type", "^application/json")
  end)

  it("function, reader or callable: a stream, octets unless set", function()
    local function parts()
      local n = 0
      return function() n = n + 1 return ({ "a", "b" })[n] end
    end
    local answer = get(function() return parts() end)
    answer:expect(200):expect("ab"):expect("content-type", "application/octet-stream")
    get(function() return setmetatable({}, { __call = parts() }) end):expect("ab")
    get(function(_, res) res:type "csv" return parts(), 202 end):expect(202):expect("content-type", "text/csv; charset=utf-8")
    get(function() return coroutine.wrap(function() coroutine.yield "x" srv.sleep(0.001) coroutine.yield "y" end) end):expect("xy")
  end)

  it("a stream is not called for HEAD, and `nil, err` cuts it", function()
    local app, called = srv.app(), 0
    app:get("/", function() return function() called = called + 1 end end)
    app:get("/cut", function()
      local n = 0
      return function() n = n + 1 if n == 1 then return "first" end return nil, srv.error.new(502) end
    end)
    local t = srv.test(app)
    t:head("/"):expect(200)
    assert.equal(0, called)
    assert.is_true(t:get("/cut").cut)
  end)

  it("nil, status: no body below 400, srv.error from there on", function()
    assert.is_true(no_type(get(function() return nil, 204 end):expect(204):expect("")))
    get(function() return nil, 201 end):expect(201):expect(""):expect("content-length", "0")
    get(function() return nil, 404 end):expect(404):expect("content-type", "application/problem+json"):expect { code = "not_found" }
    get(function() return nil, 303, { Location = "/x" } end):expect(303):expect("location", "/x")
    get(function() return nil, 503, { ["Retry-After"] = 7 } end):expect(503):expect("retry-after", "7")
  end)

  it("nil, err or an error object: as if raised", function()
    get(function() return nil, srv.error.new(409, "taken") end):expect(409):expect { detail = "taken", code = "conflict" }
    get(function() return srv.error.new(410, "gone") end):expect(410):expect { detail = "gone" }
    get(function() return nil, "a string" end):expect(500)
    get(function() return nil, { status = 404, message = "adopted" } end):expect(404):expect { detail = "adopted" }
  end)

  it("res or nothing: what res holds, or no_answer that names the route", function()
    get(function(_, res) return res:status(204) end):expect(204):expect("")
    get(function(_, res) res:status(201):json { a = 1 } end):expect(201):expect { a = 1 }
    get(function(_, res) return res:html "<p>" end):expect("content-type", "text/html; charset=utf-8")
    local answer = get(function() end):expect(500)
    local found
    for _, entry in ipairs(answer.log) do
      found = found or entry.fields.err and entry.fields.err.code == "no_answer" and entry.fields.err.message
    end
    assert.is_truthy(found and found:find("GET /", 1, true), found)
  end)

  it("goes with a status that was set on res", function()
    get(function(_, res) res:status(201) return "x" end):expect(201):expect("x")
    get(function(_, res) res:status(201) return { a = 1 }, 202 end):expect(202)
    get(function(_, res) res:status(204) return "x", 200 end):expect(200):expect("x")
  end)

  it("number, boolean, other: bad_answer", function()
    for _, value in ipairs { 404, true, false } do
      local answer = get(function() return value end):expect(500)
      local found
      for _, entry in ipairs(answer.log) do found = found or entry.fields.err and entry.fields.err.code end
      assert.equal("bad_answer", found)
    end
    get(function() return false, 404 end):expect(500)
    get(function() return coroutine.create(print) end):expect(500)
  end)

  it("status is a whole number from 200 to 599, and 204, 205, 304 drop the body", function()
    for _, status in ipairs { 199, 600, 200.5, "200", 0, -1, 1e10 } do
      get(function() return "x", status end):expect(500)
    end
    assert.is_true(no_type(get(function() return "x", 204 end):expect(204):expect("")))
    get(function() return "x", 205 end):expect(205):expect("")
    get(function() return { 1 }, 304 end):expect(304):expect("")
    assert_misuse("status", function(_, res) res:status(1000) end)
    assert_misuse("status", function(_, res) res:status(100) end)
    assert_misuse("status", function(_, res) res:status "abc" end)
  end)

  it("headers: strings, numbers, arrays as lines, false removes; nothing is injected", function()
    local answer = get(function(_, res)
      res:header("X-Gone", "1")
      return "x", 200, { ["X-A"] = "s", ["X-N"] = 5, ["X-L"] = { "1", "2" }, ["X-Gone"] = false }
    end)
    answer:expect("x-a", "s"):expect("x-n", "5"):expect("x-l", "1, 2"):expect("x-gone", false)
    for _, bad in ipairs { "a\r\nX-Evil: 1", "a\nb", "a\0b", "\r" } do
      local evil = get(function() return "x", 200, { ["X-A"] = bad } end):expect(500)
      assert.is_nil(evil.headers["x-evil"])
      assert_misuse("", function(_, res) res:header("X-A", bad) end)
      assert_misuse("", function(_, res) res:append("X-A", bad) end)
      assert_misuse("", function(_, res) res:type(bad) end)
    end
    for _, name in ipairs { "X A", "", "X:A", "X\r\n", "Ü" } do
      get(function() return "x", 200, { [name] = "v" } end):expect(500)
      assert_misuse("", function(_, res) res:header(name, "v") end)
    end
    get(function() return "x", 200, { ["X-A"] = {} } end)
    get(function() return "x", 200, { ["X-A"] = print } end):expect(500)
    get(function() return "x", 200, "no table" end):expect(500)
  end)

  it("refuses the fields that are the server's", function()
    for _, name in ipairs { "Connection", "Transfer-Encoding", "Keep-Alive", "Upgrade" } do
      local answer = get(function(_, res) res:header(name, "close, x") return "x" end)
      assert.are_not.equal("close, x", answer.headers[name:lower()])
    end
  end)

  it("a second answer raises answered_twice with both places, and the first stands", function()
    local err
    local answer = get(function(_, res)
      res:json { first = true }
      local _, raised = pcall(function() res:text "second" end)
      err = raised
      error(raised, 0)
    end)
    answer:expect(200):expect { first = true }
    assert.equal("answered_twice", err.code)
    local _, places = err.message:gsub("s04_answer_spec.lua:%d+", "")
    assert.equal(2, places, err.message)
    for _, second in ipairs { "second", { second = true }, function() end } do
      local returned = get(function(_, res) res:text "first" return second end):expect(200):expect("first")
      local told = returned.log[1].fields.err
      assert.equal("answered_twice", told.code)
      assert.is_truthy(told.message:find("the handler of GET / answered .*s04_answer_spec.lua:%d+"), told.message)
    end
    get(function(_, res) res:text "first" return "second" end):expect(200):expect("first")
    get(function(_, res) res:redirect "/x" return nil, 204 end):expect(302)
  end)

  it("on another error drops body, status and what describes them, other fields stay", function()
    local answer = get(function(_, res)
      res:header("X-Kept", "1"):vary("Origin"):cookie("c", "1"):etag "v"
      res:last_modified(1):header("Cache-Control", "max-age=5"):header("Expires", "0"):header("Content-Language", "de")
      res:header("Location", "/x"):status(201):html "<p>"
      error "boom"
    end)
    answer:expect(500):expect("x-kept", "1"):expect("vary", "^.*Origin"):expect("set-cookie", "^c=1")
    for _, name in ipairs { "etag", "last-modified", "cache-control", "expires", "content-language", "location" } do
      assert.is_nil(answer.headers[name], name)
    end
  end)
end)

describe("res", function()
  it("reads what it set", function()
    local got
    get(function(_, res)
      got = { res:status(), res:status(202) == res, res:status(), res:header("X-A", "1") == res, res:header "x-a", res:header "none",
        res:append("X-A", "2") == res, res:header "X-A", res:remove("x-a") == res, res:header "x-a", res.answered, res.committed }
      return nil, 204
    end)
    assert.equal(200, got[1])
    assert.is_true(got[2])
    assert.equal(202, got[3])
    assert.is_true(got[4])
    assert.equal("1", got[5])
    assert.is_nil(got[6])
    assert.is_true(got[7])
    assert.is_truthy(got[8])
    assert.is_true(got[9])
    assert.is_nil(got[10])
    assert.is_true(got[11])   -- a status alone is an answer
    assert.is_false(got[12])
  end)

  it("chains: setters and recorders return res", function()
    local ok
    local function fresh(fn) get(function(_, res) ok = fn(res) == res return res.answered and res or nil, not res.answered and 204 or nil end) end
    for name, fn in pairs {
      type = function(r) return r:type "json" end, json = function(r) return r:json {} end, html = function(r) return r:html "" end,
      text = function(r) return r:text "" end, bytes = function(r) return r:bytes "" end, send = function(r) return r:send "x" end,
      redirect = function(r) return r:redirect "/" end, cookie = function(r) return r:cookie("a", "b") end,
      clear = function(r) return r:clear_cookie "a" end, etag = function(r) return r:etag "x" end,
      last_modified = function(r) return r:last_modified(0) end, vary = function(r) return r:vary("a", "b") end,
      links = function(r) return r:links { next = "/x" } end, file = function(r) return r:file "web/public/hello.txt" end,
      trailer = function(r) return r:trailer("X-T", "1") end, download = function(r) return r:download "web/public/hello.txt" end,
      body = function(r) return r:text("x"):body "y" end,
    } do
      ok = nil
      fresh(fn)
      assert.is_true(ok, name)
    end
  end)

  it("blames what is no value on the caller's line", function()
    for _, fn in ipairs {
      function(res) res:text() end, function(res) res:html(nil) end, function(res) res:html {} end, function(res) res:bytes {} end,
      function(res) res:send() end, function(res) res:links(5) end, function(res) res:links { next = 5 } end,
      function(res) res:cookie(5, "x") end, function(res) res:cookie("a", print) end, function(res) res:cookie("a", "x", { secure = "maybe" }) end,
      function(res) res:clear_cookie() end, function(res) res:file() end, function(res) res:download() end, function(res) res:trailer() end,
      function(res) res:trailer("Content-Length", "5") end, function(res) res:trailer("a b", "5") end, function(res) res:trailer("X\r\nE", "5") end,
      function(res) res:trailer("X", "5\r\nE: 1") end, function(res) res:trailer("X", {}) end, function(res) res:negotiate() end,
      function(res) res:header() end, function(res) res:header("x", { 1, print }) end, function(res) res:early_hints() end,
      function(res) res:early_hints { Link = "a\r\nb" } end, function(res) res:sse { heartbeat = "x" } end,
    } do assert_misuse("", function(_, res) fn(res) end) end
  end)

  it("knows types by word, extension and media type; text types get the charset", function()
    for given, wanted in pairs {
      json = "^application/json", html = "text/html; charset=utf-8", text = "text/plain; charset=utf-8", xml = "^application/xml",
      css = "text/css; charset=utf-8", js = "^text/javascript; charset=utf%-8$", csv = "text/csv; charset=utf-8",
      bin = "application/octet-stream", png = "image/png", [".svg"] = "^image/svg%+xml", ["image/webp"] = "image/webp",
      ["text/x-mine"] = "text/x-mine; charset=utf-8", ["text/html; charset=latin1"] = "text/html; charset=latin1",
    } do
      get(function(_, res) return res:type(given):send "x" end):expect("content-type", wanted)
    end
    assert_misuse("", function(_, res) res:type "nosuchtype" end)
  end)

  it("send() goes by the table of returned values", function()
    get(function(_, res) res:send "x" end):expect("content-type", "^text/plain")
    get(function(_, res) res:send { 1 } end):expect("[1]")
    get(function(_, res) res:send(srv.null) end):expect("null")
    get(function(_, res) res:send(5) end):expect(500)
    get(function(_, res) res:json(5) end):expect("5")
    get(function(_, res) res:json(nil) end)
  end)

  it("redirects: encodes the URL, a short body by Accept, escaped", function()
    get(function(_, res) return res:redirect "/ü x\"<" end):expect(302):expect("location", "/%C3%BC%20x%22%3C")
      :expect("content-type", "^text/plain")
    local html = get(function(_, res) return res:redirect("/a?b=1&c='2'", 303) end, { headers = { Accept = "text/html" } })
    html:expect(303):expect("content-type", "^text/html"):expect("location", "/a?b=1&c='2'")
    assert.is_nil(html.body:find("&c", 1, true))
    get(function(_, res) return res:redirect "/100%25" end):expect("location", "/100%25")
    local answer = get(function(_, res) return res:redirect "/x\r\nSet-Cookie: a=b" end)
    assert.is_nil(answer.headers["set-cookie"])
    assert_misuse("status", function(_, res) res:redirect("/", 200) end)
    assert_misuse("URL", function(_, res) res:redirect(nil) end)
  end)

  it("files: beneath root only, 404, ranges, validators", function()
    local function file(path, opts, request)
      local app = srv.app()
      app:get("/", function(_, res) return res:file(path, opts) end)
      return srv.test(app):get("/", request)
    end
    local whole = file "web/public/hello.txt":expect(200):expect("content-type", "text/plain; charset=utf-8")
    file("../spec/web/outside.txt"):expect(404)
    file("web/public/../outside.txt", { root = "web/public" }):expect(404)
    file("../outside.txt", { root = "web/public" }):expect(404)
    file("/etc/passwd"):expect(404)
    file("web/public"):expect(404)
    file("web/public/none.txt"):expect(404)
    file("web/public/hello.txt\0.png"):expect(400)
    file("web/public/.secret"):expect(404)
    file("web/public/hello.txt", nil, { headers = { Range = "bytes=0-1" } }):expect(206):expect(whole.body:sub(1, 2))
    file("web/public/hello.txt", nil, { headers = { Range = "bytes=999999-" } }):expect(416)
    file("web/public/hello.txt", nil, { headers = { ["If-None-Match"] = whole.headers.etag } }):expect(304)
    file("web/public/hello.txt", nil, { headers = { ["If-Match"] = '"other"' } }):expect(412)
    file("web/public/hello.txt", { max_age = "1h", immutable = true }):expect("cache-control", "^.*max%-age=3600"):expect("cache-control", "^.*immutable")
    file("web/public/hello.txt", { type = "text/x" }):expect("content-type", "^text/x")
    local download = srv.app()
    download:get("/", function(_, res) return res:download("web/public/hello.txt", 'ü".txt') end)
    srv.test(download):get("/"):expect("content-disposition", "^attachment; ")
    assert_misuse('did you mean "max_age"', function(_, res) res:file("x", { maxage = 1 }) end)
  end)

  it("writes a stream: head first, then chunks", function()
    get(function(_, res)
      assert(res:status(201):type("text"):write "a" == res)
      assert(res.committed)
      res:flush()
      res:write "b"
    end):expect(201):expect("ab")
    assert.is_true(get(function(_, res) res:write "a" error "late" end).cut)
    assert_misuse("string", function(_, res) res:write(5) end)
  end)

  it("sends events", function()
    local events = get(function(_, res)
      local s = res:sse()
      assert(s:send("one\ntwo", { event = "e", id = 5 }) == true)
      s:comment "hi"
      s:send { a = 1 }
    end):expect("content-type", "^text/event%-stream"):events()
    assert.same({ event = "e", id = "5", data = "one\ntwo" }, events[1])
    assert.equal('{"a":1}', events[2].data)
  end)

  it("last_id is what the client has seen, and events cannot be injected", function()
    local answer = get(function(_, res)
      local s = res:sse()
      s:send(tostring(s.last_id))
      pcall(s.send, s, "x", { event = "a\ndata: evil" })
    end, { headers = { ["Last-Event-ID"] = "41" } })
    assert.equal("41", answer:events()[1].data)
    assert.is_nil(answer.body:find("\ndata: evil", 1, true))
  end)

  it("cookies: attributes, defaults, encoding", function()
    local function set(...)
      local args = { ... }
      return get(function(_, res) return res:cookie(unpack(args)):send "x" end).headers["set-cookie"]
    end
    assert.equal("a=1; Path=/; HttpOnly; SameSite=Lax", set("a", "1"))
    assert.equal("a=x%20%3B%2C%C3%BC; Path=/; HttpOnly; SameSite=Lax", set("a", "x ;,ü"))
    assert.equal("a=1; Path=/x; Secure; SameSite=None", set("a", "1", { path = "/x", http_only = false, same_site = "none", secure = true }))
    assert.equal("a=1; Path=/; HttpOnly", set("a", "1", { same_site = false }))
    assert.is_truthy(set("a", "1", { max_age = "1h", domain = "a.test", partitioned = true, secure = true })
      :find("Max%-Age=3600; Domain=a%.test; Path=/; Expires=.-GMT; HttpOnly; Secure; Partitioned"))
    assert.is_truthy(set("a", "v", { signed = true }):find("^a=s%%3Av%.[%w_-]+;"))
    assert.is_truthy(set("a", { x = 1 }):find("^a=j%%3A%%7B%%22x%%22%%3A1%%7D;"))
    assert.is_truthy(get(function(_, res) return res:clear_cookie("a", { path = "/x" }):send "x" end).headers["set-cookie"]
      :find("^a=; Max%-Age=0; Path=/x; Expires=Thu, 01 Jan 1970"))
    assert_misuse("name", function(_, res) res:cookie("a b", "1") end)
    assert_misuse("name", function(_, res) res:cookie("a;b", "1") end)
    assert_misuse("path", function(_, res) res:cookie("a", "1", { path = "/; Secure" }) end)
    assert_misuse("domain", function(_, res) res:cookie("a", "1", { domain = "a\r\nb" }) end)
    assert_misuse("same_site", function(_, res) res:cookie("a", "1", { same_site = "laxx" }) end)
    assert_misuse('did you mean "http_only"', function(_, res) res:cookie("a", "1", { httponly = true }) end)
    assert_misuse("value", function(_, res) res:cookie("a", nil) end)
  end)

  it("etag and last_modified give 304 and 412 by themselves", function()
    local app = srv.app()
    app:get("/", function(_, res) res:etag("v1"):last_modified(1000000000) return "body" end)
    app:get("/weak", function(_, res) res:etag("v1", { weak = true }) return "body" end)
    app:put("/", function(_, res) res:etag "v2" return "done" end)   -- the state after the change: no condition to test
    local t = srv.test(app)
    t:get("/"):expect("etag", '"v1"'):expect("last-modified", "Sun, 09 Sep 2001 01:46:40 GMT"):expect("body")
    t:get("/weak"):expect("etag", 'W/"v1"')
    t:get("/", { headers = { ["If-None-Match"] = '"x", W/"v1"' } }):expect(304):expect(""):expect("etag", '"v1"')
    t:get("/", { headers = { ["If-None-Match"] = "*" } }):expect(304)
    t:get("/", { headers = { ["If-Modified-Since"] = "Sun, 09 Sep 2001 01:46:40 GMT" } }):expect(304)
    t:get("/", { headers = { ["If-Modified-Since"] = "Sun, 09 Sep 2001 01:46:39 GMT" } }):expect(200)
    t:get("/", { headers = { ["If-None-Match"] = '"x"', ["If-Modified-Since"] = "Sun, 09 Sep 2001 01:46:40 GMT" } }):expect(200)
    t:get("/", { headers = { ["If-Match"] = '"x"' } }):expect(412)
    t:get("/", { headers = { ["If-Match"] = '"x", "v1"' } }):expect(200)
    t:get("/weak", { headers = { ["If-Match"] = 'W/"v1"' } }):expect(412)
    t:get("/", { headers = { ["If-Unmodified-Since"] = "Sun, 09 Sep 2001 01:46:39 GMT" } }):expect(412)
    t:put("/", { headers = { ["If-Match"] = '"v1"' } }):expect(200):expect("etag", '"v2"')
    assert_misuse("", function(_, res) res:etag 'a"b' end)
    assert_misuse("", function(_, res) res:etag '"a"b"' end)
    assert_misuse("", function(_, res) res:etag "a\r\nb" end)
    assert_misuse('did you mean "weak"', function(_, res) res:etag("a", { waek = true }) end)
    for _, moment in ipairs { "yesterday", 0 / 0, 1 / 0, 1e300 } do
      assert_misuse("last_modified", function(_, res) res:last_modified(moment) end)
    end
    get(function(_, res) res:etag('"v"', { weak = true }) return "x" end):expect("etag", 'W/"v"')
  end)

  it("vary adds each name once, links add in byte order", function()
    get(function(_, res) res:vary("Origin"):vary("origin", "Accept") return "x" end):expect("vary", "Origin, Accept")
    get(function(_, res) res:vary "*" return "x" end):expect("vary", "*")
    get(function(_, res) res:links { prev = "/1", next = "/3" }:links { up = "/ü" } return "x" end)
      :expect("link", '</3>; rel="next", </1>; rel="prev", </%C3%BC>; rel="up"')
    assert_misuse("", function(_, res) res:links { ['a"b'] = "/x" } end)
  end)

  it("negotiate picks by Accept, sets type and Vary, 406 if none fits", function()
    local function with(accept) return get(function(_, res) return res:negotiate("json", "html") end, { headers = { Accept = accept } }) end
    with("text/html"):expect("html"):expect("content-type", "text/html; charset=utf-8"):expect("vary", "Accept")
    with("image/png"):expect(406):expect("vary", "Accept")
  end)

  it("trailers and early hints", function()
    local answer = get(function(_, res)
      res:early_hints { Link = "</a.css>; rel=preload" }
      res:trailer("X-T", function() return "done" end)
      local n = 0
      return function() n = n + 1 return ({ "a" })[n] end
    end)
    answer:expect("a")
    assert.same({ 103 }, answer.interim)
  end)

  it("HEAD has the headers of GET without a body", function()
    local app = srv.app()
    app:get("/", function() return { a = 1 } end)
    srv.test(app):head("/"):expect(200):expect(""):expect("content-length", "7"):expect("content-type", "^application/json")
  end)
end)
