local cookie = require "srv.web.cookie"

describe("cookie", function()
  it("writes its attributes in their order", function()
    assert.equal("a=1; Path=/; HttpOnly; SameSite=Lax", cookie.write("a", "1", nil, false))
    assert.equal("a=1; Path=/; HttpOnly; Secure; SameSite=Lax", cookie.write("a", 1, nil, true))
    assert.equal("b=j%3A%7B%22x%22%3A1%7D; Path=/", cookie.write("b", { x = 1 }, { http_only = false, same_site = false }, false))
    assert.equal("c=; Domain=example.com; Path=/x; Secure; Partitioned; SameSite=None",
      cookie.write("c", "", { domain = "example.com", path = "/x", http_only = false, secure = true, partitioned = true, same_site = "none" }, false))
    assert.matches("^d=x; Max%-Age=3600; Path=/; Expires=%a%a%a, %d%d %a%a%a %d%d%d%d %d%d:%d%d:%d%d GMT; HttpOnly; SameSite=Strict$",
      cookie.write("d", "x", { max_age = "1h", same_site = "strict" }, false))
  end)

  it("refuses what would not be one cookie", function()
    assert.error_matches(function() cookie.write("a b", "x", nil, false) end, "no name for a cookie")
    assert.error_matches(function() cookie.write("a", "x", { path = "/;x" }, false) end, "path has bytes")
    assert.error_matches(function() cookie.write("a", "x", { domain = "a\nb" }, false) end, "domain has bytes")
    assert.error_matches(function() cookie.write("a", "x", { same_site = "maybe" }, false) end, "same_site must be")
    assert.error_matches(function() cookie.write("a", "x", { max_ago = 1 }, false) end, 'did you mean "max_age"?')
  end)

  it("is read as it was sent: the first of a name, unquoted, decoded once", function()
    assert.same({ a = "1", b = "x y", c = "", d = "e=f", ["%zz"] = "%zz" },
      cookie.parse_all 'a=1; b="x%20y" ;c=;d = e=f; a=2; alone; =nothing;; %zz=%zz')
  end)

  it("is read in linear time", function()
    local long = "x" .. (" "):rep(1000000) .. "y"
    assert.equal(long, cookie.parse_all("a = " .. long .. " ; b=1").a)
  end)

  it("is good under its own name only when it is signed", function()
    local sent = cookie.parse_all((cookie.write("user", "ada", { signed = true }, false):match "^[^;]+"))
    assert.equal("ada", cookie.read(sent, "user", { signed = true }))
    assert.is_false(cookie.read({ other = sent.user }, "other", { signed = true }))
    assert.is_false(cookie.read({ user = sent.user .. "x" }, "user", { signed = true }))
    assert.is_false(cookie.read({ user = "ada" }, "user", { signed = true }))
    assert.is_nil(cookie.read({}, "user", { signed = true }))
    assert.is_nil(cookie.parse((cookie.write("user", "ada", { signed = true }, false):match "^[^;]+")).user)
  end)
end)
