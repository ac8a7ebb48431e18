local errors = require "srv.base.errors"
local reader = require "srv.base.reader"

--- A reader of these pieces; an error object among them is given as one.
local function of(...)
  local pieces, closed = { ... }, 0
  return reader.new(function()
    local piece = table.remove(pieces, 1)
    if errors.is(piece) then return nil, piece end
    return piece
  end, function() closed = closed + 1 end), function() return closed end
end

describe("reader", function()
  it("gives what comes, at most as much as was asked for", function()
    local r = of("hello", "world")
    assert.same({ "hel", "lo", "world" }, { r:read(3), r:read(3), r:read() })
    assert.is_nil(r:read())
  end)

  it("finds lines across pieces, with either end", function()
    local r = of("one\r", "\ntw", "o\n\nlast")
    assert.same({ "one", "two", "", "last" }, { r:line(), r:line(), r:line(), r:line() })
    assert.is_nil(r:line())
  end)

  it("gives the rest, within a limit", function()
    assert.equal("abc", of("a", "bc"):all())
    assert.equal("", of():all())
    local r, closed = of("abcdef", "more")
    local text, err = r:all { limit = 5 }
    assert.is_nil(text)
    assert.equal("too_large", err.code)
    assert.equal(1, closed())
  end)

  it("is a loop, which raises what read returns", function()
    local pieces = {}
    for piece in of("a", "b") do pieces[#pieces + 1] = piece end
    assert.same({ "a", "b" }, pieces)
    local broken = of("a", errors.coded("closed", "gone"))
    assert.has_error(function() for _ in broken do end end)
    local again = of(errors.coded("closed", "gone"))
    local _, err = again:read()
    assert.equal("closed", err.code)
    assert.is_nil(again:read())
  end)

  it("closes once", function()
    local r, closed = of("a")
    r:close()
    r:close()
    assert.is_nil(r:read())
    assert.equal(1, closed())
  end)
end)
