local env = require "srv.core.env"
local log = require "srv.core.log"
local srv = require "srv"
local unseen = require "srv.base.unseen"

describe("with --dev, an error that nobody looks at", function()
  local thing, told, was_dev

  before_each(function()
    was_dev, told = env.dev, {}
    env.dev = true
    thing = {
      save = function(_, fault) if fault then return nil, srv.error.new(500, fault, { code = fault }) end return true end,
      peek = function() return 1 end,
    }
    unseen.watch(thing, { "save" })
    log.tap(function(level, message, fields) told[#told + 1] = { level, message, fields } end)
  end)
  after_each(function()
    env.dev = was_dev
    log.tap(nil)
  end)

  it("is told of with its place", function()
    thing:save("full")
    local here = debug.getinfo(1, "l").currentline - 1
    assert.equal(1, #told)
    assert.equal("warn", told[1][1])
    assert.matches("unseen_spec.lua:" .. here .. "$", told[1][3].at)
    assert.equal("full", told[1][3].err.code)
  end)

  it("is told of where a function has passed it on to nobody, and beside other calls", function()
    local function save(...) return thing:save(...) end
    local helper = { save = save }
    helper.save("full")
    assert.equal(1, #told)
    thing:save(tostring(thing.peek()) and "full")
    thing:save((function(...) return ... end)("full"))
    assert.equal(3, #told)
  end)

  it("is nothing to tell of where it was taken, asserted, returned or is the end of a connection", function()
    local function returned() return thing:save "full" end
    local _, err = thing:save "full"
    if not thing:save "full" then err = nil end
    pcall(function() assert(thing:save "full") end)
    local list = { thing:save "full", thing:save "full" }
    assert.is_nil(returned() or err or list[1])
    thing:save "closed"
    thing:save(nil)
    thing.peek()
    assert.equal(0, #told)
  end)
end)
