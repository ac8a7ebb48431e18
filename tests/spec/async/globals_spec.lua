-- luacheck: globals misspelt no_such_name declared_here value_in_env null
local env = require "srv.core.env"
local globals = require "srv.async.globals"
local log = require "srv.core.log"

--- busted gives each spec globals of its own; this has the app's.
local function in_app(fn) return setfenv(fn, _G) end

describe("an undeclared global", function()
  it("cannot be assigned by the app: the error has file and line", function()
    local ok, why = pcall(in_app(function()
      misspelt = 1
    end))
    assert.is_false(ok)
    assert.matches('^tests/spec/async/globals_spec.lua:%d+: assignment to the undeclared global "misspelt"', why)
    assert.is_nil(rawget(_G, "misspelt"))
    ok, why = pcall(require, "async.modules.sets_global")
    assert.is_false(ok)
    assert.matches('^async/modules/sets_global.lua:2: assignment to the undeclared global', why)
  end)

  it("reads as nil", function() assert.is_nil(in_app(function() return no_such_name end)()) end)

  it("is told of in --dev, once for a place, if it is another language's word for nothing", function()
    local lines, real = {}, env.dev
    env.dev = true
    globals.guard()
    log.tap(function(_, message, fields) lines[#lines + 1] = message .. " " .. fields.where end)
    local read = in_app(function() return { tag = null, other = no_such_name } end)
    assert.same({}, read())
    read()
    log.tap(nil)
    env.dev = real
    globals.guard()
    read()
    assert.equal(1, #lines)
    assert.matches("JSON's null is srv.null tests/spec/async/globals_spec.lua:%d+$", lines[1])
  end)

  it("can be declared, and assigned from then on", function()
    globals.declare("declared_here", 1)
    in_app(function() declared_here = declared_here + 1 end)()
    assert.equal(2, rawget(_G, "declared_here"))
    globals.declare("declared_here", nil)
    assert.has_error(function() globals.declare(1, 2) end)
  end)

  it("may be set by code that is not the app's", function()
    local chunk = assert(load("set_by_a_library = 1", "@/usr/share/lua/5.1/library.lua"))
    chunk()
    assert.equal(1, rawget(_G, "set_by_a_library"))
    rawset(_G, "set_by_a_library", nil)
  end)
end)

describe("functions that would act on the whole process", function()
  it("are refused or harmless", function()
    assert.equal("C", os.setlocale())
    assert.is_nil(os.setlocale "de_DE.UTF-8")
    local ok, why = pcall(function() setfenv(0, {}) end)
    assert.is_false(ok)
    assert.matches("^tests/spec/async/globals_spec.lua:%d+: setfenv%(0, ...%) would change", why)
  end)

  it("setfenv still works for functions and levels", function()
    local function read() return value_in_env end
    setfenv(read, { value_in_env = "set" })
    assert.equal("set", read())
    local function own() setfenv(1, { value_in_env = "level" }) return value_in_env end
    assert.equal("level", own())
  end)

  it("dofile may wait", function()
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write("require('srv.async.task').sleep(0) return 'done'")
    file:close()
    assert.equal("done", dofile(path))
    os.remove(path)
    assert.has_error(function() dofile(path) end)
  end)
end)
