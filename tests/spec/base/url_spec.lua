local json = require "srv".json
local url = require "srv".url

--- What url.parse says is wrong.
local function fault(text)
  local parts, err = url.parse(text)
  assert.is_nil(parts, text)
  assert.equal("invalid", err.code)
  assert.equal(400, err.status)
  return (err.message:gsub("^the URL is not valid: ", ""))
end

local function misuse(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok)
  return (message:gsub("^.-url_spec.lua:%d+: ", ""))
end

-- The same numbers each time.
local random = 5
local function below(n)
  random = (random * 16807) % 2147483647
  return random % n
end

local function random_bytes(alphabet, max)
  local chars = {}
  for i = 1, below(max + 1) do
    local at = 1 + below(#alphabet)
    chars[i] = alphabet:sub(at, at)
  end
  return table.concat(chars)
end

local ALL = {}
for code = 0, 255 do ALL[#ALL + 1] = string.char(code) end
ALL = table.concat(ALL)

describe("url.parse", function()
  it("takes a URL apart", function()
    assert.same({
      scheme = "https", user = "ann", password = "p@ss:1", host = "example.com", port = 8080, path = "/a/b%2Fc;d", query = "x=1&y=%20",
      fragment = "top?/",
    }, url.parse "HTTPS://ann:p%40ss%3A1@Example.COM:8080/a/b%2Fc;d?x=1&y=%20#top?/")
  end)

  it("tells parts that are empty from those that are not there", function()
    assert.same({ scheme = "http", host = "h", path = "" }, url.parse "http://h")
    assert.same({ scheme = "http", host = "h", path = "/", query = "", fragment = "" }, url.parse "http://h/?#")
    assert.same({ scheme = "http", host = "h", path = "" }, url.parse "http://h:")
    assert.same({ scheme = "http", host = "h", user = "", password = "", path = "" }, url.parse "http://:@h")
    assert.same({ path = "" }, url.parse "")
    assert.same({ path = "", query = "" }, url.parse "?")
  end)

  it("reads the examples of RFC 3986, 1.1.2", function()
    assert.same({ scheme = "ftp", host = "ftp.is.co.za", path = "/rfc/rfc1808.txt" }, url.parse "ftp://ftp.is.co.za/rfc/rfc1808.txt")
    assert.same({ scheme = "ldap", host = "2001:db8::7", path = "/c=GB", query = "objectClass?one" }, url.parse "ldap://[2001:db8::7]/c=GB?objectClass?one")
    assert.same({ scheme = "mailto", path = "John.Doe@example.com" }, url.parse "mailto:John.Doe@example.com")
    assert.same({ scheme = "tel", path = "+1-816-555-1212" }, url.parse "tel:+1-816-555-1212")
    assert.same({ scheme = "telnet", host = "192.0.2.16", port = 80, path = "/" }, url.parse "telnet://192.0.2.16:80/")
    assert.same({ scheme = "urn", path = "oasis:names:specification:docbook:dtd:xml:4.1.2" }, url.parse "urn:oasis:names:specification:docbook:dtd:xml:4.1.2")
    assert.same({ scheme = "file", host = "", path = "/etc/hosts" }, url.parse "file:///etc/hosts")
  end)

  it("reads relative references", function()
    assert.same({ path = "/a", query = "b:c" }, url.parse "/a?b:c")
    assert.same({ host = "h", path = "/a" }, url.parse "//h/a")
    assert.same({ path = "./a:b" }, url.parse "./a:b")
    assert.same({ path = "a/b:c" }, url.parse "a/b:c")
    assert.same({ path = "", fragment = "x" }, url.parse "#x")
  end)

  it("says what is wrong", function()
    assert.equal('" " cannot stand in a path unless percent-encoded', fault "http://h/a b")
    assert.equal("the byte 0x0D cannot stand in a query unless percent-encoded", fault "http://h/?a\r\nb")
    assert.equal("the byte 0xC3 cannot stand in a host unless percent-encoded", fault "http://\195\188.example/")
    assert.equal("the byte 0x00 cannot stand in a fragment unless percent-encoded", fault "#a\0")
    assert.equal("a broken percent-escape in the path", fault "/%2")
    assert.equal("a broken percent-escape in the user or password", fault "http://%zz@h/")
    assert.equal("what stands before the first colon is no scheme", fault "1a:b")
    assert.equal("what stands before the first colon is no scheme", fault ":b")
    assert.equal("the port must be a number up to 65535", fault "http://h:65536/")
    assert.equal("the port must be a number up to 65535", fault "http://h:8o/")
    assert.equal("the port must be a number up to 65535", fault "http://a:b:1/")
    assert.equal('"@" cannot stand in a host unless percent-encoded', fault "http://a@b@c/")
    assert.equal('"\\\\" cannot stand in a user or password unless percent-encoded', fault "http://a\\@b/")
    assert.equal("there is no IPv6 address between the brackets", fault "http://[::1::]/")
    assert.equal("there is no IPv6 address between the brackets", fault "http://[fe80::1%25eth0]/")
    assert.equal("something other than a port follows the brackets", fault "http://[::1]x/")
    assert.equal('"[" cannot stand in a host unless percent-encoded', fault "http://[::1/")
    assert.equal("http needs a host", fault "http:/a")
    assert.equal("https needs a host", fault "https:///a")
    assert.equal("it is longer than 64 KiB", fault("/" .. ("a"):rep(65536)))
  end)

  it("never raises, and reads what it accepts in time that grows with its length", function()
    for _ = 1, 3000 do url.parse(random_bytes("ahtp:/?#[]@%2%F1.~ \0\255", 24)) end
    local started = os.clock()
    for _, char in ipairs { "%", "%41", "a", ":", "@", "[", "?", "#", "/", " " } do
      for _, start in ipairs { "", "http://", "http://h/", "?", "http://[", "http://a@" } do
        url.parse(start .. char:rep(math.floor(60000 / #char)))
      end
    end
    assert.is_true(os.clock() - started < 1)
  end)
end)

describe("url.build", function()
  it("puts a URL together", function()
    assert.equal("https://ann:p%40ss@example.com:8080/a?x=1#top", url.build {
      scheme = "https", user = "ann", password = "p@ss", host = "example.com", port = 8080, path = "/a", query = "x=1", fragment = "top",
    })
    assert.equal("http://[::1]:80", url.build { scheme = "http", host = "::1", port = 80 })
    assert.equal("/a?b=1&c=2", url.build { path = "/a", query = { c = 2, b = 1 } })
    assert.equal("/a", url.build { path = "/a", query = {} })
    assert.equal("", url.build {})
  end)

  it("encodes what cannot stand there, and no escape twice", function()
    assert.equal("/a%20b%3F%23%C3%A9%25%2F?q=%22%25zz#%23", url.build { path = "/a b?#é%%2F", query = 'q="%zz', fragment = "#" })
    assert.equal("/x%0D%0AInjected:%201", url.build { path = "/x\r\nInjected: 1" })
  end)

  it("is the inverse of url.parse", function()
    for _, text in ipairs {
      "http://h", "http://h/?#", "https://ann:p%40ss@example.com:8080/a/b%2Fc;d?x=1&y=%20#top", "ldap://[2001:db8::7]/c=GB?objectClass?one",
      "mailto:John.Doe@example.com", "urn:a:b", "file:///etc/hosts", "/a?b:c", "//h/a", "./a:b", "#x", "?", "", "http://:@h", "a/b:c",
    } do
      assert.equal(text, url.build(assert(url.parse(text))))
    end
  end)

  it("gives back every part that it is given", function()
    for _ = 1, 2000 do
      local parts = { path = "" }
      if below(2) == 0 then parts.scheme = ({ "x", "http", "a+b-c.1" })[1 + below(3)] end
      if below(2) == 0 or parts.scheme == "http" then
        parts.host = ({ "h.example", "::1", "127.0.0.1", "a%20b", "x_y" })[1 + below(5)]
        if below(2) == 0 then parts.port = below(65536) end
        if below(2) == 0 then parts.user = random_bytes(ALL, 8) end
        if parts.user and below(2) == 0 then parts.password = random_bytes(ALL, 8) end
      end
      if below(4) > 0 then parts.path = "/" .. url.encode(random_bytes(ALL, 8)) end
      if below(2) == 0 then parts.query = url.query { [random_bytes(ALL, 4)] = random_bytes(ALL, 8) } end
      if below(2) == 0 then parts.fragment = url.encode(random_bytes(ALL, 8)) end
      assert.same(parts, (assert(url.parse(url.build(parts)))))
    end
  end)

  it("refuses parts that would be others when read", function()
    local cases = {
      ['unknown field "hots", did you mean "host"?'] = { hots = "h" },
      ["path must be a string, not a number"] = { path = 1 },
      ["port must be a number, not a string"] = { host = "h", port = "80" },
      ["the port must be a whole number up to 65535"] = { host = "h", port = 1.5 },
      ["a port needs a host"] = { port = 80 },
      ["a user needs a host"] = { user = "a" },
      ["a password needs a user"] = { host = "h", password = "a" },
      ["http needs a host"] = { scheme = "http", path = "/" },
      ['"1" is no scheme'] = { scheme = "1" },
      ['"/" cannot stand in a host unless percent-encoded'] = { host = "evil/" },
      ['"@" cannot stand in a host unless percent-encoded'] = { host = "a@evil" },
      ['after a host, the path must begin with "/"'] = { host = "h", path = "a" },
      ['without a host, the path cannot begin with "//": a host would follow'] = { path = "//evil" },
      ["without a scheme, the path's first segment cannot have a colon: a scheme would end there"] = { path = "javascript:x" },
    }
    for message, parts in pairs(cases) do assert.equal("srv.url.build: " .. message, misuse(url.build, parts)) end
    assert.equal("srv.url.build: expected a table, not a string", misuse(url.build, "x"))
  end)
end)

describe("url.encode and url.decode", function()
  it("are inverse for all bytes", function()
    assert.equal("a%20b%2F%C3%A9-._~%2B", url.encode "a b/é-._~+")
    assert.equal("7", url.encode(7))
    assert.equal(ALL, url.decode(url.encode(ALL)))
    assert.equal("a+b c", url.decode "a+b%20c")
  end)

  it("refuse broken escapes", function()
    for text, at in pairs { ["%"] = 1, ["a%2"] = 2, ["%41%zz"] = 4, ["%%41"] = 1 } do
      local value, err = url.decode(text)
      assert.is_nil(value)
      assert.equal("a broken percent-escape at byte " .. at, err.message)
    end
  end)

  it("blame misuse on their caller", function()
    assert.equal("srv.url.encode: expected a string, not a nil", misuse(url.encode))
    assert.equal("srv.url.decode: expected a string, not a table", misuse(url.decode, {}))
    assert.equal("srv.url.parse: expected a string, not a nil", misuse(url.parse))
    assert.matches("url_spec.lua:%d+: srv.url.encode", select(2, pcall(function() url.encode {} end)))
  end)
end)

describe("url.query", function()
  it("writes names in order, arrays as repeats", function()
    assert.equal("", url.query {})
    assert.equal("a=1&b=x%20y%26&c=true&d=2&d=z&e%5Bf%5D=", url.query { d = { 2, "z" }, c = true, b = "x y&", a = 1, ["e[f]"] = "" })
    assert.equal("big=1000000000000000&half=0.5&int=9007199254740993", url.query { big = 1e15, half = 0.5, int = 9007199254740993LL })
  end)

  it("reads by the rules of req.query", function()
    assert.same({ a = { "1", "3", "5" }, b = "x y+", ["c[d]"] = "", e = "%zz=" }, url.query "a=1&b=x+y%2B&&a=3&c%5Bd%5D&e=%zz=&a=5")
    assert.equal("{}", json.encode(url.query ""))
    local values, err = url.query(("a=1&"):rep(1001))
    assert.is_nil(values)
    assert.equal("the query has more than 1,000 pairs", err.message)
  end)

  it("reads what it has written", function()
    for _ = 1, 500 do
      local values = {}
      for _ = 1, below(4) do values[random_bytes(ALL, 5)] = random_bytes(ALL, 9) end
      values.list = { random_bytes(ALL, 5), random_bytes(ALL, 5) }
      assert.same(values, (url.query(url.query(values))))
    end
  end)

  it("blames misuse on its caller", function()
    assert.equal('srv.url.query: "a" must be a string, number, boolean or a list of these, not a table', misuse(url.query, { a = { {} } }))
    assert.equal('srv.url.query: "a" must be a string, number, boolean or a list of these, not nan', misuse(url.query, { a = 0 / 0 }))
    assert.equal("srv.url.query: names are strings, not a number", misuse(url.query, { "a" }))
    assert.equal("srv.url.query: expected a table or a string, not a nil", misuse(url.query))
  end)
end)
