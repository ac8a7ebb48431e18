local task = require "srv.async.task"

local spawn = task.spawn

-- What modules/waits.lua counts its loads in; specs themselves have globals of their own.
local loads_of_waits = { count = 0 }
rawset(_G, "loads_of_waits", loads_of_waits)

local function forget(name) package.loaded[name] = nil end

--- A module made of a function, found by package.preload.
local function preload(name, fn)
  package.preload[name] = fn
  forget(name)
end

local function why_of(fn, ...)
  local ok, why = pcall(fn, ...)
  assert.is_false(ok)
  return why
end

describe("require", function()
  it("loads once and gives the same value", function()
    local loads = 0
    preload("once", function(name) loads = loads + 1 return { name = name } end)
    local module = require "once"
    assert.equal("once", module.name)
    assert.equal(module, require "once")
    assert.equal(1, loads)
  end)

  it("finds a/b.lua and a/b/init.lua below the app's folder, and passes the name", function()
    assert.equal("async.modules.folder", require("async.modules.folder").name)
    assert.equal("folder/init.lua", require("async.modules.folder").from)
    assert.equal(42, require("async.modules.legacy").answer())
  end)

  it("gives true for a module that returns nothing, and what package.loaded says", function()
    preload("nothing", function() end)
    assert.is_true(require "nothing")
    preload("own", function(name) package.loaded[name] = "set inside" end)
    assert.equal("set inside", require "own")
  end)

  it("lets a module wait while it loads, and all who want it wait for the same load", function()
    forget "async.modules.waits"
    loads_of_waits.count = 0
    local a = spawn(require, "async.modules.waits")
    local b = spawn(require, "async.modules.waits")
    local module = require "async.modules.waits"
    assert.equal(module, a:wait())
    assert.equal(module, b:wait())
    assert.equal(1, loads_of_waits.count)
  end)

  it("goes on loading when the one who began is cancelled", function()
    forget "async.modules.waits"
    loads_of_waits.count = 0
    local first = spawn(require, "async.modules.waits")
    task.sleep "1ms"
    first:cancel()
    assert.equal("async.modules.waits", require("async.modules.waits").name)
    assert.equal(1, loads_of_waits.count)
  end)

  it("shows a circle", function()
    local why = why_of(require, "async.modules.circle_a")
    assert.matches("modules require each other in a circle: "
      .. "async.modules.circle_b -> async.modules.circle_a -> async.modules.circle_b", why, 1, true)
    assert.matches("^async/modules/circle_b.lua:2: ", why)
    why = why_of(function()
      preload("selfish", function() return require "selfish" end)
      require "selfish"
    end)
    assert.matches("selfish -> selfish", why, 1, true)
  end)

  it("shows a circle that two tasks close", function()
    forget "async.modules.circle_a"
    forget "async.modules.circle_b"
    local a, b = spawn(require, "async.modules.circle_a"), spawn(require, "async.modules.circle_b")
    local ok_a, why_a = pcall(a.wait, a)
    local ok_b, why_b = pcall(b.wait, b)
    assert.is_false(ok_a or ok_b)
    assert.matches("in a circle", why_a)
    assert.matches("in a circle", why_b)
  end)

  it("knows a circle through tasks that a module starts", function()
    preload("starts_tasks", function()
      return task.all(function() task.sleep(0) return require "starts_tasks" end)
    end)
    assert.matches("in a circle", why_of(require, "starts_tasks"))
  end)

  it("raises what the module raises, to all who wait, with its stack", function()
    local problem = { word = "own" }
    preload("raises", function() task.sleep(0) error(problem) end)
    local other = spawn(function() return pcall(require, "raises") end)
    assert.equal(problem, why_of(require, "raises"))
    local ok, e = other:wait()
    assert.is_false(ok)
    assert.equal(problem, e)
    local text
    xpcall(function() require "async.modules.broken_at_line_two" end, function(e2)
      text = e2 .. "\n" .. require "srv.core.task".traceback(e2)
    end)
    assert.matches("^async/modules/broken_at_line_two.lua:2: no settings", text)
    assert.matches("in function 'load_settings'", text)
    assert.matches("broken_at_line_two.lua:4:", text)
  end)

  it("keeps nothing of a load that failed, however often it is tried", function()
    preload("fails_alike", function() error "always the same" end)
    local function tries(count)
      for _ = 1, count do pcall(require, "fails_alike") end
      collectgarbage()
      return collectgarbage "count"
    end
    local function trace()
      local text
      xpcall(require, function(e) text = require "srv.core.task".traceback(e) end, "fails_alike")
      return #text
    end
    tries(5)
    local length, before = trace(), tries(5)
    assert.is_true(tries(15) < before + 64, "KiB of 15 failures")
    assert.equal(length, trace())
  end)

  it("tries again after an error", function()
    local attempts = 0
    preload("recovers", function()
      attempts = attempts + 1
      if attempts == 1 then error "not yet" end
      return "fine"
    end)
    assert.has_error(function() require "recovers" end)
    assert.equal("fine", require "recovers")
  end)

  it("lists where it looked for what is not there, and blames the caller", function()
    local why = why_of(function() require "no.such.module" end)
    assert.matches("^tests/spec/async/require_spec.lua:%d+: module 'no.such.module' not found:", why)
    assert.matches("no field package.preload['no.such.module']", why, 1, true)
    assert.matches("/tests/spec/no/such/module.lua'", why, 1, true)
    assert.matches("/tests/spec/lua_modules/no/such/module.lua'", why, 1, true)
    assert.matches("/lua/5.1/no/such/module.so'", why, 1, true)
  end)

  it("wants a name", function()
    assert.matches("bad argument #1 to 'require' %(string expected, got nil%)", why_of(function() require(nil) end))
    assert.matches("got table", why_of(function() require {} end))
  end)

  it("loads on the spot where nothing can wait, and says so if the module would", function()
    preload("quick", function() return "quick" end)
    assert.equal("quick", (("x"):gsub("x", function() return require "quick" end)))
    forget "async.modules.waits"
    loads_of_waits.count = 0
    local why = why_of(function() return (("x"):gsub("x", function() require "async.modules.waits" end)) end)
    assert.matches("sleep cannot wait in a callback of string.gsub", why)
    local slow = spawn(require, "async.modules.waits")
    task.sleep(0)
    task.sleep(0)
    why = why_of(function() return (("x"):gsub("x", function() require "async.modules.waits" end)) end)
    assert.matches("is being loaded by another task", why)
    slow:wait()
  end)

  it("asks loaders that were added", function()
    table.insert(package.loaders, function(name)
      if name == "made.up" then return function() return "by a loader" end end
      return "\n\tno made up module"
    end)
    assert.equal("by a loader", require "made.up")
    table.remove(package.loaders)
  end)

  it("loads C modules of the system in every VM", function()
    local lxp = require "lxp"
    local seen
    local parser = lxp.new { StartElement = function(_, name) seen = name end }
    assert(parser:parse "<news/>")
    parser:close()
    assert.equal("news", seen)
    assert.equal("function", type(require("term.core").isatty))
  end)

  it("finds the modules of the server itself", function()
    assert.equal("function", type(require("srv.async.task").sleep))
    assert.equal(require "srv.async.task", package.loaded["srv.async.task"])
  end)
end)
