local dns = require "srv.async.dns"
local errors = require "srv.base.errors"
local task = require "srv.async.task"
local udp = require "srv.async.udp"

local function refused(code, value, err)
  assert.is_nil(value)
  assert.is_true(errors.is(err))
  assert.equal(code, err.code)
end

describe("srv.udp", function()
  it("carries datagrams whole, and says from whom", function()
    local server = assert(udp.bind "127.0.0.1:0")
    local ip, port = server:address()
    local client = assert(udp.connect(ip, port))
    assert.is_true(client:send "one")
    assert.is_true(client:send "")
    assert.is_true(client:send "three")
    local bytes, from, from_port = server:receive()
    assert.equal("one", bytes)
    assert.same({ client:address() }, { from, from_port })
    assert.equal("", (server:receive()))
    assert.equal("three", (server:receive()))
    assert.is_true(server:send("back", from, from_port))
    assert.equal("back", (client:receive()))
    client:close()
    server:close()
  end)

  it("lets others have their turn, however many datagrams wait", function()
    local server = assert(udp.bind "127.0.0.1:0")
    local client = assert(udp.connect(server:address()))
    local others = false
    for i = 1, 100 do client:send(tostring(i)) end
    task.spawn(function() others = true end)
    for i = 1, 100 do assert.equal(tostring(i), (server:receive())) end
    assert.is_true(others)
    client:close()
    server:close()
  end)

  it("waits for one, but not longer than it may", function()
    local server = assert(udp.bind("127.0.0.1:0", { timeout = 0.02 }))
    refused("timeout", server:receive())
    local _, port = server:address()
    task.spawn(function() assert(udp.connect("localhost", port)):send "late" end)
    assert.equal("late", (server:receive()))
    server:close()
  end)

  it("notices that nobody is at the other end", function()
    local gone = assert(udp.bind "127.0.0.1:0")
    local _, port = gone:address()
    gone:close()
    local client = assert(udp.connect("127.0.0.1", port, { timeout = 5 }))
    client:send "x"
    refused("refused", client:receive())
    client:close()
  end)

  it("gives who waits `closed`", function()
    local server = assert(udp.bind "127.0.0.1:0")
    local waiting = task.spawn(function() return server:receive() end)
    task.sleep(0)
    server:close()
    refused("closed", waiting:wait())
    refused("closed", server:send("x", "127.0.0.1", 9))
  end)

  it("refuses what no datagram takes, and addresses that are taken", function()
    local server = assert(udp.bind "127.0.0.1:0")
    local ip, port = server:address()
    refused("too_large", server:send(("x"):rep(70000), ip, port))
    refused("unavailable", udp.bind("127.0.0.1:" .. port))
    assert.has_error(function() server:send "x" end)
    server:close()
  end)
end)

describe("srv.dns", function()
  it("needs no server for addresses and localhost", function()
    assert.same({ "192.0.2.7" }, dns.resolve "192.0.2.7")
    assert.same({ "::1" }, dns.resolve "[::1]")
    local found = assert(dns.resolve "localhost")
    assert.is_true(found[1] == "127.0.0.1" or found[1] == "::1")
  end)

  it("gives what is no name as an error", function()
    refused("dns", dns.resolve "no name")
    refused("dns", dns.resolve "")
    refused("dns", dns.resolve "1.2.3")
  end)
end)
