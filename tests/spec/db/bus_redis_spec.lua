-- needs: redis
local env = require "srv.core.env"

local getenv = env.getenv
env.getenv = function(name)
  if name == "REDIS_URL" then return getenv "TEST_REDIS_URL" end
  return getenv(name)
end

local bus = require "srv.db.bus"
local core = require "srv.core.redis"
local machines = require "srv.db.machines"
local srv = require "srv"

local OTHER = ("m"):rep(16) -- another process, as it signs what it sends

local function until_true(fn)
  for _ = 1, 2000 do
    if fn() then return true end
    srv.sleep(0.005)
  end
end

describe("srv.bus over Redis", function()
  setup(function() assert.is_true(until_true(function() return bus.stats().up end)) end)

  it("delivers what this process publishes once, and tells Redis of it", function()
    local sub = assert(bus.subscribe "room.*")
    local wire = machines.redis():psubscribe "srv:bus:*"
    assert.is_true(bus.publish("room.1", { text = "a\0b" }))
    assert.is_true(bus.publish("room.2", "last"))
    local v, topic = sub:receive "5s"
    assert.same({ text = "a\0b" }, v)
    assert.equal("room.1", topic)
    assert.equal("last", (sub:receive "5s"))
    local message, channel = wire:receive "5s"
    assert.equal("srv:bus:room.1", channel)
    assert.same({ text = "a\0b" }, core.decode(message:sub(17)))
    wire:receive "5s"
    assert.is_nil((sub:receive(0.1)))
    sub:close()
    wire:close()
  end)

  it("delivers what other processes publish", function()
    local sub = assert(bus.subscribe "room.*")
    local heard = bus.stats().heard
    machines.redis():publish("srv:bus:room.7", OTHER .. core.encode({ n = 1 }, "spec"))
    local v, topic = sub:receive "5s"
    assert.same({ n = 1 }, v)
    assert.equal("room.7", topic)
    assert.equal(heard + 1, bus.stats().heard)
    sub:close()
  end)

  it("leaves out what nobody has signed", function()
    local sub = assert(bus.subscribe "x")
    machines.redis():publish("srv:bus:x", "short")
    machines.redis():publish("srv:bus:", OTHER .. "no topic")
    machines.redis():publish("srv:bus:x", OTHER .. core.encode("signed", "spec"))
    assert.equal("signed", (sub:receive "5s"))
    sub:close()
  end)

  it("hears again after its connection was lost", function()
    local sub = assert(bus.subscribe "back")
    machines.redis():client("KILL", "TYPE", "pubsub")
    assert.is_true(until_true(function()
      machines.redis():publish("srv:bus:back", OTHER .. core.encode("again", "spec"))
      return sub:receive(0.01) == "again"
    end))
    sub:close()
  end)
end)
