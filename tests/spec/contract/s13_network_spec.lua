--- API, section 13: srv.tcp, unix, udp, dns; srv.time, format, url, html, metrics.
local srv = require "srv"

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

local function misuse(...)
  for _, fn in ipairs { ... } do
    assert.is_truthy(message_of(fn):find "s13_network_spec.lua:%d+: ", debug.getinfo(fn, "S").linedefined .. ": " .. message_of(fn))
  end
end

local function port_of(listener) return tonumber(listener.address:match ":(%d+)$") end

describe("srv.tcp and srv.unix", function()
  it("connect(host, port, [opts]), listen(address, fn): readers with write, shutdown, read_until", function()
    for _, kind in ipairs { "tcp", "unix" } do
      local function upper(sock)
        for line in function() return (sock:line()) end do sock:write(line:upper(), "|", 5, "\n") end
      end
      local listener = assert(kind == "tcp" and srv.tcp.listen("127.0.0.1:0", upper) or kind == "unix" and srv.unix.listen("@s13", upper))
      local sock = assert(kind == "tcp" and srv.tcp.connect("localhost", port_of(listener), { timeout = "5s" }) or kind == "unix" and srv.unix.connect "@s13")
      assert.is_true(sock:write "a\nb\n")
      assert.equal("A", sock:read_until "|")
      assert.equal("5", sock:line())
      assert.is_true(sock:shutdown())
      assert.equal("B|5\n", sock:all())
      assert.equal(kind == "tcp" and "127.0.0.1" or "unix", sock.peer.ip)
      sock:close()
      listener:close()
    end
  end)

  it("a listener's task is its socket's, which is closed when it returns or fails; a failure ends nothing else", function()
    local listener = assert(srv.tcp.listen("127.0.0.1:0", function(sock)
      if sock:line() == "fail" then error "mine" end
      sock:write "fine"
    end))
    local function ask(text)
      local sock = assert(srv.tcp.connect("127.0.0.1", port_of(listener)))
      sock:write(text, "\n")
      return (sock:all())
    end
    assert.same({ "", "fine" }, { ask "fail", ask "x" })
    listener:close()
    assert.equal("refused", select(2, srv.tcp.connect("127.0.0.1", port_of(listener))).code)
  end)

  it("write waits while the peer is slower", function()
    local go = srv.event()
    local listener = assert(srv.unix.listen("@s13-slow", function(sock)
      go:wait()
      for _ in sock do srv.sleep(0) end
      sock:write "read"
    end))
    local sock = assert(srv.unix.connect "@s13-slow")
    local writing = srv.spawn(function() return sock:write(("x"):rep(4 * 2 ^ 20)) end)
    srv.sleep(0.02)
    assert.equal("running", writing.state)
    go:set()
    assert.is_true(writing:wait())
    sock:shutdown()
    assert.equal("read", sock:all())
    listener:close()
  end)

  it("listener and connections end with the task that listens; cancellation closes what is waited for", function()
    local listener, sock
    local task = srv.spawn(function()
      listener = assert(srv.tcp.listen("127.0.0.1:0", function(peer) peer:read() end))
      srv.event():wait()
    end)
    srv.sleep(0)
    sock = assert(srv.tcp.connect("127.0.0.1", port_of(listener)))
    task:cancel()
    task:wait()
    local piece, err = sock:read()
    assert.is_nil(piece)
    assert.is_true(err == nil or err.code == "closed")
    assert.equal("refused", select(2, srv.tcp.connect("127.0.0.1", port_of(listener))).code)
  end)

  it("an address that is taken or wrong: nil, err that says so", function()
    local listener = assert(srv.tcp.listen("127.0.0.1:0", function() end))
    local udp = assert(srv.udp.bind "127.0.0.1:0")
    local _, port = udp:address()
    local again, err = srv.udp.bind("127.0.0.1:" .. port)
    assert.is_nil(again)
    assert.equal("unavailable", err.code)
    assert.is_truthy(err.message:find(tostring(port), 1, true), err.message)
    local none, fault = srv.tcp.listen("nonsense", function() end)
    assert.is_nil(none)
    assert.is_string(fault.message)
    listener:close()
    udp:close()
  end)

  it("misuse is blamed on the line", function()
    misuse(function() srv.tcp.connect() end, function() srv.tcp.connect("h", 0) end, function() srv.tcp.connect("h", "80") end,
      function() srv.tcp.listen("127.0.0.1:0") end, function() srv.tcp.listen(5, print) end, function() srv.tcp.listen("unix:/x", print) end,
      function() srv.unix.connect() end, function() srv.unix.connect "a\0b" end, function() srv.unix.listen("@x") end, function() srv.udp.bind "x" end,
      function() srv.udp.connect("h") end, function() srv.dns.resolve() end)
    local listener = assert(srv.unix.listen("@s13-misuse", function(peer) peer:all() end))
    local sock = assert(srv.unix.connect "@s13-misuse")
    misuse(function() sock:write(nil) end, function() sock:write {} end, function() sock:read_until "" end, function() sock:read_until(5) end,
      function() sock:read_until("x", "much") end, function() sock:read_exactly(0) end, function() sock:set_timeout "soon" end)
    sock:close()
    listener:close()
  end)
end)

describe("srv.udp and srv.dns", function()
  it("send datagrams both ways", function()
    local server = assert(srv.udp.bind "127.0.0.1:0")
    local ip, port = server:address()
    local client = assert(srv.udp.connect(ip, port))
    assert.is_true(client:send "ping")
    local bytes, from, from_port = server:receive()
    assert.equal("ping", bytes)
    assert.is_true(server:send("pong", from, from_port))
    assert.equal("pong", (client:receive()))
    client:close()
    server:close()
    assert.equal("closed", select(2, client:receive()).code)
  end)

  it("resolve(name) gives addresses, localhost and literals without a server", function()
    assert.same({ "127.0.0.1" }, srv.dns.resolve "127.0.0.1")
    assert.same({ "::1" }, srv.dns.resolve "::1")
    assert.equal("127.0.0.1", assert(srv.dns.resolve "localhost")[1])
    assert.equal("127.0.0.1", assert(srv.dns.resolve "some.name.localhost")[1])
  end)
end)

describe("srv.time, format, url, html", function()
  local T = 1717163100   -- 2024-05-31T13:45:00Z

  it("iso, http, rfc2822, date(t, format, [zone]), parse", function()
    assert.same({ "2024-05-31T13:45:00Z", "Fri, 31 May 2024 13:45:00 GMT", "Fri, 31 May 2024 13:45:00 +0000" },
      { srv.time.iso(T), srv.time.http(T), srv.time.rfc2822(T) })
    assert.equal("2024-05-31 13:45", srv.time.date(T, "%Y-%m-%d %H:%M"))
    assert.equal("15:45", srv.time.date(T, "%H:%M", "Europe/Berlin"))
    for _, text in ipairs { srv.time.iso(T), srv.time.http(T), srv.time.rfc2822(T), "2024-05-31T15:45:00+02:00" } do
      assert.equal(T, srv.time.parse(text), text)
    end
    local t, err = srv.time.parse "no date"
    assert.is_nil(t)
    assert.equal("invalid", err.code)
    assert.is_true(math.abs(srv.time.parse(srv.time.iso()) - srv.now()) < 5)
    misuse(function() srv.time.iso "x" end, function() srv.time.date(T) end, function() srv.time.date(T, "%!") end)
  end)

  it("bytes(n), duration(t), ago(t)", function()
    assert.same({ "1.5 KiB", "90s", "3 minutes ago" }, { srv.format.bytes(1536), srv.format.duration(90), srv.format.ago(srv.now() - 185) })
    misuse(function() srv.format.bytes "x" end, function() srv.format.duration() end, function() srv.format.ago "x" end)
  end)

  it("parse, build, encode, decode, query", function()
    local parts = assert(srv.url.parse "https://u@a.example:8443/p?q=1#f")
    assert.equal(srv.url.build(parts), "https://u@a.example:8443/p?q=1#f")
    assert.equal("a%20b%2F", srv.url.encode "a b/")
    assert.equal("a b/", srv.url.decode "a%20b%2F")
    assert.equal("a=1&b=x&b=y", srv.url.query { a = 1, b = { "x", "y" } })
    local none, err = srv.url.parse "http://a b/"
    assert.is_nil(none)
    assert.same({ "invalid", 400 }, { err.code, err.status })
    misuse(function() srv.url.encode {} end, function() srv.url.parse() end, function() srv.url.build "x" end)
  end)

  it("escape", function() assert.equal("&lt;a href=&quot;x&quot;&gt; &amp; &#39;", srv.html.escape [[<a href="x"> & ']]) end)
end)

describe("srv.metrics", function()
  it("counter(name, help, [labels]):add([n], [values]), gauge, histogram; all are shown", function()
    local hits = srv.metrics.counter("s13_hits_total", "hits of the spec", { "page" })
    hits:add(1, { page = "a" }):add(2, { "a" }):add(nil, { page = "b" })
    local depth = srv.metrics.gauge("s13_depth", "how deep")
    depth:set(5):add(-2):add()
    srv.metrics.histogram("s13_seconds", "how long"):observe(0.3)
    srv.metrics.counter("s13_plain_total", "without labels"):add()
    local app = srv.app()
    app:use(srv.metrics())
    local page = srv.test(app):get("/metrics", { ip = "127.0.0.1" }):expect(200).body
    for _, line in ipairs { 's13_hits_total{page="a"} 3', 's13_hits_total{page="b"} 1', "s13_depth 4", "s13_plain_total 1", "s13_seconds_count 1" } do
      assert.is_truthy(page:find(line, 1, true), line)
    end
    misuse(function() srv.metrics.counter() end, function() srv.metrics.counter("bad name", "help") end, function() srv.metrics.counter("s13_x", "h", "label") end,
      function() srv.metrics.gauge("s13_hits_total", "another kind") end, function() hits:add(-1, { page = "a" }) end, function() hits:add(1) end,
      function() hits:add(1, { pag = "a" }) end)
  end)
end)
