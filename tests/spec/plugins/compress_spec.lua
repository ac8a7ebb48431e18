local srv = require "srv"

local TEXT = ("the quick brown fox jumps over the lazy dog. "):rep(40)
local HUGE = TEXT:rep(100)

local function app_of(...)
  local app = srv.app()
  app:use(...)
  app:get("/text", function() return TEXT end)
  app:get("/small", function() return "small" end)
  app:get("/huge", function() return HUGE end)
  app:get("/json", function() return { text = TEXT } end)
  app:get("/calls", function() return { text = setmetatable({}, { __tojson = function() return TEXT end }) } end)
  app:get("/image", function(_, res) return res:type "png":send(TEXT) end)
  app:get("/none", function() return nil, 204 end)
  app:get("/tagged", function(_, res) return res:etag "v1":send(TEXT) end)
  app:get("/kept", function(_, res) return res:header("Cache-Control", "public, no-transform"):send(TEXT) end)
  app:get("/coded", function(_, res) return res:header("Content-Encoding", "gzip"):send(TEXT) end)
  app:get("/part", function(_, res) return res:status(206):header("Content-Range", "bytes 0-1799/9999"):send(TEXT) end)
  app:get("/broken", function() error "no" end)
  app:get("/wrong", function() srv.error(409, TEXT) end)
  app:get("/stream", function(_, res)
    res:type "text"
    for _ = 1, 30 do res:write(TEXT) end
  end)
  app:get("/empty_stream", function(_, res)
    res:type "text"
    return function() end
  end)
  app:get("/slow", function(_, res)
    res:type "text"
    res:write "first "
    srv.sleep(0.02)
    res:write "second"
  end)
  app:get("/long_chunk", function(_, res)
    res:type "text"
    res:write(HUGE)
  end)
  app:get("/known", function(_, res)
    res:type "text":header("Content-Length", 5)
    res:write "small"
  end)
  app:get("/fails", function(_, res)
    res:type "text"
    return function() error "no chunk" end
  end)
  app:get("/events", function(_, res)
    local s = res:sse()
    s:send(TEXT)
  end)
  app:post("/inflate", { body_limit = "10MiB" }, function(req) return req:bytes() or "" end)
  return app
end

local t = srv.test(app_of(srv.compress()))

local function get(path, accept, client)
  return (client or t):get(path, { headers = { ["Accept-Encoding"] = accept } })
end

local function inflated(answer)
  return srv.test(app_of(function(_, _, next) return next() end)):post("/inflate", {
    body = answer.body, headers = { ["Content-Encoding"] = answer.headers["content-encoding"], ["Content-Type"] = "text/plain" },
  }):expect(200).body
end

describe("srv.compress", function()
  it("codes texts, JSON and large bodies in each coding, and what comes out is what went in", function()
    for _, coding in ipairs { "gzip", "br", "zstd" } do
      for path, text in pairs { ["/text"] = TEXT, ["/huge"] = HUGE, ["/json"] = srv.json.encode { text = TEXT },
                                ["/calls"] = srv.json.encode { text = TEXT } } do
        local answer = get(path, coding):expect(200):expect("content-encoding", coding):expect("vary", "Accept-Encoding")
        assert.equal(tostring(#answer.body), answer.headers["content-length"], path)
        assert.is_true(#answer.body < #text / 2)
        assert.equal(text, inflated(answer), path .. " " .. coding)
      end
    end
  end)

  it("chooses by weight, then by its own order", function()
    for accept, coding in pairs {
      ["gzip, br, zstd"] = "zstd", ["gzip, br"] = "br", ["br;q=0.5, gzip;q=1"] = "gzip", ["*"] = "zstd",
      ["zstd;q=0, *;q=0.1"] = "br", ["GZIP ; q=0.2"] = "gzip", ["x-gzip"] = "gzip", ["gzip;q=0.5, identity;q=0"] = "gzip",
    } do
      get("/text", accept):expect(200):expect("content-encoding", coding)
    end
    for _, accept in ipairs { "gzip;q=0", "identity", "", "deflate", "compress", "identity;q=1, gzip;q=0.5", "*;q=0", "gzip;q=0.000" } do
      get("/text", accept):expect(200):expect("content-encoding", false):expect(TEXT):expect("vary", "Accept-Encoding")
    end
    t:get("/text"):expect(200):expect("content-encoding", false):expect("vary", "Accept-Encoding")
    local own = srv.test(app_of(srv.compress { encodings = { "gzip", "br" } }))
    get("/text", "zstd, br, gzip", own):expect("content-encoding", "gzip")
  end)

  it("leaves what is small, unless that is refused", function()
    get("/small", "gzip"):expect(200):expect("content-encoding", false):expect "small"
    local answer = get("/small", "gzip, identity;q=0"):expect(200):expect("content-encoding", "gzip")
    assert.equal("small", inflated(answer))
    get("/small", "gzip", srv.test(app_of(srv.compress { min = 1 }))):expect "small" -- it would grow
  end)

  it("leaves what is no text, coded already, a part, or not to be transformed", function()
    get("/image", "gzip"):expect(200):expect("content-encoding", false):expect("vary", false)
    get("/coded", "br"):expect(200):expect("content-encoding", "gzip"):expect(TEXT)
    get("/part", "gzip"):expect(206):expect("content-encoding", false):expect(TEXT)
    get("/kept", "gzip"):expect(200):expect("content-encoding", false):expect(TEXT)
    get("/none", "gzip"):expect(204):expect("content-encoding", false):expect ""
  end)

  it("takes the types that are listed", function()
    local own = srv.test(app_of(srv.compress { types = { "image/*", "json" } }))
    get("/image", "gzip", own):expect("content-encoding", "gzip")
    get("/json", "gzip", own):expect("content-encoding", "gzip")
    get("/text", "gzip", own):expect("content-encoding", false)
  end)

  it("weakens strong tags, and answers conditions", function()
    get("/tagged", "gzip"):expect(200):expect("etag", 'W/"v1"')
    t:get("/tagged"):expect(200):expect("etag", '"v1"')
    t:get("/tagged", { headers = { ["Accept-Encoding"] = "gzip", ["If-Match"] = '"v1"' } }):expect(200):expect("content-encoding", "gzip")
    t:get("/tagged", { headers = { ["Accept-Encoding"] = "gzip", ["If-Match"] = '"v2"' } }):expect(412)
    t:get("/tagged", { headers = { ["Accept-Encoding"] = "gzip", ["If-None-Match"] = 'W/"v1"' } })
      :expect(304):expect("etag", 'W/"v1"'):expect("vary", "Accept-Encoding"):expect ""
    for _, plugins in ipairs { { srv.etag { weak = false }, srv.compress() }, { srv.compress(), srv.etag { weak = false } } } do
      local both = srv.test(app_of(unpack(plugins)))
      for _, path in ipairs { "/text", "/json", "/huge" } do
        local tag = get(path, "gzip", both):expect("content-encoding", "gzip").headers.etag
        assert.is_truthy(tag:find '^W/"')
        both:get(path, { headers = { ["Accept-Encoding"] = "gzip", ["If-None-Match"] = tag } })
          :expect(304):expect("vary", "Accept-Encoding"):expect ""
      end
    end
  end)

  it("says the same to HEAD", function()
    local head = t:head("/text", { headers = { ["Accept-Encoding"] = "gzip" } }):expect(200)
    head:expect("content-encoding", "gzip"):expect("vary", "Accept-Encoding"):expect ""
    assert.equal(get("/text", "gzip").headers["content-length"], head.headers["content-length"])
    t:head("/stream", { headers = { ["Accept-Encoding"] = "gzip" } }):expect(200):expect("content-encoding", "gzip"):expect ""
  end)

  it("codes errors, and pages that are not there", function()
    get("/wrong", "gzip"):expect(409):expect("content-encoding", "gzip")
    local app = app_of(srv.compress())
    app:not_found(function() return TEXT end)
    get("/nowhere", "gzip", srv.test(app)):expect(404):expect("content-encoding", "gzip")
    get("/broken", "gzip", srv.test(app_of(srv.compress { min = 10 }))):expect(500):expect("vary", "^.*Accept%-Encoding")
    get("/fails", "gzip"):expect(500):expect("content-type", "^application/problem")
  end)

  it("codes streams, and holds nothing back that was written before a wait", function()
    for _, coding in ipairs { "gzip", "br", "zstd" } do
      local answer = get("/stream", coding):expect(200):expect("content-encoding", coding):expect("vary", "Accept-Encoding")
      assert.equal(TEXT:rep(30), inflated(answer))
      assert.equal(HUGE, inflated(get("/long_chunk", coding):expect("content-encoding", coding)))
      answer = get("/slow", coding):expect(200):expect("content-encoding", coding)
      assert.equal("first second", inflated(answer))
      assert.is_true(#answer:chunks() >= 2)
      assert.equal("", inflated(get("/empty_stream", coding):expect("content-encoding", coding)))
    end
    get("/known", "gzip"):expect("content-encoding", false):expect("content-length", "5"):expect "small"
  end)

  it("codes files, but no ranges of them, and prefers a sister that lies beside", function()
    local folder = os.tmpname() .. ".d"
    os.execute("mkdir " .. folder)
    local function put(name, text)
      local file = assert(io.open(folder .. "/" .. name, "w"))
      file:write(text)
      file:close()
    end
    put("page.txt", HUGE)
    put("short.txt", "short")
    put("photo.png", HUGE)
    put("ready.txt", HUGE)
    put("ready.txt.gz", "ready made")
    local app = srv.app()
    app:use(srv.compress())
    app:static("/", folder)
    local own = srv.test(app)
    local plain = own:get("/page.txt"):expect(200):expect(HUGE):expect("content-encoding", false):expect("vary", "^.*Accept%-Encoding")
    local answer = get("/page.txt", "gzip", own):expect(200):expect("content-encoding", "gzip"):expect("accept-ranges", false)
    assert.equal(HUGE, inflated(answer))
    assert.equal("W/" .. plain.headers.etag:gsub("^W/", ""), answer.headers.etag)
    assert.equal(tostring(#answer.body), own:head("/page.txt", { headers = { ["Accept-Encoding"] = "gzip" } }).headers["content-length"])
    own:get("/page.txt", { headers = { ["Accept-Encoding"] = "gzip", ["If-None-Match"] = answer.headers.etag } }):expect(304)
    own:get("/page.txt", { headers = { ["Accept-Encoding"] = "gzip", Range = "bytes=0-8" } })
      :expect(206):expect("content-encoding", false):expect "the quick"
    get("/short.txt", "gzip", own):expect("content-encoding", false):expect "short"
    get("/photo.png", "gzip", own):expect("content-encoding", false):expect(HUGE)
    get("/ready.txt", "gzip", own):expect("content-encoding", "gzip"):expect "ready made"
    os.execute("rm -r " .. folder)
  end)

  it("never touches events", function()
    local answer = get("/events", "gzip"):expect(200):expect("content-encoding", false)
    assert.equal(TEXT, answer:events()[1].data)
  end)

  it("refuses what it does not know", function()
    assert.has_error(function() srv.compress { encodings = { "gzipp" } } end)
    assert.has_error(function() srv.compress { encodings = {} } end)
    assert.has_error(function() srv.compress { encodings = { "br", "br" } } end)
    assert.has_error(function() srv.compress { types = {} } end)
    assert.has_error(function() srv.compress { minimum = 1 } end)
  end)
end)

describe("a compressed request", function()
  local app = srv.app()
  app:post("/json", function(req) return { got = req:json() } end)
  app:post("/text", { body_limit = 1000 }, function(req) return req:text() end)
  app:post("/stream", { body_limit = 4000 }, function(req)
    local stream, len = req:stream { chunk = 7 }, 0
    repeat
      local piece, err = stream:read()
      if err then return nil, err end
      len = len + #(piece or "")
    until not piece
    return { len = len }
  end)
  local client = srv.test(app)

  local function post(path, coding, body, content_type)
    return client:post(path, { body = body, headers = { ["Content-Encoding"] = coding, ["Content-Type"] = content_type or "text/plain" } })
  end

  local function coded(text, coding)
    local made = srv.app()
    made:use(srv.compress { min = 1 })
    made:get("/", function() return text end)
    return srv.test(made):get("/", { headers = { ["Accept-Encoding"] = coding .. ", identity;q=0" } })
      :expect("content-encoding", coding).body
  end

  it("is inflated, read as a whole and as a stream", function()
    for _, coding in ipairs { "gzip", "br", "zstd" } do
      post("/json", coding, coded('{"a":[1,2,3]}', coding), "application/json"):expect(200):expect { got = { a = { 1, 2, 3 } } }
      post("/text", coding:upper(), coded(("x"):rep(1000), coding)):expect(200):expect(("x"):rep(1000))
      post("/stream", coding, coded(("xyz"):rep(1000), coding)):expect(200):expect { len = 3000 }
    end
    post("/text", "deflate", "\120\156\203\72\205\201\201\7\0\6\44\2\21"):expect(200):expect "hello"
    post("/text", "identity", "plain"):expect(200):expect "plain"
  end)

  it("that inflates beyond the limit is 413", function()
    for _, coding in ipairs { "gzip", "br", "zstd" } do
      post("/text", coding, coded(("x"):rep(1001), coding)):expect(413)
      post("/text", coding, coded(("x"):rep(1000000), coding)):expect(413)
      post("/stream", coding, coded(("x"):rep(4001), coding)):expect(413)
    end
  end)

  it("that is malformed, cut short or followed by something else is 400", function()
    for _, coding in ipairs { "gzip", "br", "zstd" } do
      local body = coded(("words and words "):rep(20), coding)
      for _, path in ipairs { "/text", "/stream" } do
        post(path, coding, "notcoded"):expect(400):expect { code = "bad_encoding" }
        post(path, coding, body:sub(1, -2)):expect(400)
        post(path, coding, body .. "x"):expect(400)
      end
    end
  end)

  it("in a coding that is not understood is 415, and is told which are", function()
    for _, coding in ipairs { "zzz", "gzip, br", "compress" } do
      post("/text", coding, "x"):expect(415):expect("accept-encoding", "gzip, deflate, br, zstd"):expect { code = "bad_encoding" }
    end
  end)
end)
