local inspect = require "srv.base.inspect"
local text = inspect.text

describe("inspect", function()
  it("shows plain values as Lua writes them", function()
    assert.equal("1.5", text(1.5))
    assert.equal("nil", text(nil))
    assert.equal("true", text(true))
    assert.equal([["a\"b\\c\n\000\127"]], text 'a"b\\c\n\0\127')
  end)

  it("shows arrays, then keys in order, those that are no names in brackets", function()
    assert.equal('{ 1, 2, [7] = 3, ["a b"] = 4, b = 6, ["end"] = 5, [false] = 7 }',
      text { 1, 2, [7] = 3, b = 6, ["a b"] = 4, ["end"] = 5, [false] = 7 })
    assert.equal("{}", text {})
  end)

  it("takes a line for each entry where one line is too narrow", function()
    assert.equal(('{\n  a = "%s",\n  b = {\n    c = "%s"\n  }\n}'):format(("x"):rep(60), ("y"):rep(90)),
      text { a = ("x"):rep(60), b = { c = ("y"):rep(90) } })
  end)

  it("ends at a depth, and at a table that is in itself", function()
    assert.equal("{ { { { {...} } } } }", text { { { { { 1 } } } } })
    local around = { 1 }
    around.self = around
    assert.equal("{ 1, self = (itself) }", text(around))
    local twice = { 1 }
    assert.equal("{ { 1 }, { 1 } }", text { twice, twice })
  end)

  it("shows what an object says of itself, and survives one that raises", function()
    assert.equal("a thing", text(setmetatable({}, { __tostring = function() return "a thing" end })))
    assert.equal("{ 1 }", text(setmetatable({ 1 }, { __tostring = function() error "no" end })))
    assert.equal("Thing { 1 }", text(setmetatable({ 1 }, { __name = "Thing" })))
    assert.equal("{ 1 }", text(setmetatable({ 1 }, { __index = error, __pairs = error, __len = error })))
  end)

  it("tells where a function begins", function()
    assert.matches("^function: .*inspect_spec%.lua:%d+$", text(function() end))
    assert.matches("^function: builtin", text(string.rep))
  end)

  it("is bounded, whatever it is given", function()
    local many = {}
    for i = 1, 1000 do many[i] = { i, ("x"):rep(5000) } end
    local shown = text { many, many, many, many }
    assert.is_true(#shown < 200000, #shown .. " bytes")
    assert.is_truthy(text(many):find("... (900 more)", 1, true))
    assert.is_truthy(text(("x"):rep(3000)):find("... (3000 bytes)", 1, true))
    assert.is_true(#text(_G) < 200000)
  end)
end)
