local utf8 = require "srv.base.utf8"

describe("utf8.length", function()
  it("counts characters, not bytes", function()
    assert.equal(0, utf8.length "")
    assert.equal(5, utf8.length "hello")
    assert.equal(4, utf8.length "caf\195\169")
    assert.equal(3, utf8.length "a\226\130\172\240\159\152\128")
  end)

  it("finds what is no UTF-8 at every place of a word of four bytes", function()
    for before = 0, 8 do
      for _, wrong in ipairs {
        "\0", "\128", "\191", "\192\128", "\193\191", "\224\159\191", "\237\160\128", "\240\143\191\191",
        "\244\144\128\128", "\245\128\128\128", "\255", "\195", "\226\130", "\240\159\152",
      } do
        local text = ("x"):rep(before) .. wrong
        assert.is_nil(utf8.length(text), ("%q"):format(text))
        if #wrong > 1 or wrong:byte() >= 128 then assert.is_nil(utf8.length(text .. "yz"), ("%q"):format(text)) end
      end
    end
  end)

  it("agrees with a table of all lead and second bytes", function()
    for lead = 0xC0, 0xFF do
      for second = 0x70, 0xCF do
        local three, four = string.char(lead, second, 0x80), string.char(lead, second, 0x80, 0x80)
        local tail = second >= 0x80 and second <= 0xBF
        local two_wide = lead >= 0xC2 and lead <= 0xDF and tail
        local three_wide = lead >= 0xE0 and lead <= 0xEF and tail
          and not (lead == 0xE0 and second < 0xA0) and not (lead == 0xED and second > 0x9F)
        local four_wide = lead >= 0xF0 and lead <= 0xF4 and tail
          and not (lead == 0xF0 and second < 0x90) and not (lead == 0xF4 and second > 0x8F)
        assert.equal(two_wide and 1 or nil, utf8.length(string.char(lead, second)))
        assert.equal(three_wide and 1 or nil, utf8.length(three))
        assert.equal(four_wide and 1 or nil, utf8.length(four))
      end
    end
  end)
end)

describe("utf8.head", function()
  it("cuts between characters", function()
    assert.equal("ab", utf8.head("ab\226\130\172", 4))
    assert.equal("ab\226\130\172", utf8.head("ab\226\130\172", 5))
    assert.equal("abc", utf8.head("abcdef", 3))
  end)
end)
