local bytecode = require "srv.cli.check_bytecode"

--- "read print 1 0": kind, name, line, depth of each use.
local function uses_of(code)
  local list = {}
  for _, use in ipairs(bytecode.read(assert(loadstring(code))).uses) do
    list[#list + 1] = ("%s %s %d %d%s"):format(use.kind, use.name, use.line, use.depth, use.kept and " kept" or "")
  end
  return list
end

describe("what bytecode says", function()
  it("has reads and assignments of globals, with line and depth", function()
    assert.same({ "read a 1 0", "set b 2 0", "read c 3 1" }, uses_of "local x = a\nb = 1\nreturn function() return c end, x")
  end)

  it("has no locals, parameters and upvalues", function()
    assert.same({}, uses_of "local a = 1 return function(b, ...) a = b return function() return a, b end end")
  end)

  it("has fields of globals as paths, and whether they are called at once", function()
    assert.same({ "read io 1 0", "field io.open 1 0" }, uses_of "io.open('a')")
    assert.same({ "read io 1 0", "field io.open 1 0" }, uses_of "return io.open('a')")
    assert.same({ "read io 1 0", "field io.open 1 0 kept" }, uses_of "local open = io.open return open")
    assert.same({ "read a 1 0", "field a.b 1 0 kept", "field a.b.c 1 0" }, uses_of "a.b.c(...)")
  end)

  it("follows a global into a local of its name", function()
    assert.same({ "read io 1 0", "field io.read 2 1" }, uses_of "local io = io\nreturn function() io.read() end")
  end)

  it("does not take another value in a register for what was there", function()
    local found = uses_of "do local x = io end do local y = f() return y.open end"
    assert.same({ "read io 1 0", "read f 1 0" }, found)
  end)

  it("has modules that are required, in every way of calling", function()
    for _, code in ipairs { 'require "a.b"', 'return require "a.b"', 'local x = require("a.b") return x', 'f(require "a.b")' } do
      local found = false
      for _, use in ipairs(uses_of(code)) do found = found or use == "require a.b 1 0" end
      assert.is_true(found, code)
    end
  end)

  it("knows srv under the name that it is required by", function()
    local found = uses_of 'local srv = require "srv"\nlocal app = srv.app()\nreturn function() return srv.slep, app end'
    assert.same({ "read require 1 0", "require srv 1 0", "field srv.app 2 0", "field srv.slep 3 1 kept" }, found)
  end)

  it("has all texts, those of constant tables too", function()
    local strings = bytecode.read(assert(loadstring [[local t = { "in a table", k = "v" } return function() return "inner" end, t]])).strings
    for _, text in ipairs { "in a table", "v", "inner" } do assert.is_true(strings[text], text) end
  end)

  it("reads a chunk of any size", function()
    local parts = {}
    for i = 1, 3000 do parts[i] = ("f%d = g%d.h('%d')"):format(i, i, i) end
    assert.equal(9000, #uses_of(table.concat(parts, "\n")))
  end)
end)
