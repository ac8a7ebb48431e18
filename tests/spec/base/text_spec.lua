local text = require "srv.base.text"

describe("text", function()
  it("escapes for HTML, percent-encodes, decodes once", function()
    assert.equal("&lt;a href=&quot;x&quot;&gt;&#39;&amp;", text.escape_html([[<a href="x">'&]]))
    assert.equal("a%20b%2F%C3%A9-._~", text.percent_encode "a b/é-._~")
    assert.equal("a%2Fb", text.percent_decode "a%252Fb")
    assert.equal("%ZZ%", text.percent_decode "%ZZ%")
  end)

  it("encodes what a URL cannot hold, and no escape twice", function()
    assert.equal("/a%20b?x=%22%3C#y", text.encode_url '/a b?x="<#y')
    assert.equal("/a%20b%25zz%25", text.encode_url "/a%20b%zz%")
    assert.equal("/x%0D%0AInjected:%201", text.encode_url "/x\r\nInjected: 1")
  end)

  it("trims in linear time", function()
    assert.equal("a  b", text.trim " \t a  b \r\n")
    assert.equal("", text.trim(""))
    assert.equal("", text.trim((" "):rep(1000000)))
    local long = "x" .. (" "):rep(1000000) .. "y"
    assert.equal(long, text.trim(" " .. long .. " "))
  end)

  it("makes words of phrases", function()
    assert.equal("i_m_a_teapot", text.snake_case "I'm a Teapot")
    assert.equal("not_found", text.snake_case "Not Found")
  end)
end)
