local certificate = require "srv.core.certificate"
local errors = require "srv.base.errors"
local fs = require "srv.async.fs"
local sync = require "srv.async.sync"
local task = require "srv.async.task"
local tcp = require "srv.async.tcp"
local unix = require "srv.async.unix"

local ca, ca_key = certificate.authority("spec authority", 2)

--- A certificate and its key for NAMES.
local function identity(...)
  local names = { ... }
  return certificate.server(names[1], 2, names, ca, ca_key)
end

local cert, key = identity("localhost", "127.0.0.1")

local function port_of(listener) return tonumber(listener.address:match ":(%d+)$") end

local function echo(sock)
  for chunk in sock do sock:write(chunk) end
end

local function listen(fn, settings, opts)
  opts = opts or {}
  opts.tls = settings or { cert = cert, key = key }
  return assert(tcp.listen("127.0.0.1:0", fn, opts))
end

--- A socket by TLS to LISTENER, or nil and the error.
local function connect(listener, settings, opts)
  opts = opts or {}
  opts.tls = settings or { ca = ca }
  return tcp.connect("localhost", port_of(listener), opts)
end

local function refused(code, value, err)
  assert.is_nil(value)
  assert.is_true(errors.is(err))
  assert.equal(code, err.code)
  return err.message
end

describe("srv.tcp by TLS", function()
  it("carries bytes both ways, and tells of the end", function()
    local listener = listen(echo)
    local sock = assert(connect(listener))
    local text = ("0123456789"):rep(50000)
    task.spawn(function()
      sock:write(text)
      sock:shutdown()
    end)
    assert.equal(text, sock:all())
    local piece, err = sock:read()
    assert.is_nil(piece)
    assert.is_nil(err)
    sock:close()
    listener:close()
  end)

  it("says whose end was not said by TLS: anybody could have sent it", function()
    local heard = sync.channel(1)
    local listener = listen(function(sock)
      heard:send(sock:read_exactly(6))
      local _, err = sock:read()
      heard:send(err)
    end)
    local client = task.spawn(function()
      local sock = assert(connect(listener))
      sock:write "half a"
      sock:read()
    end)
    assert.equal("half a", heard:receive())
    client:cancel() -- which closes the socket amid its wait
    assert.matches("something may be missing", refused("closed", nil, (heard:receive())))
    listener:close()
  end)

  it("ends orderly where a handler returns, and where a socket is closed", function()
    local heard = sync.channel(1)
    local listener = listen(function(sock)
      heard:send(sock:all())
      sock:write "all of it"
    end)
    local sock = assert(connect(listener))
    sock:write "whole"
    sock:shutdown()
    assert.equal("all of it", sock:all())
    assert.equal("whole", heard:receive())
    local other = assert(connect(listener))
    other:write "whole, too"
    other:close()
    assert.equal("whole, too", heard:receive())
    listener:close()
  end)

  it("tells both ends what was agreed on", function()
    local seen = sync.channel(1)
    local listener = listen(function(sock) seen:send(sock.tls) end, { cert = cert, key = key, alpn = { "two", "one" } })
    local sock = assert(connect(listener, { ca = ca, alpn = { "one", "two" } }))
    local theirs = seen:receive()
    assert.matches("^TLSv1%.[23]$", sock.tls.version)
    assert.equal(theirs.cipher, sock.tls.cipher)
    assert.equal("two", sock.tls.alpn)
    assert.equal("two", theirs.alpn)
    assert.equal("localhost", theirs.sni)
    assert.is_nil(sock.tls.sni)
    assert.matches("CN=localhost", sock.tls.peer.subject)
    assert.equal(64, #sock.tls.peer.fingerprint)
    assert.is_nil(theirs.peer)
    assert.is_false(sock.tls.resumed)
    sock:close()
    listener:close()
  end)

  it("says nothing of TLS on a plain socket", function()
    local listener = assert(tcp.listen("127.0.0.1:0", function(sock) sock:write(tostring(sock.tls)) end))
    local sock = assert(tcp.connect("localhost", port_of(listener)))
    assert.is_nil(sock.tls)
    assert.equal("nil", sock:all())
    listener:close()
  end)

  it("trusts nobody by chance", function()
    local listener = listen(echo)
    assert.matches("not signed by a known authority", refused("tls", connect(listener, {})))
    assert.matches("of other.example is for localhost", refused("tls", connect(listener, { ca = ca, server_name = "other.example" })))
    local anybody = assert(connect(listener, { verify = false }))
    anybody:close()
    listener:close()
  end)

  it("accepts the key that is pinned and no other", function()
    local listener = listen(echo)
    local other = "sha256/" .. ("A"):rep(43) .. "="
    refused("tls", connect(listener, { ca = ca, pin = other }))
    listener:close()
  end)

  it("works on a Unix socket, for a name that is given", function()
    local path = "@srv-spec-tls-" .. tostring(math.random(1e9))
    local listener = assert(unix.listen(path, echo, { tls = { cert = cert, key = key } }))
    local sock = assert(unix.connect(path, { tls = { ca = ca, server_name = "localhost" } }))
    assert(sock:write "hello")
    assert.equal("hello", sock:read_exactly(5))
    assert.has_error(function() unix.connect(path, { tls = true }) end)
    sock:close()
    listener:close()
  end)

  it("serves no client that shows nothing, where one must", function()
    local served = 0
    local listener = listen(function(sock)
      served = served + 1
      sock:write(sock.tls.peer and sock.tls.peer.subject or "nobody")
    end, { cert = cert, key = key, client_ca = ca, client_cert = "required" })
    local sock, err = connect(listener)
    if sock then -- TLS 1.3: the server looks after the client is done
      local said
      said, err = sock:all()
      assert.is_nil(said)
    end
    assert.is_true(errors.is(err))
    assert.equal(0, served)
    listener:close()
  end)

  it("leaves a client that speaks no TLS, and serves the next", function()
    local listener = listen(echo)
    local plain = assert(tcp.connect("localhost", port_of(listener), { timeout = "10s" }))
    plain:write "GET / HTTP/1.1\r\n\r\n"
    repeat until not plain:read()
    local sock = assert(connect(listener))
    sock:write "x"
    assert.equal("x", sock:read_exactly(1))
    sock:close()
    plain:close()
    listener:close()
  end)

  it("says within connect_timeout that nobody shakes hands", function()
    local listener = assert(tcp.listen("127.0.0.1:0", function(sock) sock:all() end))
    assert.matches("handshake", refused("timeout", connect(listener, nil, { connect_timeout = "100ms" })))
    listener:close()
  end)

  it("says in plain words that the other end speaks no TLS", function()
    local listener = assert(tcp.listen("127.0.0.1:0", function(sock)
      sock:read()
      sock:write "220 mail.example ESMTP\r\n"
      sock:read()
    end))
    assert.matches("TLS", refused("tls", connect(listener)))
    listener:close()
  end)

  it("goes on with a certificate that was replaced, and keeps the old one while the new is no good", function()
    local file = assert(fs.temp { suffix = ".pem" })
    local path = file.path
    local function show(text) assert(fs.write(path, text)) end
    show(cert .. key)
    local listener = listen(echo, { cert = path })
    local function shown()
      local sock = assert(connect(listener, { ca = ca, server_name = "localhost" }))
      local fingerprint = sock.tls.peer.fingerprint
      sock:close()
      return fingerprint
    end
    local first = shown()
    assert.equal(first, shown())
    local fresh_cert, fresh_key = identity "localhost"
    show(fresh_cert .. fresh_key)
    local second = shown()
    assert.not_equal(first, second)
    show "nothing"
    assert.equal(second, shown())
    listener:close()
    file:close()
  end)

  it("does not listen with a certificate that cannot be read", function()
    local listener, err = tcp.listen("127.0.0.1:0", echo, { tls = { cert = "/nowhere/cert.pem" } })
    assert.matches("/nowhere/cert%.pem", refused("tls", listener, err))
    refused("tls", tcp.listen("127.0.0.1:0", echo, { tls = { cert = cert } })) -- its key is missing
  end)

  it("refuses settings that make no sense", function()
    local function misuse(pattern, fn, ...)
      local ok, err = pcall(fn, ...)
      assert.is_false(ok)
      assert.matches(pattern, tostring(err))
    end
    local function listen_with(settings) return tcp.listen("127.0.0.1:0", echo, { tls = settings }) end
    misuse('a "cert" is missing', listen_with, {})
    misuse('"client_cert" must be "none" or "optional" or "required"', listen_with, { cert = cert, key = key, client_cert = "yes" })
    misuse('needs a "client_ca"', listen_with, { cert = cert, key = key, client_cert = "required" })
    misuse('needs client_cert', listen_with, { cert = cert, key = key, client_ca = ca })
    misuse('"alpn" must be', listen_with, { cert = cert, key = key, alpn = { "" } })
    misuse('unknown option "verify"', listen_with, { cert = cert, key = key, verify = true })
    misuse('unknown option "client_ca"', tcp.connect, "localhost", 1, { tls = { client_ca = ca } })
  end)
end)
