--- res: bodies that are written, trailers, early hints.
local srv = require "srv"

local function get(handler, opts)
  local app = srv.app()
  app:get("/", handler)
  return srv.test(app):get("/", opts)
end

local function message_of(answer) return answer.log[1].fields.err.message end

describe("res:write", function()
  it("sends bytes without a type, as streams that are returned do", function()
    get(function(_, res) res:write "x" end):expect("content-type", "application/octet-stream"):expect "x"
    get(function(_, res) res:type("csv"):write "x" end):expect("content-type", "text/csv; charset=utf-8")
    get(function(_, res) res:flush() end):expect(200):expect ""
  end)

  it("is a second answer where one is recorded, and the first stands", function()
    local answer = get(function(_, res)
      res:json { 1 }
      res:write "x"
    end):expect(200):expect "[1]"
    assert.matches("response_spec.lua:%d+: answered a second time; the first answer is from .*response_spec.lua:%d+",
      message_of(answer))
    get(function(_, res)
      res:send(function() end)
      res:flush()
    end):expect(200)
  end)

  it("drops what a status does not allow", function()
    for _, status in ipairs { 204, 205, 304 } do
      local answer = get(function(_, res)
        res:status(status):write "x"
        res:write "y"
      end):expect(status):expect "":expect("content-type", false)
      assert.is_false(answer.cut)
    end
  end)

  it("of a child that is still at it when the handler returns goes out whole", function()
    local app, last = srv.app(), nil
    app:get("/", function(_, res)
      res:write "begin"
      srv.spawn(function()
        res:write(("x"):rep(300000))
        res:write "late"
        last = { res:write "later" }
      end)
      srv.sleep "1ms"
    end)
    local t = srv.test(app)
    local stream = t:open("GET", "/")
    srv.sleep "5ms"
    local bytes, chunk, err = 0, "", nil
    while chunk do
      bytes = bytes + #chunk
      chunk, err = stream:chunk()
    end
    assert.is_nil(err)
    assert.equal(300009, bytes)
    assert.is_true(last == nil or last[2].code == "closed")
    t:close()
  end)
end)

describe("a stream", function()
  it("that answers otherwise before its first chunk is an error, and no worker's end", function()
    for _, step in ipairs {
      function(res) res:json { 1 } end, function(res) res:write "x" end, function(res) res:redirect "/" end,
    } do
      local answer = get(function(_, res) return function() step(res) end end):expect(500)
      assert.matches("answered a second time; the first answer is what the handler of GET / returned", message_of(answer))
    end
  end)

  it("that is coded is asked for its own tag, not for the one that it goes out with", function()
    local app = srv.app()
    app:use(srv.compress { min = 1 })
    app:get("/", function(_, res)
      local n = 0
      res:type("text"):etag "v"
      return function()
        n = n + 1
        return n < 3 and ("x"):rep(2000) or nil
      end
    end)
    local t = srv.test(app)
    local function ask(name, tag)
      return t:get("/", { headers = { ["Accept-Encoding"] = "gzip", [name] = tag } })
    end
    ask("If-Match", '"v"'):expect(200):expect("content-encoding", "gzip"):expect("etag", 'W/"v"')
    ask("If-Match", '"other"'):expect(412):expect ""
    ask("If-None-Match", '"v"'):expect(304):expect("etag", 'W/"v"'):expect("vary", "Accept-Encoding"):expect ""
    ask("If-None-Match", '"other"'):expect(200)
  end)
end)

describe("res:trailer", function()
  local function body() return coroutine.wrap(function() coroutine.yield "x" end) end

  it("stands behind a streamed body, which announces it", function()
    get(function(_, res)
      res:trailer("X-Sum", function()
        srv.sleep "1ms"
        return 7
      end):trailer("X-Late", "no")
      return body()
    end):expect "x":expect("trailer", "X-Sum, X-Late"):expect("x-sum", "7"):expect("x-late", "no")
    get(function(_, res)
      res:write "x"
      res:trailer("X-Sum", "7")
    end):expect("x-sum", "7"):expect("trailer", false)
  end)

  it("is left out where its function gives nil", function()
    get(function(_, res)
      res:trailer("X-Sum", function() end)
      return body()
    end):expect "x":expect("x-sum", false)
  end)

  it("has no place behind a body of a known length, or where there is none", function()
    local called
    local function trailed(_, res)
      res:trailer("X-Sum", function() called = true end)
      return res
    end
    get(function(_, res) return trailed(nil, res):text "x" end):expect("trailer", false)
    local app = srv.app()
    app:get("/", function(_, res)
      trailed(nil, res)
      return body()
    end)
    srv.test(app):head("/"):expect(200):expect("trailer", "X-Sum")
    get(function(_, res) trailed(nil, res):header("Content-Length", 1) return body() end):expect "x":expect("trailer", false)
    called = false
    get(function(_, res) trailed(nil, res):status(204) return body() end):expect(204):expect("trailer", false)
    assert.is_false(called)
  end)

  it("whose function raises, or gives what is no text of one line, cuts the answer", function()
    for _, value in ipairs { function() error "boom" end, function() return {} end, function() return "a\r\nX: b" end } do
      local answer = get(function(_, res)
        res:trailer("X-Sum", value)
        return body()
      end):expect(200)
      assert.is_true(answer.cut)
      assert.equal("request failed", answer.log[1].message)
    end
  end)

  it("refuses what must be known before a body, and more than 32", function()
    local messages = {}
    get(function(_, res)
      for _, name in ipairs {
        "Content-Length", "Transfer-Encoding", "Content-Type", "Set-Cookie", "Authorization", "Host", "TE", "Trailer",
        "Connection", "If-Match", "Range", "Access-Control-Allow-Origin", "Content-Security-Policy", "Location", "Vary",
      } do
        messages[#messages + 1] = select(2, pcall(res.trailer, res, name, "1"))
      end
      for i = 1, 33 do messages.last = { pcall(res.trailer, res, "X-" .. i, "1") } end
      return nil, 204
    end)
    assert.equal(15, #messages)
    for _, message in ipairs(messages) do assert.matches("response_spec.lua:%d+: .* cannot stand behind the body", message) end
    assert.is_false(messages.last[1])
    assert.matches("at most 32", messages.last[2])
    for _, name in ipairs { "ETag", "Content-Digest", "Server-Timing", "Accept-Ranges", "Authentication-Info" } do
      get(function(_, res) res:trailer(name, "1") return body() end):expect("trailer", name)
    end
  end)
end)

describe("res:early_hints", function()
  it("goes out as often as it is called, before or behind a recorded answer", function()
    local answer = get(function(_, res)
      res:early_hints { Link = { "</a.css>; rel=preload", "</b.js>; rel=preload" } }
      res:text "x"
      res:early_hints { Link = "</c.css>; rel=preload" }
    end):expect(200):expect "x":expect("link", false)
    assert.same({ 103, 103 }, answer.interim)
  end)

  it("sends nothing where nothing is hinted", function()
    local answer = get(function(_, res)
      res:early_hints({}):early_hints { Link = false }
      return "x"
    end)
    assert.same({}, answer.interim)
  end)

  it("is misuse with what a hint cannot have, and behind the head", function()
    local messages = {}
    local function note(...) messages[#messages + 1] = select(2, pcall(...)) end
    get(function(_, res)
      note(res.early_hints, res, { Link = "a\r\nX-Evil: 1" })
      note(res.early_hints, res, { ["X\r\nEvil"] = "1" })
      note(res.early_hints, res, { ["Content-Type"] = "text/html" })
      note(res.early_hints, res, { ["Content-Length"] = "5" })
      note(res.early_hints, res, { Connection = "close" })
      note(function() res:early_hints() end)
      res:write "x"
      note(res.early_hints, res, { Link = "</a>" })
    end):expect "x"
    assert.equal(7, #messages)
    for _, message in ipairs(messages) do assert.matches("response_spec.lua:%d+: ", message) end
    assert.matches("the head of this answer is out", messages[7])
  end)
end)
