local srv = require "srv"

describe("srv.websocket", function()
  local t, url

  setup(function()
    local app = srv.app()
    app:ws("/echo", { protocols = { "v1" } }, function(ws)
      for message, kind in ws:messages() do ws:send(message, kind) end
    end)
    app:ws("/who", function(ws, req) ws:send { req:header "authorization", req.query.q, req.host } end)
    app:ws("/flood", { compress = false }, function(ws)
      for i = 1, 200 do ws:send(i .. ("x"):rep(10000)) end
    end)
    app:ws("/close", function(ws) ws:close(4000, "go away") end)
    app:get("/plain", function() return "no socket" end)
    t = srv.test(app)
    url = t:listen():gsub("^http", "ws")
  end)

  teardown(function() t:close() end)

  it("talks with a server, both ways and in both kinds", function()
    local ws = assert(srv.websocket(url .. "/echo"))
    assert(ws:send "hello")
    assert.same({ "hello", "text" }, { ws:receive() })
    assert(ws:send(("\0\255"):rep(100000), "binary"))
    assert.same({ ("\0\255"):rep(100000), "binary" }, { ws:receive() })
    assert.equal("websocket: open", tostring(ws))
    ws:close()
    local _, err = ws:receive()
    assert.equal("closed", err.code)
  end)

  it("says who it is, and agrees on a protocol", function()
    local ws = assert(srv.websocket(url .. "/who?q=1", { headers = { Authorization = "Bearer x" } }))
    assert.same({ "Bearer x", "1", (url:gsub("^ws://", "")) }, srv.json.decode((ws:receive())))
    assert.equal("v1", assert(srv.websocket(url .. "/echo", { protocols = { "v2", "v1" } })).protocol)
  end)

  it("says who it is as the URL says it, unless a header does", function()
    local address = url:gsub("//", "//ada:s%%3Acret@") .. "/who?q=1"
    assert.matches("Basic YWRhOnM6Y3JldA==", (assert(srv.websocket(address)):receive()))
    assert.matches("Bearer x", (assert(srv.websocket(address, { headers = { authorization = "Bearer x" } })):receive()))
  end)

  it("takes what came right behind the handshake, and loses nothing", function()
    local ws, count = assert(srv.websocket(url .. "/flood")), 0
    for message in ws:messages() do
      count = count + 1
      assert.equal(count .. ("x"):rep(10000), message)
    end
    assert.same({ 200, 1000 }, { count, ws.close_code })
  end)

  it("hears how it was closed", function()
    local ws = assert(srv.websocket(url .. "/close"))
    for _ in ws:messages() do error "a message" end
    assert.same({ 4000, "go away", "closed" }, { ws.close_code, ws.close_reason, ws.status })
  end)

  it("ends with the task that opened it", function()
    local ws
    srv.spawn(function() ws = assert(srv.websocket(url .. "/echo")) end):wait()
    srv.sleep "5ms"
    assert.same({ nil, "closed" }, { ws:send "x", select(2, ws:send "x").code })
  end)

  local function code_of(...)
    local ws, err = srv.websocket(...)
    assert.is_nil(ws)
    return err.code
  end

  it("says why there is none", function()
    local _, err = srv.websocket(url .. "/plain")
    assert.same({ "unexpected_status", 200 }, { err.code, err.data.status })
    assert.equal("unexpected_status", code_of(url .. "/nowhere"))
    _, err = srv.websocket(url:gsub("^ws://", "%0ann:secret@") .. "/plain?token=secret")
    assert.equal(url .. "/plain: the server answered 200 instead of switching to WebSocket", err.message)
    assert.equal("refused", code_of "ws://127.0.0.1:1/")
    assert.equal("invalid", code_of "http://127.0.0.1/")
    assert.equal("invalid", code_of "ws://a/#b")
    assert.equal("refused", code_of "wss://127.0.0.1:1/")
    assert.equal("tls", code_of((url:gsub("^ws:", "wss:")) .. "/echo"))
  end)

  it("is not deceived by a server that speaks something else", function()
    local answers = srv.channel(8)
    local listener = assert(srv.tcp.listen("127.0.0.1:0", function(socket)
      socket:read_until "\r\n\r\n"
      socket:write((answers:receive()))
    end))
    local other = "ws://" .. listener.address .. "/"
    for _, answer in ipairs {
      "SSH-2.0-x\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAA\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\nbroken\r\n\r\n",
      "",
    } do
      answers:send(answer)
      assert.equal("bad_response", code_of(other), answer)
    end
    answers:send "HTTP/1.1 101 S"
    assert.equal("closed", code_of(other))
    listener:close()
  end)

  it("takes no head that has bytes which HTTP forbids", function()
    local GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    local more = ""
    local listener = assert(srv.tcp.listen("127.0.0.1:0", function(socket)
      local key = socket:read_until("\r\n\r\n"):match "Sec%-WebSocket%-Key: (%S+)"
      socket:write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
        .. srv.crypto.hash("sha1", key .. GUID, "base64") .. "\r\n" .. more .. "\r\n")
    end))
    local other = "ws://" .. listener.address .. "/"
    assert(srv.websocket(other))
    more = "X-A: b\0c\r\n"
    assert.equal("bad_response", code_of(other))
    listener:close()
  end)

  it("is not switched to by HTTP/1.0", function()
    local GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    local listener = assert(srv.tcp.listen("127.0.0.1:0", function(socket)
      local key = socket:read_until("\r\n\r\n"):match "Sec%-WebSocket%-Key: (%S+)"
      socket:write("HTTP/1.0 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
        .. srv.crypto.hash("sha1", key .. GUID, "base64") .. "\r\n\r\n")
    end))
    assert.equal("bad_response", code_of("ws://" .. listener.address .. "/"))
    listener:close()
  end)

  it("waits for the handshake only so long", function()
    local listener = assert(srv.tcp.listen("127.0.0.1:0", function() srv.sleep "1h" end))
    for _ = 1, 2 do
      local _, err = srv.websocket("ws://" .. listener.address .. "/", { timeout = "20ms" })
      assert.equal("timeout", err.code)
      assert.equal(1, select(2, err.message:gsub("ws://", "")))
    end
    listener:close()
  end)

  it("refuses what cannot be asked for, at the caller's line", function()
    local function fault(...)
      local ok, message = pcall(srv.websocket, ...)
      assert.is_false(ok)
      return tostring(message)
    end
    assert.matches('unknown option "header"', fault("ws://x/", { header = {} }))
    assert.matches("a URL was expected", fault(7))
    assert.matches("is the handshake's", fault("ws://x/", { headers = { ["Sec-WebSocket-Key"] = "x" } }))
    assert.matches("a text of one line", fault("ws://x/", { headers = { A = "b\r\nc" } }))
    assert.matches("protocols must be a list", fault("ws://x/", { protocols = {} }))
    assert.matches("the protocol a is there twice", fault("ws://x/", { protocols = { "a", "a" } }))
    assert.matches("limit must be at least 1 byte", fault("ws://x/", { limit = 0 }))
    assert.matches("heartbeat must be longer than 0", fault("ws://x/", { heartbeat = 0 }))
  end)
end)
