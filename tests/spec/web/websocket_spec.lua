local srv = require "srv"

local function client_of(declare)
  local app = srv.app()
  declare(app)
  return srv.test(app), app
end

local function echo(ws)
  for message, kind in ws:messages() do ws:send(message, kind) end
end

local function closed_with(code, ws)
  local message, err = ws:receive()
  assert.is_nil(message)
  assert.equal("closed", err.code)
  assert.equal(code, ws.close_code)
end

describe("app:ws", function()
  describe("a function", function()
    it("gets each message with its kind, and sends", function()
      local ws = client_of(function(app) app:ws("/echo", echo) end):ws "/echo"
      ws:send "hello"
      assert.same({ "hello", "text" }, { ws:receive() })
      ws:send("\0\255", "binary")
      assert.same({ "\0\255", "binary" }, { ws:receive() })
      ws:send ""
      assert.same({ "", "text" }, { ws:receive() })
    end)

    it("may be a table that can be called", function()
      local handler = setmetatable({ word = "called" }, { __call = function(self, ws) ws:send(self.word) end })
      local ws = client_of(function(app) app:ws("/", handler) end):ws "/"
      assert.equal("called", (ws:receive()))
      closed_with(1000, ws)
    end)

    it("says why it closes, in any bytes that a text has", function()
      local ws = client_of(function(app) app:ws("/", function(ws) ws:close(4000, "a\0b\195\164") end) end):ws "/"
      closed_with(4000, ws)
      assert.equal("a\0b\195\164", ws.close_reason)
    end)

    it("closes with 1000 when it returns, behind what it has sent", function()
      local ws = client_of(function(app) app:ws("/bye", function(ws) ws:send "bye" end) end):ws "/bye"
      assert.equal("bye", (ws:receive()))
      closed_with(1000, ws)
    end)

    it("says as a text what it is, and where", function()
      local said = {}
      local t = client_of(function(app)
        app:ws("/bye/:name", { open = function(ws) said.open = tostring(ws) ws:close() end, close = function(ws) said.closed = tostring(ws) end })
      end)
      closed_with(1000, t:ws "/bye/ann?a=1")
      assert.same({ open = "websocket: open /bye/ann", closed = "websocket: closed /bye/ann" }, said)
    end)

    it("ends its loop when the client closes, and sees how", function()
      local seen = srv.channel(1)
      local t = client_of(function(app)
        app:ws("/echo", function(ws)
          echo(ws)
          local sent, err = ws:send "late"
          seen:send { ws.close_code, ws.close_reason, ws.status, sent, err.code }
        end)
      end)
      t:ws("/echo"):close(4001, "enough")
      assert.same({ 4001, "enough", "closed", nil, "closed" }, seen:receive "5s")
    end)

    it("is not cut off in its work when the client leaves, but has the route's time limit from then on", function()
      local clock, left = srv.test.clock(), {}
      local t = client_of(function(app)
        app:ws("/", { timeout = "3s" }, function(ws)
          srv.defer(function(err) left.why = err and err.message end)
          ws:receive()
          left.returned = true
          srv.sleep "1h"
        end)
      end)
      local ws = t:ws "/"
      clock:advance "10s"
      assert.same({}, left)
      ws:leave()
      clock:advance "2s"
      assert.same({ returned = true }, left)
      clock:advance "2s"
      assert.same({ returned = true, why = "deadline" }, left)
    end)

    it("may take messages one by one, and wait for each only so long", function()
      local t = client_of(function(app)
        app:ws("/", function(ws)
          local _, err = ws:receive "1ms"
          ws:send(err.code)
          ws:send((ws:receive()))
        end)
      end)
      local ws = t:ws "/"
      assert.equal("timeout", (ws:receive()))
      ws:send "x"
      assert.equal("x", (ws:receive()))
    end)

    it("refuses a second task that waits for messages", function()
      local t = client_of(function(app)
        app:ws("/", function(ws)
          srv.spawn(ws.receive, ws)
          srv.sleep "1ms"
          local ok, message = pcall(ws.receive, ws)
          ws:send { ok, (tostring(message):gsub("^.-: ", "")) }
        end)
      end)
      assert.equal('[false,"websocket: another task waits for its messages"]', (t:ws("/"):receive()))
    end)
  end)

  describe("a table of functions", function()
    it("calls open, message and close in tasks of their own, one at a time", function()
      local calls = {}
      local t = client_of(function(app)
        app:ws("/", {
          open = function(ws, req)
            srv.sleep "2ms"
            calls[#calls + 1] = "open " .. req.path .. " " .. ws.status
          end,
          message = function(ws, message, kind)
            srv.sleep(message == "slow" and "3ms" or 0)
            calls[#calls + 1] = message .. " " .. kind
            ws:send(message)
          end,
          close = function(ws, code, reason)
            srv.sleep "1ms"
            calls[#calls + 1] = ("close %d %s %s"):format(code, reason, ws.status)
          end,
        })
      end)
      local ws = t:ws "/"
      ws:send "slow"
      ws:send "fast"
      assert.equal("slow", (ws:receive()))
      assert.equal("fast", (ws:receive()))
      ws:close(1000, "done")
      for _ = 1, 4000 do
        if #calls == 4 then break end
        srv.sleep "5ms"
      end
      assert.same({ "open / open", "slow text", "fast text", "close 1000 done closed" }, calls)
    end)

    it("needs only one of them", function()
      local t = client_of(function(app) app:ws("/", { open = function(ws) ws:send "hi" end }) end)
      local ws = t:ws "/"
      ws:send "nobody hears it"
      assert.equal("hi", (ws:receive()))
      assert.equal(1000, ws:close().close_code)
    end)

    it("takes options beside the functions, too", function()
      local t = client_of(function(app)
        app:ws("/", { limit = "10B", message = function(ws, m) ws:send(m) end })
      end)
      local ws = t:ws "/"
      ws:send "0123456789"
      assert.equal("0123456789", (ws:receive()))
      ws:send "0123456789a"
      closed_with(1009, ws)
    end)

    it("gives each message as long as the route has", function()
      local clock, left = srv.test.clock(), nil
      local t = client_of(function(app)
        app:ws("/", { timeout = "5s" }, {
          message = function()
            srv.defer(function(err) left = err and err.message end)
            srv.sleep "1h"
          end,
        })
      end)
      local ws = t:ws "/"
      clock:advance "1m"
      ws:send "x"
      clock:advance "4s"
      assert.is_nil(left)
      clock:advance "2s"
      assert.equal("deadline", left)
      closed_with(1011, ws)
    end)

    it("has no place for receive()", function()
      local t = client_of(function(app)
        app:ws("/", { open = function(ws)
          local _, message = pcall(ws.receive, ws)
          ws:send(tostring(message))
        end })
      end)
      assert.matches("what comes here is for the function `message` of app:ws", (t:ws("/"):receive()))
    end)
  end)

  describe("the request", function()
    it("stays with the socket: line, fields, parameters, what middleware has found", function()
      local t = client_of(function(app)
        app:use(function(req, _, next)
          req.state.user = "ada"
          req.tenant = "t1"
          return next()
        end)
        app:ws("/rooms/:room<slug>", { query = { page = "integer = 1" } }, function(ws, req)
          srv.sleep "1ms"
          ws:send {
            req.method, req.path, req.original_url, req.params.room, req.query.q, req.valid.query.page,
            req.header and req:header "X-A", req.headers["x-a"], req.cookies.c, req.ip, req.host, req.state.user, req.tenant,
            ws.state.user, ws.req.tenant, req.route.path, #req.id > 0, req.headers["sec-websocket-key"] == nil, req.protocol,
          }
        end)
      end)
      local ws = t:ws("/rooms/blue", { query = { q = "x" }, headers = { ["X-A"] = "1" }, cookies = { c = "v" }, ip = "10.0.0.7" })
      assert.same({
        "GET", "/rooms/blue", "/rooms/blue?q=x", "blue", "x", 1, "1", "1", "v", "10.0.0.7", "test.local", "ada", "t1",
        "ada", "t1", "/rooms/:room<slug>", true, true, "HTTP/1.1",
      }, srv.json.decode((ws:receive())))
    end)

    it("keeps what the handlers hang on it and on the socket", function()
      local t = client_of(function(app)
        app:ws("/", {
          open = function(ws, req)
            ws.state.n, ws.name, req.note = 1, "a", "b"
          end,
          message = function(ws) ws:send { ws.state.n, ws.req.state.n, ws.name, ws.req.note } end,
        })
      end)
      local ws = t:ws "/"
      ws:send "?"
      assert.equal('[1,1,"a","b"]', (ws:receive()))
    end)

    it("says what of a request is no more", function()
      local t = client_of(function(app)
        app:ws("/", function(ws, req)
          local _, message = pcall(function() return req:json() end)
          ws:send(tostring(message))
        end)
      end)
      assert.matches("req:json%(%): the request of a socket has been answered", (t:ws("/"):receive()))
    end)
  end)

  describe("before the switch", function()
    local function guarded()
      return client_of(function(app)
        app:hook("send", function(_, res) res:header("X-Sent", "1") end)
        app:use(function(_, res, next)
          next()
          res:header("X-Late", "1")
        end)
        app:ws("/closed", function() return nil, 401 end, echo)
        app:ws("/rooms/:id<int>", { query = { page = "integer" } }, echo)
        app:ws("/taken", function(_, res, next)
          next()
          res:status(409)
        end, echo)
        app:ws("/echo", echo)
      end)
    end

    it("a guard's answer is a plain one", function()
      local ws, answer = guarded():ws "/closed"
      assert.is_nil(ws)
      assert.equal(401, answer.status)
      assert.equal("1", answer.headers["X-Sent"])
    end)

    it("schemas are checked", function()
      local _, answer = guarded():ws("/rooms/7", { query = { page = "x" } })
      assert.equal(400, answer.status)
      assert.equal("invalid", answer:json().code)
    end)

    it("a path that no route takes is 404", function()
      local _, answer = guarded():ws "/nowhere"
      assert.equal(404, answer.status)
    end)

    it("fields of middleware and hooks are on the answer", function()
      local ws = guarded():ws "/echo"
      assert.equal("1", ws.headers["x-sent"])
      assert.equal("1", ws.headers["x-late"])
      ws:send "works"
      assert.equal("works", (ws:receive()))
    end)

    it("a status that middleware sets is an answer in the socket's place", function()
      local _, answer = guarded():ws "/taken"
      assert.equal(409, answer.status)
    end)

    it("a status that was set before the route's handler is none", function()
      local ws = client_of(function(app)
        app:use(function(_, res, next)
          res:status(203)
          return next()
        end)
        app:ws("/", echo)
      end):ws "/"
      assert.equal(101, ws.status)
      ws:send "works"
      assert.equal("works", (ws:receive()))
    end)

    it("a request that asks for no WebSocket is 426", function()
      guarded():get("/echo"):expect(426):expect("upgrade", "websocket"):expect("sec-websocket-version", "13")
    end)

    it("another version is 426, a broken key 400", function()
      local t = guarded()
      local headers = { Upgrade = "websocket", Connection = "Upgrade", ["Sec-WebSocket-Key"] = "dGhlIHNhbXBsZSBub25jZQ==",
        ["Sec-WebSocket-Version"] = "12" }
      t:get("/echo", { headers = headers }):expect(426):expect("sec-websocket-version", "13")
      headers["Sec-WebSocket-Version"], headers["Sec-WebSocket-Key"] = "13", "short"
      t:get("/echo", { headers = headers }):expect(400)
    end)

    it("other methods are 405", function()
      guarded():post("/echo"):expect(405):expect("allow", "^GET, HEAD")
    end)
  end)

  describe("origins", function()
    local function with(origins, origin, host)
      local t = client_of(function(app) app:ws("/", { origins = origins }, echo) end)
      local ws, answer = t:ws("/", { headers = { Origin = origin }, host = host })
      return ws and 101 or answer.status
    end

    it("lets no page of plain HTTP have a socket over TLS, unless it is named", function()
      local function over_tls(origins, origin)
        local t = client_of(function(app) app:ws("/", { origins = origins }, echo) end)
        local ws, answer = t:ws("/", { headers = { Origin = origin }, host = "chat.example", tls = true })
        return ws and 101 or answer.status
      end
      assert.equal(101, over_tls(nil, "https://chat.example"))
      assert.equal(403, over_tls(nil, "http://chat.example"))
      assert.equal(403, over_tls(nil, "HTTP://chat.example"))
      assert.equal(101, over_tls({ "http://chat.example" }, "http://chat.example"))
    end)

    it("lets pages of its own host in, and who names none", function()
      assert.equal(101, with(nil, nil))
      assert.equal(101, with(nil, "https://chat.example", "chat.example"))
      assert.equal(101, with(nil, "https://chat.example:443", "Chat.example"))
      assert.equal(101, with(nil, "http://chat.example:8080", "chat.example:8080"))
      assert.equal(403, with(nil, "https://chat.example.evil.example", "chat.example"))
      assert.equal(403, with(nil, "https://chat.example:8443", "chat.example"))
      assert.equal(403, with(nil, "null", "chat.example"))
    end)

    it("takes a list, with stars for subdomains", function()
      local list = { "https://a.example", "https://*.b.example" }
      assert.equal(101, with(list, "https://A.example", "x"))
      assert.equal(101, with(list, "https://w.b.example", "x"))
      assert.equal(403, with(list, "https://b.example", "x"))
      assert.equal(403, with(list, "https://x", "x"))
      assert.equal(101, with("*", "https://anywhere.example", "x"))
    end)

    it("takes a function, which may wait and fail", function()
      local function ask(origin, req)
        srv.sleep "1ms"
        if origin == "https://down" then return nil, srv.error.new(503) end
        return origin == "https://" .. req.host .. ".friends"
      end
      assert.equal(101, with(ask, "https://x.friends", "x"))
      assert.equal(403, with(ask, "https://y.friends", "x"))
      assert.equal(503, with(ask, "https://down", "x"))
    end)
  end)

  it("agrees on the first protocol of the client that it knows", function()
    local t = client_of(function(app)
      app:ws("/", { protocols = { "v2", "v1" } }, function(ws) ws:send { ws.protocol } end)
    end)
    local ws = t:ws("/", { protocols = { "v0", "v1", "v2" } })
    assert.same({ "v1", '["v1"]' }, { ws.protocol, (ws:receive()) })
    ws = t:ws("/", { protocols = { "v9" } })
    assert.same({ n = 2, nil, "[]" }, { n = 2, ws.protocol, (ws:receive()) })
  end)

  it("sends texts as they are and other values as JSON", function()
    local t = client_of(function(app)
      app:ws("/", function(ws)
        for _, v in ipairs { "text", { a = 1 }, 7, true, srv.null, {} } do ws:send(v) end
      end)
    end)
    local ws, got = t:ws "/", {}
    for message, kind in ws:messages() do got[#got + 1] = message .. " " .. kind end
    assert.same({ "text text", '{"a":1} text', "7 text", "true text", "null text", "[] text" }, got)
  end)

  it("blames who sends what cannot be sent, or closes with a code that cannot", function()
    local faults = {}
    local t = client_of(function(app)
      app:ws("/", function(ws)
        local function fails(...)
          local ok, message = pcall(...)
          faults[#faults + 1] = not ok and tostring(message):match "websocket_spec.lua:%d+: (.*)" or "?" .. tostring(message)
        end
        fails(function() ws:send "\255" end)
        fails(function() ws:send(nil) end)
        fails(function() ws:send("x", "blob") end)
        fails(function() ws:send({}, "binary") end)
        fails(function() ws:close(1005) end)
        fails(function() ws:close "soon" end)
        fails(function() ws:close(1000, ("x"):rep(124)) end)
        fails(function() ws:close(1000, "\255") end)
        fails(function() ws:close(1000, {}) end)
        fails(function() ws:on("message", print) end)
        fails(function() ws.close_code = 1 end)
        fails(function() ws:subscribe(1) end)
        fails(function() ws:publish("a.*", 1) end)
      end)
    end)
    closed_with(1000, t:ws "/")
    assert.same({
      'ws:send: this is no UTF-8: send it as "binary"',
      "ws:send: a value is missing (JSON's null is srv.null)",
      'ws:send: the kind is "text" or "binary"',
      "ws:send: binary is a string, not a table",
      "ws:close: a code is one of 1000-1003, 1007-1014 and 3000-4999",
      "ws:close: a code is a number, not a string",
      "ws:close: a reason has at most 123 bytes",
      "ws:close: a reason is UTF-8",
      "ws:close: a reason is a text, not a table",
      "ws:on is another framework's name; here it is: app:ws(path, { open = fn, message = fn, close = fn })",
      "ws.close_code cannot be set",
      "ws:subscribe: a topic is a string",
      'ws:publish: a topic to publish to holds no "*"',
    }, faults)
  end)

  it("closes with 1011 when a handler fails, and tells the log where", function()
    local closes = srv.channel(4)
    local t = client_of(function(app)
      app:ws("/linear", function() error "linear breaks" end)
      app:ws("/table", {
        message = function() error "table breaks" end,
        close = function(_, code) closes:send(code) end,
      })
    end)
    closed_with(1011, t:ws "/linear")
    local ws = t:ws "/table"
    ws:send "x"
    closed_with(1011, ws)
    assert.equal(1011, (closes:receive "5s"))
  end)

  describe("a slow client", function()
    local BIG = ("x"):rep(64 * 1024)

    it("makes send wait while the buffer is full, and gets everything in order", function()
      local sent = 0
      local t = client_of(function(app)
        app:ws("/", { buffer = "64KiB", compress = false }, function(ws)
          for i = 1, 16 do
            assert(ws:send(i .. BIG))
            sent = i
          end
        end)
      end)
      local ws = t:ws("/", { compress = false })
      srv.sleep "20ms"
      assert.is_true(sent < 8, "it has sent " .. sent)
      for i = 1, 16 do assert.equal(i .. BIG, (ws:receive())) end
      closed_with(1000, ws)
    end)

    it("keeps messages of several tasks whole", function()
      local t = client_of(function(app)
        app:ws("/", { buffer = "1KiB", compress = false }, function(ws)
          srv.map({ "a", "b", "c" }, function(name)
            for _ = 1, 5 do assert(ws:send(name:rep(50000))) end
          end)
        end)
      end)
      local ws, count = t:ws("/", { compress = false }), {}
      for message in ws:messages() do
        local name = message:sub(1, 1)
        assert.equal(name:rep(50000), message)
        count[name] = (count[name] or 0) + 1
      end
      assert.same({ a = 5, b = 5, c = 5 }, count)
    end)

    it("is closed with 1013 where overflow says so", function()
      local got
      local t = client_of(function(app)
        app:ws("/", { buffer = "64KiB", overflow = "close", compress = false }, function(ws)
          for i = 1, 64 do
            local ok, err = ws:send(i .. BIG)
            if not ok then
              got = { i < 20, err.code }
              return
            end
          end
        end)
      end)
      local ws = t:ws("/", { compress = false })
      srv.sleep "20ms"
      for _ in ws:messages() do end
      assert.same({ true, "closed" }, got)
      assert.equal(1013, ws.close_code)
    end)
  end)

  describe("topics", function()
    local function room()
      return client_of(function(app)
        app:ws("/rooms/:room", {
          open = function(ws)
            assert(ws:subscribe("spec.room." .. ws.req.params.room))
            ws:send "in"
          end,
          message = function(ws, message)
            if message == "leave" then ws:unsubscribe("spec.room." .. ws.req.params.room)
            else ws:publish("spec.room." .. ws.req.params.room, { from = message }) end
            ws:send "done"
          end,
        })
      end)
    end

    local function enter(t, name)
      local ws = t:ws("/rooms/" .. name)
      assert.equal("in", (ws:receive()))
      return ws
    end

    it("reach all subscribers as text", function()
      local t = room()
      local a, b, other = enter(t, "one"), enter(t, "one"), enter(t, "two")
      srv.bus.publish("spec.room.one", "plain")
      srv.bus.publish("spec.room.one", { a = { 1, 2 } })
      for _, ws in ipairs { a, b } do
        assert.same({ "plain", "text" }, { ws:receive() })
        assert.same({ '{"a":[1,2]}', "text" }, { ws:receive() })
      end
      assert.equal("timeout", select(2, other:receive "5ms").code)
    end)

    it("reach all but who publishes", function()
      local t = room()
      local a, b = enter(t, "p"), enter(t, "p")
      a:send "ada"
      assert.equal("done", (a:receive()))
      assert.equal('{"from":"ada"}', (b:receive()))
      assert.equal("timeout", select(2, a:receive "5ms").code)
    end)

    it("are left by unsubscribe and by closing", function()
      local t = room()
      local a, b = enter(t, "q"), enter(t, "q")
      a:send "leave"
      assert.equal("done", (a:receive()))
      b:close()
      srv.bus.publish("spec.room.q", "nobody")
      assert.equal("timeout", select(2, a:receive "5ms").code)
    end)

    it("cost one frame for all subscribers of a worker", function()
      local core = require "srv.core.ws"
      local t, sockets = room(), {}
      for i = 1, 100 do sockets[i] = enter(t, "crowd") end
      local before = core.counts()
      srv.bus.publish("spec.room.crowd", { text = "once" })
      for _, ws in ipairs(sockets) do assert.equal('{"text":"once"}', (ws:receive())) end
      local after = core.counts()
      assert.same({ 1, 100 }, { after.encoded - before.encoded, after.sent - before.sent })
    end)

    it("hand nothing to who has come since", function()
      local t = room()
      local a = enter(t, "late")
      srv.bus.publish("spec.room.late", "before")
      local b = enter(t, "late")
      srv.bus.publish("spec.room.late", "after")
      assert.equal("before", (a:receive()))
      assert.equal("after", (b:receive()))
    end)

    it("may hold a star; a string that is no UTF-8 goes as binary", function()
      local t = client_of(function(app)
        app:ws("/", { open = function(ws)
          ws:subscribe "spec.star.*"
          ws:send "in"
        end })
      end)
      local ws = t:ws "/"
      ws:receive()
      srv.bus.publish("spec.star.a", "\255")
      assert.same({ "\255", "binary" }, { ws:receive() })
    end)

    it("are lost on a socket whose buffer is full, or close it", function()
      local t = client_of(function(app)
        for _, overflow in ipairs { "wait", "close" } do
          app:ws("/" .. overflow, { buffer = "64KiB", overflow = overflow, compress = false }, {
            open = function(ws)
              ws:subscribe "spec.flood"
              ws:send "in"
            end,
          })
        end
      end)
      local patient, strict = t:ws("/wait", { compress = false }), t:ws("/close", { compress = false })
      assert.equal("in", (patient:receive()))
      assert.equal("in", (strict:receive()))
      for i = 1, 40 do srv.bus.publish("spec.flood", i .. (" "):rep(64 * 1024)) end
      srv.sleep "20ms"
      local count = 0
      while patient:receive "20ms" do count = count + 1 end
      assert.is_true(count > 0 and count < 40, "got " .. count)
      for _ in strict:messages() do end
      assert.equal(1013, strict.close_code)
      assert.is_nil(patient.close_code)
    end)
  end)

  describe("declared wrongly", function()
    local function fault(...)
      local app, arguments, n = srv.app(), { ... }, select("#", ...)
      local ok, err = pcall(function() app:ws(unpack(arguments, 1, n)) end)
      assert.is_false(ok)
      return (tostring(err):gsub("^.-websocket_spec.lua:%d+: ", ""):gsub("^lua: ", ""))
    end

    it("says what is wrong, at the app's line", function()
      assert.matches("^app:ws: the last argument is a function", fault "/x")
      assert.matches("^app:ws: the last argument is a function", fault("/x", {}))
      assert.matches('unknown option "orgins", did you mean "origins"', fault("/x", { orgins = {} }, echo))
      assert.matches('unknown option "mesage"', fault("/x", { open = echo, mesage = echo }))
      assert.matches('option "message" must be a function', fault("/x", { message = 1 }))
      assert.matches("origins must be a list", fault("/x", { origins = {} }, echo))
      assert.matches('"a.example" is no origin', fault("/x", { origins = { "a.example" } }, echo))
      assert.matches("protocols must be a list", fault("/x", { protocols = {} }, echo))
      assert.matches("is no name of a protocol", fault("/x", { protocols = { "a b" } }, echo))
      assert.matches("the protocol a is there twice", fault("/x", { protocols = { "a", "a" } }, echo))
      assert.matches("heartbeat must be longer than 0", fault("/x", { heartbeat = 0 }, echo))
      assert.matches("message_timeout must be longer than 0", fault("/x", { message_timeout = 0 }, echo))
      assert.matches("limit must be at least 1 byte", fault("/x", { limit = 0 }, echo))
      assert.matches('option "overflow" must be', fault("/x", { overflow = "drop" }, echo))
      assert.matches("methods of an app stand behind a colon", select(2, pcall(function() srv.app().ws("/x", echo) end)))
    end)
  end)

  it("is not part of the OpenAPI document", function()
    local t = client_of(function(app)
      app:use(srv.openapi { title = "x" })
      app:ws("/ws", echo)
      app:get("/plain", function() return "x" end)
    end)
    local paths = t:get("/openapi.json"):json().paths
    assert.is_not_nil(paths["/plain"])
    assert.is_nil(paths["/ws"])
  end)

  it("is closed by a test while other tasks of it read and close", function()
    local ws = client_of(function(app) app:ws("/", echo) end):ws "/"
    local reader = srv.spawn(function() for _ in ws:messages() do end return "ended" end)
    srv.sleep(0)
    srv.all(function() ws:close(3000) end, function() ws:close(3001) end)
    assert.equal(3000, ws.close_code)
    assert.equal("ended", reader:wait())
  end)

  it("goes on when all that is left of its app is the socket", function()
    local ws = client_of(function(app) app:ws("/a/:b", { protocols = { "v1" } }, echo) end):ws("/a/b", { protocols = { "v1" } })
    collectgarbage()
    collectgarbage()
    ws:send "still here"
    assert.equal("still here", (ws:receive()))
    assert.equal(1000, ws:close().close_code)
  end)

  it("stands in mounts and under hosts as any route", function()
    local inner = srv.router()
    inner:ws("/:room", function(ws, req) ws:send { req.params.org, req.params.room } end)
    local t = client_of(function(app) app:mount("/orgs/:org", inner) end)
    assert.equal('["o","r"]', (t:ws("/orgs/o/r"):receive()))
  end)
end)
