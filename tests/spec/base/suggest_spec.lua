local suggest = require "srv.base.suggest"

describe("suggest", function()
  it("finds a word that was misspelt by one letter more, less, other or swapped", function()
    local known = { "timeout", "slash", "body_limit" }
    assert.equal("timeout", suggest.nearest("time_out", known))
    assert.equal("timeout", suggest.nearest("timeot", known))
    assert.equal("slash", suggest.nearest("slach", known))
    assert.equal("slash", suggest.nearest("slahs", known))
  end)

  it("finds nothing where nothing is near", function()
    assert.is_nil(suggest.nearest("prefix", { "timeout", "slash" }))
  end)

  it("takes the first in byte order of two that are equally near", function()
    assert.equal("bat", suggest.nearest("cat", { "hat", "bat", "rat" }))
  end)

  it("does not look at words that nobody mistyped", function()
    local long = ("x"):rep(100000)
    assert.is_nil(suggest.nearest(long, { long .. "y" }))
  end)

  it("gives a hint that a message can end with", function()
    assert.equal(', did you mean "slash"?', suggest.hint("slahs", { "slash" }))
    assert.equal("", suggest.hint("other", { "slash" }))
  end)
end)
