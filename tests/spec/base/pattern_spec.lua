local pattern = require "srv.base.pattern"

describe("pattern.whole", function()
  it("anchors a pattern once", function()
    assert.equal("^%d+$", (pattern.whole "%d+"))
    assert.equal("^%d+$", (pattern.whole "^%d+$"))
    assert.equal("^a%$$", (pattern.whole "a%$"))
    assert.equal("^a%%$", (pattern.whole "a%%$"))
  end)

  it("refuses what is malformed, wherever it stands", function()
    for _, wrong in ipairs { "x[a", "x%", "(a", "a)", "%1", "(a%1)", "%bx", "%fa", "[a%]", "[^]", "a\0b", "[\0]" } do
      local whole, message = pattern.whole(wrong)
      assert.is_nil(whole, wrong)
      assert.matches("malformed pattern", message, 1, true)
    end
  end)

  it("accepts what string.find accepts", function()
    for _, right in ipairs { "", "[]a]", "[^]a]", "[a-]", "%bxy", "%f[%w]a", "(%a)%1", "()a", "a-", "[%a-z]", "%z", "-" } do
      local whole = assert(pattern.whole(right))
      assert.has_no.errors(function() string.find("xyz", whole) end)
    end
  end)

  local EQUALS = {
    { "%d%d-%d", "^[0-9][0-9]*?[0-9]$" },
    { "[%w_-]+", "^[A-Za-z0-9_\\-]+$" },
    { "%S+", "^[^ \\t\\n\\v\\f\\r]+$" },
    { "a.b", "^a[\\s\\S]b$" },
    { "(%a)%1", "^([A-Za-z])\\1$" },
    { "#%x%x/", "^#[A-Fa-f0-9][A-Fa-f0-9]\\/$" },
    { "[^a-c]*", "^[^a-c]*$" },
  }
  for _, case in ipairs(EQUALS) do
    it("writes " .. case[1] .. " as a regular expression", function()
      local _, regex = pattern.whole(case[1])
      assert.equal(case[2], regex)
    end)
  end

  it("has no regular expression for what those lack", function()
    for _, without in ipairs { "%bxy", "%f[%w]a", "()a", "[%D]", "\195\169+" } do
      local whole, regex = pattern.whole(without)
      assert.is_string(whole)
      assert.is_nil(regex)
    end
  end)

  local DEGREES = {
    ["%d+%.%d+%.%d+"] = 1, ["[^/]+/[^/]+"] = 1, ["%w+@%w+%.%w+"] = 1, ["#%x%x"] = 0, [".-"] = 0, [".-x"] = 1,
    [".-.-x"] = 2, [".*foo.*bar"] = 2, ["[^@]+@[^@]+%.%w+"] = 2, ["%w+%s*%w+%s*%w+"] = 3, ["%a?%a?b"] = 0,
    ["(.-),(.-),(.-);"] = 3, ["a*b*a*c"] = 2, ["x-$y"] = 1, ["[$]-$y"] = 1, ["%bxy"] = 1, ["(%a+)%1"] = 2,
  }
  for text, degree in pairs(DEGREES) do
    it("tells how " .. text .. " grows with the text", function() assert.equal(degree, pattern.cost(text).degree) end)
  end

  it("takes no longer than it tells", function()
    local started = os.clock()
    for text, worst in pairs {
      [".-.-x"] = "a", [".-.-.-x"] = "a", [".*.*.*.*x"] = "a", ["%w+%s*%w+%s*%w+"] = "a", ["a-a-a-a-a-a-b"] = "a",
      ["[^@]+@[^@]+%.%w+"] = "@.", [".-@.-@.-x"] = "@", ["(.-)%1%1x"] = "a", [".-%b()x"] = "(",
    } do
      local bytes = math.min(pattern.longest(pattern.cost(text)), 1e5)
      string.find(worst:rep(bytes / #worst), (assert(pattern.whole(text))))
    end
    assert.is_true(os.clock() - started < 20) -- some 0.3 s; without the bound, days
  end)
end)
