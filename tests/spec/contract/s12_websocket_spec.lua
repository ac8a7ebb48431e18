--- API, section 12: what is promised of WebSockets, as the page says it. The handlers' own specs are
--- tests/spec/web/websocket_spec.lua.
local srv = require "srv"

local MIB = 1024 * 1024

local function serving(declare)
  local app = srv.app()
  declare(app)
  return srv.test(app)
end

local function echo(ws)
  for message, kind in ws:messages() do ws:send(message, kind) end
end

describe("app:ws, as on the page", function()
  it("has a linear form", function()
    local t = serving(function(app)
      app:ws("/rooms/:room<slug>", { origins = { "https://chat.example" } }, function(ws)
        for message, kind in ws:messages() do ws:send(message, kind) end
      end)
    end)
    local ws = t:ws("/rooms/blue", { headers = { Origin = "https://chat.example" } })
    ws:send("x", "binary")
    assert.same({ "x", "binary" }, { ws:receive() })
    local _, answer = t:ws("/rooms/blue", { headers = { Origin = "https://other.example" } })
    assert.same({ 403, "cross_site" }, { answer.status, answer:json().code })
    assert.equal(404, select(2, t:ws "/rooms/No Slug").status)
  end)

  it("has a form with a table", function()
    local got = {}
    local t = serving(function(app)
      app:ws("/feed", {
        open = function(ws) ws:subscribe "s12.feed" end,
        message = function(_, message, kind) got[#got + 1] = message .. kind end,
        close = function(_, code, reason) got[#got + 1] = code .. reason end,
      })
    end)
    local ws = t:ws "/feed"
    srv.bus.publish("s12.feed", { n = 1 })
    assert.same({ '{"n":1}', "text" }, { ws:receive() })
    ws:send "a"
    ws:close(3001, "enough")
    for _ = 1, 4000 do
      if #got == 2 then break end
      srv.sleep "5ms"
    end
    assert.same({ "atext", "3001enough" }, got)
  end)

  it("takes a list of paths, guards and plugins", function()
    local t = serving(function(app)
      app:ws({ "/a", "/b" }, srv.basic_auth { users = { ada = "x" } }, function(ws) ws:send(ws.state.user) end)
    end)
    for _, path in ipairs { "/a", "/b" } do
      assert.equal(401, select(2, t:ws(path)).status)
      assert.matches("ada", (t:ws(path, { auth = { "ada", "x" } }):receive()))
    end
  end)
end)

describe("its defaults", function()
  it("are messages of 1 MiB, then 1009", function()
    local t = serving(function(app) app:ws("/", echo) end)
    local ws = t:ws "/"
    ws:send(("x"):rep(MIB))
    assert.equal(MIB, #ws:receive())
    ws:send(("x"):rep(MIB + 1))
    assert.equal("closed", select(2, ws:receive()).code)
    assert.equal(1009, ws.close_code)
  end)

  it("are 1 MiB that may wait", function()
    local sent = 0
    local t = serving(function(app)
      app:ws("/", { compress = false }, function(ws)
        while ws:send(("x"):rep(MIB / 8)) do sent = sent + 1 end
      end)
    end)
    t:ws("/", { compress = false })
    for _ = 1, 1000 do
      local before = sent
      srv.sleep "20ms"
      if sent >= 8 and sent == before then break end
    end
    assert.is_true(sent >= 8 and sent <= 11, sent .. " were sent")
  end)

  it("are compression, if the client offers it, without context", function()
    local t = serving(function(app) app:ws("/", echo) end)
    local extension = t:ws("/").headers["sec-websocket-extensions"]
    assert.matches("permessage%-deflate", extension)
    assert.matches("server_no_context_takeover", extension)
    assert.matches("client_no_context_takeover", extension)
    assert.is_nil(t:ws("/", { compress = false }).headers["sec-websocket-extensions"])
  end)

  it("are a ping after 30 s of silence, and after 30 s more without a sign of life an end with 1006", function()
    local ended = srv.channel(1)
    local t = serving(function(app)
      app:ws("/", { close = function(_, code) ended:send(code) end })
    end)
    local port = tonumber(t:listen():match "%d+$")
    local clock = srv.test.clock()
    local raw = assert(srv.tcp.connect("127.0.0.1", port))
    raw:write("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
      .. "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    raw:read_until "\r\n\r\n"
    clock:advance "29s"
    clock:advance "2s"
    assert.equal("\137\0", raw:read_exactly(2)) -- a ping
    clock:advance "29s"
    clock:advance "2s"
    assert.equal(1006, (ended:receive()))
  end)
end)

describe("ws", function()
  it("says of itself what the page names", function()
    local t = serving(function(app)
      app:ws("/x", { protocols = { "v1" } }, function(ws, req)
        ws:send {
          ws.protocol, ws.status, ws.pending, ws.close_code == nil, ws.req == req, ws.state == req.state, req.path,
        }
      end)
    end)
    assert.equal('["v1","open",0,true,true,true,"/x"]', (t:ws("/x", { protocols = { "v1" } }):receive()))
  end)

  it("gives nil and `closed` once it is", function()
    local seen = srv.channel(1)
    local t = serving(function(app)
      app:ws("/", function(ws)
        ws:close(4000, "mine")
        seen:send { ws.close_code, ws.close_reason, select(2, ws:send "x").code, select(2, ws:receive()).code }
      end)
    end)
    t:ws "/"
    assert.same({ 4000, "mine", "closed", "closed" }, seen:receive "5s")
  end)
end)
