--- API, section 1: a reader is every incoming stream of bytes, with the same methods wherever it comes from; and loops
--- over what comes are the same everywhere.
local srv = require "srv"

local TEXT = "one\r\ntwo\nthree"

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

--- A socket that gets TEXT and then the end.
local function socket_from(listen, connect)
  local listener = assert(listen(function(sock) sock:write(TEXT) end))
  local sock = assert(connect(listener.address))
  srv.defer(function() listener:close() end)
  return sock
end

local function port_of(address) return tonumber(address:match ":(%d+)$") end

--- Where readers come from: WITH(fn) calls fn(reader) where the reader is alive.
local SOURCES = {
  ["an open file"] = function(fn)
    local file = assert(srv.fs.temp())
    assert(file:write(TEXT))
    file:seek "set"
    return fn(file)
  end,
  ["a TCP socket"] = function(fn)
    return fn(socket_from(function(serve) return srv.tcp.listen("127.0.0.1:0", serve) end,
      function(address) return srv.tcp.connect("127.0.0.1", port_of(address)) end))
  end,
  ["a Unix socket"] = function(fn)
    return fn(socket_from(function(serve) return srv.unix.listen("@s01-readers", serve) end, function() return srv.unix.connect "@s01-readers" end))
  end,
  ["a listener's socket"] = function(fn)
    local over, ok, raised = srv.event(), nil, nil
    local listener = assert(srv.tcp.listen("127.0.0.1:0", function(sock)
      ok, raised = pcall(fn, sock)
      over:set()
    end))
    local client = assert(srv.tcp.connect("127.0.0.1", port_of(listener.address)))
    client:write(TEXT)
    client:shutdown()
    over:wait(5)
    listener:close()
    if not ok then error(raised, 0) end
  end,
  ["a program's output"] = function(fn)
    return fn(assert(srv.exec.start { "printf", "one\\r\\ntwo\\nthree" }).stdout)
  end,
  ["a program's errors"] = function(fn)
    return fn(assert(srv.exec.start { "sh", "-c", "printf 'one\\r\\ntwo\\nthree' >&2" }).stderr)
  end,
  ["a response's stream"] = function(fn)
    local listener = assert(srv.tcp.listen("127.0.0.1:0", function(sock)
      sock:read_until "\r\n\r\n"
      sock:write(("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"):format(#TEXT, TEXT))
    end))
    srv.defer(function() listener:close() end)
    return fn(assert(srv.http.get("http://" .. listener.address, { stream = true })):stream())
  end,
  ["the stream of a whole response"] = function(fn)
    srv.test.upstream { ["* *"] = TEXT }
    return fn(assert(srv.http.get "http://a.example/"):stream())
  end,
  ["a stubbed response's stream"] = function(fn)
    srv.test.upstream { ["* *"] = TEXT }
    return fn(assert(srv.http.get("http://a.example/", { stream = true })):stream())
  end,
  ["a request's stream"] = function(fn)
    local app, ok, raised = srv.app(), nil, nil
    app:post("/", function(req)
      ok, raised = pcall(fn, req:stream())
      return "x"
    end)
    srv.test(app):post("/", { body = TEXT }):expect(200)
    if not ok then error(raised, 0) end
  end,
}

local function in_a_task(fn, ...) return srv.spawn(fn, ...):wait() end

for name, with in pairs(SOURCES) do
  describe(name, function()
    local function try(what, fn)
      it(what, function() in_a_task(with, fn) end)
    end

    try("reads at most as many bytes as asked for, then nil, also again", function(r)
      assert.equal("o", r:read(1))
      assert.equal("n", r:read(1))
      local rest = {}
      while true do
        local piece, err = r:read()
        assert.is_nil(err)
        if not piece then break end
        assert.is_true(#piece > 0)
        rest[#rest + 1] = piece
      end
      assert.equal(TEXT:sub(3), table.concat(rest))
      assert.same({ n = 1 }, { n = select("#", (r:read())), (r:read()) })
    end)

    try("gives lines without their end, the last one as it is", function(r)
      assert.same({ "one", "two", "three" }, { (r:line()), (r:line()), (r:line()) })
      assert.is_nil((r:line()))
    end)

    try("gives all, or too_large", function(r)
      assert.equal("one", r:line())
      assert.equal("two\nthree", r:all())
    end)

    try("is too large beyond the limit", function(r)
      local text, err = r:all { limit = 5 }
      assert.is_nil(text)
      assert.equal("too_large", err.code)
    end)

    try("takes a limit with a unit, and no other options", function(r)
      assert.is_truthy(message_of(function() r:all { limitt = 5 } end):find 'did you mean "limit"')
      assert.equal(TEXT, r:all { limit = "1KiB" })
    end)

    try("is a loop", function(r)
      local pieces = {}
      for chunk in r do pieces[#pieces + 1] = chunk end
      assert.equal(TEXT, table.concat(pieces))
    end)

    try("closes, twice too, and gives no more", function(r)
      r:read(1)
      r:close()
      r:close()
      local piece = r:read()
      assert.is_nil(piece)
    end)

    try("blames a number that is none on the line", function(r)
      for _, n in ipairs { 0, -1, 1.5, "x" } do
        assert.is_truthy(message_of(function() r:read(n) end):find "s01_readers_spec.lua:%d+: ", message_of(function() r:read(n) end))
      end
    end)

    try("is a body for srv.http", function(r)
      local seen
      srv.test.upstream { ["* *"] = function(request)
        seen = request.body
        return "x"
      end }
      assert(srv.http.put("http://a.example/", { body = r }))
      assert.equal(TEXT, seen)
    end)
  end)
end

describe("a reader as an answer", function()
  it("is a stream: a file, a program's output, a response's body", function()
    local app = srv.app()
    app:get("/file", function()
      local file = assert(srv.fs.temp())
      file:write(TEXT)
      file:seek "set"
      return file
    end)
    app:get("/exec", function() return assert(srv.exec.start { "printf", "one" }).stdout end)
    app:get("/http", function() return assert(srv.http.get("http://a.example/", { stream = true })):stream() end)
    app:get("/socket", function()
      return socket_from(function(serve) return srv.unix.listen("@s01-answer", serve) end, function() return srv.unix.connect "@s01-answer" end)
    end)
    app:post("/echo", function(req) return req:stream() end)
    srv.test.upstream { ["* *"] = TEXT }
    local t = srv.test(app)
    t:get("/file"):expect(200):expect(TEXT):expect("content-type", "application/octet-stream")
    t:get("/exec"):expect(200):expect "one"
    t:get("/http"):expect(200):expect(TEXT)
    t:get("/socket"):expect(200):expect(TEXT)
    t:post("/echo", { body = TEXT }):expect(200):expect(TEXT)
  end)
end)

describe("loops over what comes", function()
  it("channels, srv.bus: each(), receive([t]), close(); closed and timeout are said alike", function()
    for _, source in ipairs {
      function()
        local channel = srv.channel(8)
        return channel, function(v) channel:send(v) end
      end,
      function()
        local sub = srv.bus.subscribe "s01-loops"
        return sub, function(v) srv.bus.publish("s01-loops", v) end
      end,
    } do
      local from, send = source()
      local v, err = from:receive "5ms"
      assert.is_nil(v)
      assert.same({ "timeout", 504 }, { err.code, err.status })
      send(1)
      send(false)
      assert.equal(1, (from:receive "1s"))
      local got = {}
      send "last"
      for value in from:each() do
        got[#got + 1] = value
        if value == "last" then from:close() end
      end
      assert.same({ false, "last" }, got)
      v, err = from:receive "1s"
      assert.is_nil(v)
      assert.same({ "closed", 502 }, { err.code, err.status })
      for _ in from:each() do error "closed" end
    end
  end)
end)
