local html = require "srv".html

describe("html.escape", function()
  it("masks what ends text or an attribute in quotes, and nothing else", function()
    assert.equal("&lt;a b=&quot;&#39;&amp;amp;&quot;&gt;", html.escape [[<a b="'&amp;">]])
    for code = 0, 255 do
      local char = string.char(code)
      local escaped = html.escape(char)
      assert.equal(char:find "[<>&\"']" ~= nil, escaped ~= char)
      assert.is_nil(escaped:find "[<>\"']")
    end
    assert.equal("7.5", html.escape(7.5))
    assert.equal("", html.escape "")
  end)

  it("blames misuse on its caller", function()
    local ok, message = pcall(function() html.escape(nil) end)
    assert.is_false(ok)
    assert.matches("html_spec.lua:%d+: srv.html.escape: expected a string, not a nil$", message)
  end)
end)
