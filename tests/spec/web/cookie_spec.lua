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

  it("lives for a second at least", function()
    assert.matches("^a=1; Max%-Age=1; ", cookie.write("a", "1", { max_age = "200ms" }, false))
    assert.matches("^a=1; Max%-Age=0; Path=/; Expires=Thu, 01 Jan 1970", cookie.write("a", "1", { max_age = 0 }, false))
  end)

  it("refuses what would not be one cookie", function()
    assert.error_matches(function() cookie.write("a b", "x", nil, false) end, "no name for a cookie")
    assert.error_matches(function() cookie.write("a", "x", { path = "/;x" }, false) end, "path has bytes")
    assert.error_matches(function() cookie.write("a", "x", { path = "x" }, false) end, 'path "x" must begin with "/"')
    for _, domain in ipairs { "a\nb", "a; Secure", "a, b", "", "a b", "müller.example" } do
      assert.error_matches(function() cookie.write("a", "x", { domain = domain }, false) end, "is no name of a host")
    end
    assert.error_matches(function() cookie.write("a", ("x"):rep(4096), nil, false) end, '"a" has 4097 bytes')
    assert.error_matches(function() cookie.write("a", "x", { secure = "yes" }, false) end, 'option "secure" must be')
    assert.error_matches(function() cookie.write("a", "x", { same_site = "maybe" }, false) end, "same_site must be")
    assert.error_matches(function() cookie.write("a", "x", { max_ago = 1 }, false) end, 'did you mean "max_age"?')
  end)

  it("is secure where browsers want it so, and never kept from being it", function()
    local function write(name, opts) return cookie.write(name, "1", opts, false) end
    assert.equal("a=1; Path=/; HttpOnly; Secure; SameSite=None", write("a", { same_site = "none" }))
    assert.equal("a=1; Path=/; HttpOnly; Secure; Partitioned; SameSite=Lax", write("a", { partitioned = true }))
    assert.equal("__Host-a=1; Path=/; HttpOnly; Secure; SameSite=Lax", write("__Host-a"))
    assert.equal("__secure-a=1; Domain=x.example; Path=/b; HttpOnly; Secure; SameSite=Lax", write("__secure-a", { domain = "x.example", path = "/b" }))
    assert.equal("Host-a=1; Path=/; HttpOnly; SameSite=Lax", write("Host-a"))
    for name, opts in pairs { ["__Secure-a"] = {}, ["__HOST-a"] = {}, a = { same_site = "none" }, b = { partitioned = true } } do
      opts.secure = false
      assert.error_matches(function() write(name, opts) end, "browsers drop .* without `secure`")
    end
    assert.error_matches(function() write("__Host-a", { path = "/x" }) end, "for one whole host")
    assert.error_matches(function() write("__host-a", { domain = "x.example" }) end, "for one whole host")
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
