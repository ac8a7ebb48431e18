local srv = require "srv"

--- A client of an app with one GET route at "/".
local function client_of(handler, opts)
  local app = srv.app()
  app:get("/", opts or {}, handler)
  return srv.test(app)
end

local function get(handler, opts) return client_of(handler):get("/", opts) end

--- The code of the error that was logged.
local function logged(answer) return answer.log[1] and answer.log[1].fields.err and answer.log[1].fields.err.code end

describe("what a handler returns", function()
  it("is text, JSON, or nothing with a status", function()
    get(function() return "x" end):expect(200):expect("x"):expect("content-type", "text/plain; charset=utf-8")
    get(function() return "" end):expect(200):expect(""):expect("content-length", "0")
    get(function() return { hello = "world" } end):expect('{"hello":"world"}'):expect("content-type", "application/json")
    get(function() return {} end):expect("[]")
    get(function() return srv.json.object {} end):expect("{}")
    get(function() return srv.null end):expect("null")
    get(function() return nil, 204 end):expect(204):expect(""):expect("content-type", false)
    get(function() return nil, 404 end):expect(404):expect { code = "not_found" }
    get(function(_, res) res:status(204) end):expect(204)
    get(function(_, res) return res:json { a = 1 } end):expect { a = 1 }
  end)

  it("may have a status and headers", function()
    local r = get(function()
      return "made", 201, { Location = "/x", ["X-N"] = 7, ["Set-Cookie"] = { "a=1", "b=2" }, ["X-No"] = false }
    end):expect(201):expect("location", "/x"):expect("x-n", "7"):expect("x-no", false)
    assert.equal("a=1, b=2", r.headers["set-cookie"])
  end)

  it("is an error as if it had been raised", function()
    get(function() return nil, srv.error.new(409, "taken", { code = "unique" }) end):expect(409):expect { code = "unique", detail = "taken" }
    get(function() return srv.error.new(410) end):expect(410)
    get(function() error(srv.error.new(404, "No documents found")) end):expect(404):expect { detail = "No documents found" }
  end)

  it("is refused when it is a number or a boolean", function()
    local r = get(function() return 404 end):expect(500)
    assert.equal("bad_answer", logged(r))
    assert.matches('write "nil, 404"', r.log[1].fields.err.message)
    assert.equal("bad_answer", logged(get(function() return true end):expect(500)))
    assert.equal("bad_answer", logged(get(function() return { f = print } end):expect(500)))
    assert.equal("bad_answer", logged(get(function() return "x", 99 end):expect(500)))
    assert.equal("bad_answer", logged(get(function() return "x", 200, "headers" end):expect(500)))
  end)

  it("may have a __tojson that waits", function()
    local Row = { __tojson = function(self) srv.sleep(0.001) return { id = self.n } end }
    get(function() return setmetatable({ n = 7 }, Row) end):expect('{"id":7}')
    get(function() return { rows = { setmetatable({ n = 7 }, Row) } }, 201 end):expect(201):expect('{"rows":[{"id":7}]}')
  end)

  it("cannot inject a header", function()
    for _, name in ipairs { "X-Test", "X\r\nInjected" } do
      local r = get(function() return "x", 200, { [name] = "a\r\nInjected: 1" } end):expect(500):expect("injected", false)
      assert.is_nil(r.headers["x-test"])
    end
    get(function(_, res) res:header("X-Test", "a\nb") return "x" end):expect(500):expect("x-test", false)
    get(function(_, res) res:header("Transfer-Encoding", "chunked") return "x" end):expect(500)
    get(function(_, res) res:redirect("/x\r\nInjected: 1") end):expect(302):expect("location", "/x%0D%0AInjected:%201")
    get(function(_, res) res:cookie("a", "x\r\ny") return "x" end):expect("set-cookie", "^a=x%%0D%%0Ay; ")
  end)

  it("is refused the second time, with both places; the first stands", function()
    local r = get(function(_, res)
      res:send("first")
      res:send("second")
    end):expect(200):expect("first")
    assert.equal("answered_twice", logged(r))
    assert.matches("answer_spec.lua:%d+: answered a second time; the first answer is from .*answer_spec.lua:%d+", r.log[1].fields.err.message)
    r = get(function(_, res)
      res:send("first")
      return "second"
    end):expect(200):expect("first")
    assert.equal("answered_twice", logged(r))
  end)

  it("is large as it likes", function()
    local big = ("x"):rep(1024 * 1024)
    get(function() return big end):expect("content-length", "1048576"):expect(big)
    get(function() return { big } end):expect('["' .. big .. '"]')
  end)
end)

describe("streams", function()
  it("are functions, generators and readers, also such that wait", function()
    local function three()
      local n = 0
      return function()
        n = n + 1
        return n <= 3 and "part " .. n .. "\n" or nil
      end
    end
    local r = get(three):expect("part 1\npart 2\npart 3\n"):expect("content-type", "application/octet-stream")
    assert.same({ "part 1\n", "part 2\n", "part 3\n" }, r:chunks())
    assert.is_nil(r.headers["content-length"])
    get(function()
      return coroutine.wrap(function()
        for i = 1, 3 do
          srv.sleep(0.001)
          coroutine.yield(tostring(i))
        end
      end)
    end):expect("123")
    get(function() return setmetatable({}, { __call = three() }) end):expect("part 1\npart 2\npart 3\n")
  end)

  it("are not called for HEAD", function()
    local called = false
    local t = client_of(function() return function() called = true end end)
    t:head("/"):expect(200):expect("")
    assert.is_false(called)
  end)

  it("become an error's answer before the first chunk, and are cut after it", function()
    get(function() return function() srv.error(503, "not now") end end):expect(503):expect { status = 503 }
    local first = true
    local r = get(function()
      return function()
        if first then first = false return "x" end
        return nil, srv.error.new(502)
      end
    end):expect(200)
    assert.is_true(r.cut)
    assert.equal("x", r.body)
  end)

  it("keep to a Content-Length that was set", function()
    local function of(length, ...)
      local parts = { ... }
      return function(_, res)
        res:header("Content-Length", length)
        return function() return table.remove(parts, 1) end
      end
    end
    get(of(3, "a", "bc")):expect("abc"):expect("content-length", "3")
    assert.is_true(get(of(4, "a", "bc")).cut)
    assert.is_true(get(of(2, "a", "bc")).cut)
  end)

  it("may be written, with trailers, and hooks run before the head", function()
    local app = srv.app()
    app:hook("send", function(_, res) res:header("X-Hook", "on") end)
    app:get("/", function(_, res)
      local count = 0
      res:type("text"):trailer("X-Count", function() return tostring(count) end)
      for i = 1, 3 do
        res:write(i .. "\n")
        count = i
        srv.sleep(0.001)
      end
      res:flush()
    end)
    srv.test(app):get("/"):expect("1\n2\n3\n"):expect("x-hook", "on"):expect("x-count", "3")
      :expect("content-type", "text/plain; charset=utf-8")
  end)

  it("are server-sent events", function()
    local r = get(function(_, res)
      local s = res:sse()
      s:send({ n = 1 }, { id = 1, event = "tick" })
      s:send("two\nlines")
      s:comment("still here")
    end):expect("content-type", "^text/event%-stream"):expect("cache-control", "no-cache")
    r:expect('id: 1\nevent: tick\ndata: {"n":1}\n\ndata: two\ndata: lines\n\n: still here\n\n')
    assert.same({ { id = "1", event = "tick", data = '{"n":1}' }, { data = "two\nlines" } }, r:events())
  end)

  it("beat while the handler is silent", function()
    local r = get(function(_, res)
      local s = res:sse { heartbeat = "5ms" }
      srv.sleep("50ms")
      s:send "x"
    end)
    assert.matches("^: \n\n.*data: x\n\n$", r.body)
  end)

  it("let children of the handler work until the end", function()
    get(function()
      local channel = srv.channel()
      srv.spawn(function()
        for i = 1, 3 do channel:send(tostring(i)) end
        channel:close()
      end)
      return channel:each()
    end):expect("123")
  end)
end)

describe("res", function()
  it("sets and reads status and headers, and chains", function()
    get(function(_, res)
      res:status(201):header("X-A", "1"):append("X-A", "2"):header("X-B", "b"):remove("X-B"):header("x-c", 3)
      return ("%d %s"):format(res:status(), res:header "X-C")
    end):expect(201):expect("201 3"):expect("x-a", "1, 2"):expect("x-b", false)
  end)

  it("knows types by name", function()
    get(function(_, res) res:type("html") return "<p>" end):expect("content-type", "text/html; charset=utf-8")
    get(function(_, res) res:html("<p>") end):expect("content-type", "text/html; charset=utf-8")
    get(function(_, res) res:type("text/plain") return "x" end):expect("content-type", "text/plain; charset=utf-8")
    get(function(_, res) res:bytes("\1\2\3") end):expect("content-type", "application/octet-stream"):expect("\1\2\3")
    get(function(_, res) res:type("csv"):text("a,b") end):expect("content-type", "^text/csv")
    get(function(_, res) res:type("nope") end):expect(500)
  end)

  it("redirects, with a body that reflects no markup", function()
    get(function(_, res) res:redirect("/hello", 301) end):expect(301):expect("location", "/hello")
    local r = get(function(_, res) res:redirect('/x?"><script>alert(1)</script>') end, { headers = { Accept = "text/html" } })
    r:expect(302):expect("content-type", "text/html; charset=utf-8"):expect("vary", "Accept")
    assert.is_nil(r.body:find("<script", 1, true))
  end)

  it("negotiates, and says what it depends on", function()
    local function neg(_, res)
      local kind = res:negotiate("json", "html", "text")
      if kind == "json" then return { f = "json" } end
      return kind == "html" and "<p>html</p>" or "text"
    end
    get(neg, { headers = { Accept = "application/json" } }):expect("vary", "Accept"):expect { f = "json" }
    get(neg, { headers = { Accept = "application/json;q=0.5, text/html;q=0.9" } }):expect("<p>html</p>")
      :expect("content-type", "text/html; charset=utf-8")
    get(neg):expect { f = "json" }
    get(neg, { headers = { Accept = "image/png" } }):expect(406)
  end)

  it("answers 304 and 412 by its validators", function()
    local function tagged(_, res) res:etag("v1") return "x" end
    get(tagged):expect("etag", '"v1"')
    get(tagged, { headers = { ["If-None-Match"] = '"v1"' } }):expect(304):expect(""):expect("etag", '"v1"'):expect("content-type", false)
    get(tagged, { headers = { ["If-None-Match"] = '"nope"' } }):expect("x")
    get(tagged, { headers = { ["If-Match"] = '"other"' } }):expect(412):expect("")
    local function dated(_, res) res:last_modified(1700000000) return "x" end
    get(dated):expect("last-modified", "Tue, 14 Nov 2023 22:13:20 GMT")
    get(dated, { headers = { ["If-Modified-Since"] = "Tue, 14 Nov 2023 22:13:20 GMT" } }):expect(304)
    get(function(_, res) res:etag("w", { weak = true }) return "x" end):expect("etag", 'W/"w"')
    get(function(req, res) res:etag("v1") return tostring(req:fresh()) end, { headers = { ["If-None-Match"] = '"v2"' } }):expect("false")
  end)

  it("gathers Vary and links", function()
    get(function(_, res)
      res:vary("Accept"):vary("Origin", "accept")
      res:links { next = "/p?2", first = "/p?0" }
      return "x"
    end):expect("vary", "Accept, Origin"):expect("link", '</p?0>; rel="first", </p?2>; rel="next"')
  end)

  it("varies by all that was said, however it was", function()
    get(function(_, res)
      res:append("Vary", "Origin"):append("Vary", "Accept"):vary("Cookie, accept", "Origin")
      return "x"
    end):expect("vary", "Origin, Cookie, Accept")
    get(function(_, res) res:vary("Origin"):vary("*"):vary("Accept") return "x" end):expect("vary", "*")
    get(function(_, res) res:vary("Origin"):vary("a\nb") return "x" end):expect(500)
  end)

  it("sends early hints", function()
    local r = get(function(_, res)
      res:early_hints { Link = "</a.css>; rel=preload" }
      return "x"
    end):expect("x")
    assert.same({ 103 }, r.interim)
  end)

  it("is refused where it is written as in other frameworks, with the way to write it", function()
    local function told(want, fn)
      local app = srv.app()
      app:get("/", fn)
      local r = srv.test(app):get("/"):expect(500)
      assert.truthy(tostring(r.log[1].fields.err):find(want, 1, true), tostring(r.log[1].fields.err))
      assert.truthy(tostring(r.log[1].fields.err):find("answer_spec.lua:", 1, true), tostring(r.log[1].fields.err))
    end
    local Own = setmetatable({}, { __name = {} })
    told("res:json takes one value: a status goes before it, res:status(201):json(v)", function(_, res) res:json({}, 201) end)
    for _, name in ipairs { "html", "text", "bytes", "send" } do
      told("res:" .. name .. " takes one value", function(_, res) res[name](res, "x", 201) end)
    end
    told('res:redirect: the URL comes first, then the status', function(_, res) res:redirect(302, "/x") end)
    told('res:redirect: the URL comes first', function(_, res) res.redirect "/x" end)
    told("res:html: a string was expected, not nil (is it called with a colon, res:html(s)?)",
      function(_, res) res.html "x" end)
    for _, v in ipairs { {}, { 1, 2 }, { a = 1 }, Own, "x", true, print } do
      told("methods of `req` and `res` stand behind a colon: res:json(v), not res.json(v)", function(_, res) res.json(v) end)
      told("stand behind a colon", function(req) req.header(v) end)
    end
    told("without its colon", function(_, res) res.status(201) end)
  end)

  it("is not changed behind its head, and says so when the request has ended", function()
    local kept
    local r = get(function(_, res)
      kept = res
      res:write("x")
      res:header("X-Late", "1")
    end)
    assert.is_true(r.cut)
    assert.matches("the head of this answer is out", r.log[1].fields.err.message)
    assert.error_matches(function() kept:json {} end, "this request has ended")
  end)
end)
