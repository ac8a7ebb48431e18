--- srv.http.forward of WebSockets: a gateway in memory, servers at real ports behind it.
local srv = require "srv"

describe("srv.http.forward of a WebSocket", function()
  local behind, gateway, origin

  setup(function()
    local app = srv.app()
    app:ws("/echo", { protocols = { "v1" }, limit = "2MiB" }, function(ws)
      for message, kind in ws:messages() do ws:send(message, kind) end
    end)
    app:ws("/who", function(ws, req) ws:send { req:header "x-forwarded-for", req:header "via", req:header "x-own", req.host } end)
    app:ws("/bye", function(ws) ws:close(4002, "behind") end)
    app:ws("/closed", function() srv.error(403, "not you") end, function() end)
    app:ws("/gone", { close = function(_, code) srv.bus.publish("spec.switch", code) end })
    behind = srv.test(app)
    origin = behind:listen()

    local front = srv.app()
    front:get("/*path", function(req)
      return srv.http.forward(req, { "http://127.0.0.1:1", origin }, { headers = { ["X-Own"] = "gateway" } })
    end)
    gateway = srv.test(front)
  end)

  teardown(function()
    behind:close()
    gateway:close()
  end)

  it("carries messages both ways, of any size, compressed as both ends agree", function()
    local ws = assert(gateway:ws("/echo", { protocols = { "v0", "v1" } }))
    assert.equal("v1", ws.protocol)
    assert.matches("permessage%-deflate", ws.headers["sec-websocket-extensions"])
    for _, message in ipairs { "hello", "", ("x"):rep(1024 * 1024), ("\0\1\2"):rep(100000) } do
      ws:send(message, "binary")
      assert.same({ message, "binary" }, { ws:receive() })
    end
  end)

  it("says who has asked, as for any request", function()
    local ws = gateway:ws("/who", { ip = "10.0.0.9" })
    assert.same({ "10.0.0.9", "1.1 srv", "gateway", (origin:gsub("^http://", "")) }, srv.json.decode((ws:receive())))
  end)

  it("passes both ends' good-byes on", function()
    local ws = gateway:ws "/bye"
    ws:receive()
    assert.same({ 4002, "behind" }, { ws.close_code, ws.close_reason })
    local sub = srv.bus.subscribe "spec.switch"
    gateway:ws("/gone"):close(4001)
    assert.equal(4001, (sub:receive "5s"))
  end)

  it("passes a refusal on as an answer", function()
    local ws, answer = gateway:ws "/closed"
    assert.is_nil(ws)
    assert.same({ 403, "not you" }, { answer.status, answer:json().detail })
    assert.equal(404, select(2, gateway:ws "/nowhere").status)
  end)

  it("is 502 where nobody is behind, and 501 for other protocols", function()
    local front = srv.app()
    front:get("/", function(req) return srv.http.forward(req, "http://127.0.0.1:1") end)
    local t = srv.test(front)
    assert.equal(502, select(2, t:ws "/").status)
    t:get("/", { headers = { Upgrade = "h2c", Connection = "Upgrade" } }):expect(501)
  end)
end)
