local errors = require "srv.base.errors"
local sync = require "srv.async.sync"
local task = require "srv.async.task"
local tcp = require "srv.async.tcp"
local unix = require "srv.async.unix"
local reader = require "srv.base.reader"

local sleep, spawn = task.sleep, task.spawn

--- A listener that serves FN, and a socket connected to it.
local function pair(fn, opts, connect_opts)
  local listener = assert(tcp.listen("127.0.0.1:0", fn, opts))
  local port = tonumber(listener.address:match(":(%d+)$"))
  return assert(tcp.connect("127.0.0.1", port, connect_opts)), listener, port
end

local function comes_true(claim)
  for _ = 1, 2000 do
    if claim() then return end
    sleep "10ms"
  end
  error("this did not come true within twenty seconds", 2)
end

local function echo(sock)
  for chunk in sock do sock:write(chunk) end
end

local function refused(code, value, err)
  assert.is_nil(value)
  assert.is_true(errors.is(err))
  assert.equal(code, err.code)
  return err
end

describe("srv.tcp", function()
  it("carries bytes both ways", function()
    local sock, listener = pair(echo)
    assert.is_true(sock:write("hello ", 7))
    assert.equal("hello 7", sock:read_exactly(7))
    assert.is_true(sock:shutdown())
    assert.is_nil((sock:read()))
    sock:close()
    listener:close()
  end)

  it("says who is at both ends", function()
    local seen = sync.channel(1)
    local sock, listener, port = pair(function(s) seen:send(s.peer) end)
    assert.same({ ip = "127.0.0.1", port = port }, sock.peer)
    local ip, mine = sock:address()
    assert.same({ ip = ip, port = mine }, seen:receive())
    listener:close()
  end)

  it("is a reader", function()
    local sock, listener = pair(function(s) s:write "one\r\ntwo\n\nlast" end)
    assert.is_true(reader.is(sock))
    assert.equal("one", sock:line())
    assert.equal("two", sock:line())
    assert.equal("", sock:line())
    assert.equal("last", sock:line())
    assert.is_nil((sock:line()))
    listener:close()
  end)

  it("reads at most as many bytes as asked for, all of them, or up to a text", function()
    local sock, listener = pair(function(s) s:write "abcdef--ghi--" s:read() s:write "rest" end)
    assert.equal("ab", sock:read(2))
    assert.equal("cdef", sock:read_until "--")
    assert.equal("ghi", sock:read_until "--")
    sock:write "go"
    assert.equal("rest", sock:all())
    listener:close()
  end)

  it("keeps what stands before a text that comes in pieces", function()
    local sock, listener = pair(function(s)
      for _, part in ipairs { "a", "\r", "b\r", "\n", "c" } do s:write(part) sleep "2ms" end
    end)
    assert.equal("a\rb", sock:read_until "\r\n")
    assert.equal("c", sock:all())
    listener:close()
  end)

  it("finds a text wherever pieces and limits fall", function()
    local text = "ab--cd--" .. ("x"):rep(70000) .. "--" .. ("-"):rep(5) .. "end"
    for _, step in ipairs { 1, 2, 3, 7, 100000 } do
      local sock, listener = pair(function(s)
        for i = 1, 16, step do s:write(text:sub(i, math.min(i + step - 1, 16))) sleep(0) end
        s:write(text:sub(17))
      end)
      assert.equal("ab", sock:read_until "--")
      refused("too_large", sock:read_until("d--", 0))
      assert.equal("c", sock:read_until("d--", 1))
      assert.equal("xx", sock:read_exactly(2))
      refused("too_large", sock:read_until("--", 69997))
      assert.equal(("x"):rep(69998), sock:read_until("--", 69998))
      assert.equal("---", sock:read_until "--e")
      refused("closed", sock:read_until "--")
      assert.equal("nd", sock:read_exactly(2))
      assert.is_nil((sock:read()))
      listener:close()
    end
  end)

  it("lets others have their turn, however much there is to read", function()
    local written = sync.event()
    local sock, listener = pair(function(s) s:write(("x\n"):rep(100000)) written:set() s:read() end)
    written:wait()
    local others = false
    spawn(function() others = true end)
    for _ = 1, 70000 do sock:line() end
    assert.is_true(others)
    sock:close()
    listener:close()
  end)

  it("bounds what it looks through", function()
    local sock, listener = pair(function(s) s:write(("x"):rep(5000)) s:read() end)
    refused("too_large", sock:read_until("\n", 1000))
    assert.equal(5000, #sock:read_exactly(5000))
    sock:close()
    listener:close()
  end)

  it("tells an end amid a message from an end", function()
    local sock, listener = pair(function(s) s:write "abc" end)
    refused("closed", sock:read_exactly(4))
    refused("closed", sock:read_until "\n")
    assert.equal("abc", sock:read())
    assert.is_nil((sock:read()))
    assert.same({}, { sock:read_until "\n" })
    listener:close()
  end)

  it("loses nothing when a limit passes amid a line", function()
    local go = sync.event()
    local sock, listener = pair(function(s) s:write "half" go:wait() s:write " whole\n" end, nil, { timeout = 0.05 })
    refused("timeout", sock:line())
    go:set()
    sock:set_timeout(5)
    assert.equal("half whole", sock:line())
    listener:close()
  end)

  it("waits while the peer reads slower, and loses no byte", function()
    local size, got, wrote = 8 * 1024 * 1024, 0, false
    local go = sync.event()
    local sock, listener = pair(function(s)
      go:wait()
      for chunk in s do got = got + #chunk end
      s:write(tostring(got))
    end)
    local writer = spawn(function()
      assert(sock:write(("x"):rep(size)))
      wrote = true
      sock:shutdown()
    end)
    sleep "20ms"
    assert.is_false(wrote)
    go:set()
    writer:wait()
    assert.equal(tostring(size), sock:all())
    listener:close()
  end)

  it("closes a socket whose peer does not take what is written in time", function()
    local go = sync.event()
    local sock, listener = pair(function() go:wait() end, nil, { timeout = 0.05 })
    refused("timeout", sock:write(("x"):rep(16 * 1024 * 1024)))
    refused("closed", sock:write "more")
    refused("closed", sock:read())
    go:set()
    listener:close()
  end)

  it("lets one task read and another write, but not two of a kind", function()
    local sock, listener = pair(function(s) s:read() end)
    local first = spawn(function() return sock:read() end)
    sleep(0)
    refused("busy", sock:read())
    assert.is_true(sock:write "x")
    assert.is_nil((first:wait()))
    listener:close()
  end)

  it("gives a reset as closed", function()
    local sock, listener = pair(function(s) s:read(1) end) -- closes with bytes unread: a reset
    sock:write(("x"):rep(100000))
    local value, err
    repeat value, err = sock:read() until not value
    if err == nil then repeat value, err = sock:write(("x"):rep(100000)) until not value end
    refused("closed", value, err)
    listener:close()
  end)

  it("wakes who waits when another task closes the socket", function()
    local sock, listener = pair(function(s) s:read() end)
    local waiting = spawn(function() return sock:read() end)
    sleep(0)
    sock:close()
    refused("closed", waiting:wait())
    refused("closed", sock:write "x")
    refused("closed", sock:shutdown())
    sock:close()
    listener:close()
  end)

  it("closes the socket of a wait that is cancelled", function()
    local ended = sync.channel(1)
    local sock, listener = pair(function(s) ended:send(s:read() or "end") end)
    refused("timeout", task.timeout("10ms", function() return sock:read() end))
    assert.equal("end", ended:receive(20))
    refused("closed", sock:read())
    listener:close()
  end)

  it("leaves sockets that nobody names to the collector", function()
    local ended = sync.channel(1)
    local listener = select(2, pair(function(s) ended:send(s:read() or "end") end))
    sleep "1ms"
    collectgarbage()
    collectgarbage()
    assert.equal("end", ended:receive(20))
    listener:close()
  end)

  it("says why nothing could be connected", function()
    local listener = assert(tcp.listen("127.0.0.1:0", echo))
    local address = listener.address
    local port = tonumber(address:match(":(%d+)$"))
    listener:close()
    sleep "5ms"
    assert.equal(address .. ": connection refused", refused("refused", tcp.connect("127.0.0.1", port)).message)
    refused("dns", tcp.connect("not a name", 80))
    refused("refused", unix.connect "/nonexistent/socket")
  end)

  it("blames the caller for what cannot be", function()
    local sock, listener = pair(echo)
    local Socket = getmetatable(sock)
    listener:close()
    for _, call in ipairs {
      function() tcp.connect("127.0.0.1", 0) end,
      function() tcp.connect(1, 80) end,
      function() tcp.connect("127.0.0.1", 80, { time = 1 }) end,
      function() tcp.listen("127.0.0.1:0") end,
      function() tcp.listen("unix:/x", echo) end,
      function() unix.connect "a\0b" end,
      function() setmetatable({}, Socket):write("a", nil) end,
      function() setmetatable({}, Socket):write {} end,
      function() setmetatable({}, Socket):read(0) end,
      function() setmetatable({}, Socket):read_exactly(1.5) end,
      function() setmetatable({}, Socket):read_until "" end,
    } do
      local ok, err = pcall(call)
      assert.is_false(ok)
      assert.matches("socket_spec.lua:%d+: [%a_.:]+: ", tostring(err))
    end
  end)
end)

describe("srv.tcp.listen", function()
  it("serves each connection in a task of its own", function()
    local sock, listener, port = pair(echo)
    local other = assert(tcp.connect("localhost", port))
    other:write "b"
    assert.equal("b", other:read())
    sock:write "a"
    assert.equal("a", sock:read())
    assert.equal(2, listener.connections)
    sock:close()
    other:close()
    listener:close()
  end)

  it("has as many at once as it was told", function()
    local open, most = 0, 0
    local listener = assert(tcp.listen("127.0.0.1:0", function(s)
      open = open + 1
      most = math.max(most, open)
      s:read()
      open = open - 1
    end, { connections = 2 }))
    local port = tonumber(listener.address:match(":(%d+)$"))
    local socks = {}
    for i = 1, 5 do socks[i] = assert(tcp.connect("127.0.0.1", port)) end
    comes_true(function() return open == 2 end)
    sleep "20ms"
    assert.equal(2, open)
    for i = 1, 5 do
      socks[i]:write "x"
      assert.is_nil((socks[i]:read()))
    end
    assert.equal(2, most)
    listener:close()
  end)

  it("goes on after a connection's mistake", function()
    local sock, listener, port = pair(function(s) if s:read() == "bad" then error "mistake" end end)
    sock:write "bad"
    assert.is_nil((sock:read()))
    local other = assert(tcp.connect("127.0.0.1", port))
    other:write "good"
    assert.is_nil((other:read()))
    listener:close()
  end)

  it("ends with the task that called it, connections and all", function()
    local port, sock
    local ready = sync.event()
    local caller = spawn(function()
      local listener = assert(tcp.listen("127.0.0.1:0", function(s) s:write "hi" sleep "1h" end))
      port = tonumber(listener.address:match(":(%d+)$"))
      sock = assert(tcp.connect("127.0.0.1", port))
      assert.equal("hi", sock:read())
      ready:set()
      sleep "1h"
    end)
    assert(ready:wait "20s")
    caller:cancel()
    assert.is_nil((sock:read()))
    refused("refused", tcp.connect("127.0.0.1", port))
  end)

  it("shares an address with those that listen there already", function()
    local _, first, port = pair(echo)
    local second = assert(tcp.listen("127.0.0.1:" .. port, echo))
    first:close()
    local sock = assert(tcp.connect("127.0.0.1", port))
    sock:write "x"
    assert.equal("x", sock:read())
    sock:close()
    second:close()
  end)

  it("says what is wrong with an address", function()
    refused("invalid", tcp.listen("127.0.0.1", echo))
    refused("invalid", tcp.listen("example.com:80", echo))
    refused("unavailable", tcp.listen("192.0.2.1:80", echo))
  end)
end)

describe("a socket's task", function()
  it("may be cancelled at any moment, and leaves nothing behind", function()
    local listener = assert(tcp.listen("127.0.0.1:0", echo))
    local port = tonumber(listener.address:match(":(%d+)$"))
    local big, runs = ("x"):rep(2 * 1024 * 1024), {}
    for i = 1, 200 do
      runs[i] = spawn(task.timeout, (i % 40) / 4000, function()
        local sock = assert(tcp.connect(i % 2 == 0 and "localhost" or "127.0.0.1", port))
        local writer = spawn(function() sock:write(big) sock:shutdown() end)
        while sock:read() do sleep(0) end
        writer:wait()
      end)
    end
    for _, run in ipairs(runs) do pcall(run.wait, run) end
    comes_true(function() return listener.connections == 0 end)
    local sock = assert(tcp.connect("127.0.0.1", port))
    sock:write "still here"
    assert.equal("still here", sock:read_exactly(10))
    listener:close()
  end)
end)

describe("srv.unix", function()
  it("connects by a path, which goes with the listener", function()
    local path = os.tmpname()
    os.remove(path)
    local listener = assert(unix.listen(path, echo))
    assert.equal("unix:" .. path, listener.address)
    local sock = assert(unix.connect(path))
    assert.same({ ip = "unix", port = 0 }, sock.peer)
    sock:write "x"
    assert.equal("x", sock:read())
    sock:close()
    listener:close()
    comes_true(function() return io.open(path) == nil end)
    refused("refused", unix.connect(path))
  end)

  it("knows abstract names", function()
    local name = "@srv-socket-spec-" .. math.random(1e9)
    local listener = assert(unix.listen(name, echo))
    local sock = assert(unix.connect(name))
    sock:write "x"
    assert.equal("x", sock:read())
    sock:close()
    listener:close()
  end)
end)
