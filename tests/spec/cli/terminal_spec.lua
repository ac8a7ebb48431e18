local terminal = require "srv.cli.terminal"

describe("a line that is cut to the width of a terminal", function()
  it("counts characters, not bytes, and no escape sequences", function()
    assert.equal("abc", terminal.cut("abc", 10))
    assert.equal("▁▂▃\27[0m", terminal.cut("▁▂▃▄▅", 4))
    assert.equal("\27[31mab\27[0m", terminal.cut("\27[31mabcdef", 3))
    assert.equal("\27[31mab\27[0m", terminal.cut("\27[31mab\27[0m", 3))
  end)

  it("takes bytes that are no UTF-8 one by one", function()
    assert.equal("a\255\27[0m", terminal.cut("a\255\254b", 3))
  end)
end)

describe("output that is no terminal", function()
  it("gets no colours and nothing that is drawn", function()
    if terminal.err.is_one then return end
    assert.equal("text", terminal.err:paint("red", "text"))
    terminal.err:draw { "never seen" }
    assert.equal(0, terminal.err.drawn or 0)
  end)
end)
