local json = require "srv.core.json"
local rule = require "srv.base.rule"

local function checked(given, value, mode)
  return rule.compile(assert(rule.tree(given)), rule.MODES[mode or "json"])(value)
end

--- "/path code" of each fault.
local function faults_of(given, value, mode)
  local _, faults = checked(given, value, mode)
  local told = {}
  for i, fault in ipairs(faults or {}) do told[i] = fault.path .. " " .. fault.code end
  return told
end

local function mistake(given)
  local node, message = rule.tree(given)
  assert.is_nil(node)
  return message
end

describe("a rule string", function()
  it("that is wrong is refused with what is wrong about it", function()
    local WRONG = {
      { "strng", 'unknown type "strng", did you mean "string"?' },
      { "integr|'auto'", 'unknown type "integr", did you mean "integer"?' },
      { "draft", "quote it if it is a value: 'draft'" },
      { "integer|auto", 'unknown type "auto"' },
      { "", "a type or value is missing" },
      { "string|", "a type or value is missing" },
      { "/x/", "a type or value belongs before" },
      { "string 5..1", "nothing lies within these bounds" },
      { "integer >3 <=3", "nothing lies within these bounds" },
      { "string 1..2 ..3", "two upper bounds" },
      { "string 1.. >=2", "two lower bounds" },
      { "string ..", ".. has no number on either side" },
      { "integer >", "a number belongs after >" },
      { "integer 1", "a bound is written 1.. or ..9 or 1..9" },
      { "boolean 1..", "boolean takes no bounds" },
      { "integer 1s..", "a unit (s) makes no sense here" },
      { "duration 1x..", 'unknown unit "x"' },
      { "string unqiue", 'unknown limit "unqiue", did you mean "unique"?' },
      { "string unique", "only an array can be unique" },
      { "integer trim", 'only text can be changed by "trim"' },
      { "integer /%d/", "only text takes a pattern" },
      { "string /%d", "a pattern has no closing /" },
      { "string /[a/", "malformed pattern" },
      { "string image/png", "only a file takes a media type" },
      { "string[][]", "an array of arrays is written (x[])[]" },
      { "(string?)[]", "items of an array cannot be optional" },
      { "(integer = 1)[]", "items of an array have no default" },
      { "(draft|published", "a ( has no )" },
      { "'draft", "a ' has no second one" },
      { "5s", "a number alone takes no unit" },
      { "44E444444444440", "the exponent of 44E444444444440 is too large" },
      { "string =", '= has no default after it (an empty text is = "")' },
      { "string )", '")" is not understood' },
      { "integer = x", "the default x does not fit: it must be a whole number" },
      { "integer 1..5 = 9", "the default 9 does not fit: it must be at most 5" },
      { "draft|published = drafd", "the default drafd does not fit" },
    }
    for _, case in ipairs(WRONG) do assert.matches(case[2], mistake(case[1]), 1, true) end
  end)

  it("or table that holds itself is refused at start", function()
    local list, fields = {}, {}
    list[1], fields.a = list, { fields }
    for _, given in ipairs { list, fields } do
      assert.equal("a rule holds itself (srv.schema.lazy names what comes later), or is nested too deeply", mistake(given))
    end
  end)

  it("put together at random compiles, or is refused with a message", function()
    local PARTS = {
      "string", "integer", "duration", "file", "slug", "draft", "null", "'a b'", "80", "[]", "?", "|", "(", ")", "1..5", "..", ">=1", "<", "5m",
      "/%a+/", "/", "trim", "unique", "image/png", "= 5", "= [", '= "x"', "=", "-- d", "--", " ", "'", "%", "-1",
    }
    local seed = 7
    local function random(n)
      seed = (seed * 1103515245 + 12345) % 2147483648
      return math.floor(seed / 65536) % n + 1
    end
    local right = 0
    for _ = 1, 20000 do
      local words = {}
      for i = 1, random(6) do words[i] = PARTS[random(#PARTS)] end
      local text = table.concat(words, random(2) == 1 and " " or "")
      local node, message = rule.tree(text)
      assert.is_true(node ~= nil or type(message) == "string", text)
      if node then
        right = right + 1
        for _, mode in pairs(rule.MODES) do
          for _, value in ipairs { "x", 5, {}, json.null } do rule.compile(node, mode)(value) end
        end
      end
    end
    assert.is_true(right > 500)
  end)

  it("takes the blanks between its parts or leaves them", function()
    for _, given in ipairs { "integer>=1<=5=1 --few", " integer  >= 1  <= 5  =  1  -- few ", "integer 1..5 = 1 -- few" } do
      local node = assert(rule.tree(given))
      assert.same({ 1, 5, 1, "few" }, { node.min, node.max, node.default, node.description })
    end
  end)

  it("may hold what looks like its own marks inside a pattern, a JSON default or quotes", function()
    assert.same({}, faults_of("string /[%a|=%/-]+/", "a|b=c/-"))
    assert.same({ "/ -- a|b" }, assert(rule.tree 'string[] = ["/ -- a|b"]').default)
    assert.same({}, faults_of("'a|b'|'--'", "--"))
    assert.equal("http://127.0.0.1:9000", assert(rule.tree "url = http://127.0.0.1:9000").default)
    assert.same({}, faults_of("in-progress|done", "in-progress"))
  end)

  it("takes a default that is JSON if that fits, else text", function()
    assert.equal(5, assert(rule.tree "integer = 5").default)
    assert.equal("5", assert(rule.tree "string = 5").default)
    assert.equal("x", assert(rule.tree 'string = "x"').default)
    assert.equal(300, assert(rule.tree "duration 1s..1h = 5m").default)
    assert.equal(json.null, assert(rule.tree "string|null = null").default)
    assert.is_false(assert(rule.tree "boolean = false").default)
    assert.same({}, assert(rule.tree "slug[] = []").default)
  end)
end)

describe("text", function()
  it("is counted in characters, after its changes", function()
    assert.same({}, faults_of("string 4..4", "caf\195\169"))
    assert.same({ " too_long" }, faults_of("string ..3", "caf\195\169"))
    assert.equal("ab", (checked("string ..2 trim", "  ab \n")))
    assert.same({ " too_short" }, faults_of("string 1.. trim", "   "))
    assert.equal("ann@example.com", (checked("email trim lower", " Ann@Example.COM ")))
    assert.equal("AB", (checked("string upper", "ab")))
  end)

  it("is UTF-8 without NUL", function()
    assert.same({ " format" }, faults_of("string", "a\0b"))
    assert.same({ " format" }, faults_of("string", "\255"))
  end)

  it("matches a pattern as a whole", function()
    assert.same({}, faults_of("string /%d+/", "123"))
    assert.same({ " pattern" }, faults_of("string /%d+/", "123a"))
  end)

  it("is at most 1,000 characters long where a pattern looks at it, unless the rule says otherwise", function()
    assert.same({ " too_long" }, faults_of("string /.-.-b/", ("a"):rep(100000)))
    assert.same({}, faults_of("string ..2000 /a+/", ("a"):rep(2000)))
    for _, given in ipairs { "(string /a+/)[]", "integer|string /a+/", "(string /a+/|'b')?" } do
      local long = given:find "%[%]" and { ("a"):rep(1001) } or ("a"):rep(1001)
      assert.equal(1, #faults_of(given, long))
    end
  end)

  it("is so long only that no text can hold a pattern up", function()
    local message = mistake "string ..2000 /.-,.-,.-;/"
    assert.is_truthy(message:find("the pattern .-,.-,.-; may try too many ways to share out 2000 characters: allow at most ..97", 1, true))
    assert.is_truthy(mistake "(string /.-,.-,.-;/)[]")
    assert.same({}, faults_of("string ..97 /.-,.-,.-;/", "a,b,c;"))
    assert.same({}, faults_of("string /[^,]-,[^,]-,[^;]-;/", "a,b,c;"))
  end)

  it("has the format that its type names", function()
    assert.same({ " format" }, faults_of("url", "ftp://example.com"))
    assert.same({ " type" }, faults_of("url", 5))
    assert.same({ " too_long" }, faults_of("slug ..3", "abcd"))
  end)

  it("is trimmed in time that is linear in its blanks", function()
    local before = os.clock()
    checked("string trim", "x" .. (" "):rep(200000) .. "x" .. (" "):rep(200000))
    assert.is_true(os.clock() - before < 0.5)
  end)
end)

describe("a number", function()
  it("must be one, finite and within its bounds", function()
    assert.same({}, faults_of("number", 1.5))
    for _, wrong in ipairs { "1", true, 0 / 0, 1 / 0, -1 / 0 } do assert.same({ " type" }, faults_of("number", wrong)) end
    assert.same({ " too_small" }, faults_of("number >0", 0))
    assert.same({ " too_big" }, faults_of("number <1.5", 1.5))
    assert.same({ " too_big" }, faults_of("integer 1..5", 6))
    assert.same({}, faults_of("integer -5..5", -5))
  end)

  it("that is whole lies within 2^53", function()
    assert.same({}, faults_of("integer", 2 ^ 53))
    assert.same({ " too_big" }, faults_of("integer", 2 ^ 54))
    assert.same({ " too_small" }, faults_of("integer", -2 ^ 54))
    assert.same({ " type" }, faults_of("integer", 1.5))
  end)

  it("of any size is a string of digits", function()
    assert.equal("123456789012345678901234567890", (checked("bigint", "123456789012345678901234567890")))
    assert.equal("7", (checked("bigint", 7)))
    assert.equal("0", (checked("bigint", json.decode "-0")))
    for _, wrong in ipairs { "", "-", "-0", "007", "1.5", "x", 1.5 } do assert.same({ " type" }, faults_of("bigint", wrong)) end
    assert.same({}, faults_of("bigint 100000000000000000000..", "100000000000000000000"))
    assert.same({ " too_small" }, faults_of("bigint 100000000000000000000..", "99999999999999999999"))
    assert.same({ " too_small" }, faults_of("bigint >0", "0"))
    assert.same({ " too_small" }, faults_of("bigint >=-5", "-6"))
    assert.same({}, faults_of("bigint <=-5", "-6"))
    assert.same({ " too_big" }, faults_of("bigint <10", "10"))
  end)

  it("with a unit becomes seconds or bytes", function()
    assert.equal(300, (checked("duration", "5m")))
    assert.equal(5, (checked("duration", 5)))
    assert.equal(2 ^ 20, (checked("bytes ..2MiB", "1MiB")))
    assert.same({ " too_big" }, faults_of("duration 1s..1h", "2h"))
    assert.same({ " format" }, faults_of("duration", "soon"))
    assert.same({ " type" }, faults_of("duration", true))
  end)
end)

describe("alternatives", function()
  it("are literals if they are words that stand alone", function()
    assert.same({}, faults_of("draft|published", "published"))
    assert.same({ " one_of" }, faults_of("draft|published", "other"))
    assert.same({ " one_of" }, faults_of("80|443", 8080))
    assert.equal(json.null, (checked("draft|published|null", json.null)))
  end)

  it("count in their order", function()
    assert.equal("auto", (checked("integer|'auto'", "auto")))
    assert.equal(5, (checked("integer|'auto'", "5", "text")))
    assert.equal("5", (checked("string|integer", "5", "text")))
  end)

  it("tell the faults of the one whose type fits", function()
    assert.same({ " too_long" }, faults_of("string ..3|null", "abcd"))
    assert.same({ " too_big" }, faults_of("integer ..5|boolean", 9))
    local _, faults = checked("integer|boolean|'auto'", "x")
    assert.same({ { path = "", code = "type", message = 'must be a whole number, true or false or "auto"' } }, faults)
    _, faults = checked("string|null", 5)
    assert.equal("must be text or null", faults[1].message)
  end)
end)

describe("an array", function()
  it("has limits of its own; those of its items stand in brackets", function()
    assert.same({ " too_long" }, faults_of("string[] ..2", { "a", "b", "c" }))
    assert.same({ " too_short" }, faults_of("string[] 1..", {}))
    assert.same({ "/1 too_long" }, faults_of("(string ..2)[] ..8", { "ab", "abc" }))
    assert.same({ "/0/1 type" }, faults_of("(integer[])[]", { { 1, "x" } }))
  end)

  it("of unique items has no two that are equal, tables too", function()
    assert.same({ "/2 duplicate" }, faults_of("integer[] unique", { 1, 2, 1 }))
    assert.same({}, faults_of("any[] unique", { 1, "1", true, "true" }))
    assert.same({ "/1 duplicate" }, faults_of("any[] unique", { { a = 1, b = { 2 } }, { b = { 2 }, a = 1 } }))
    assert.same({}, faults_of("any[] unique", { { a = 1 }, { a = "1" } }))
    -- All digits of a number count, and -0 is 0.
    assert.same({}, faults_of("integer[] unique", { 2 ^ 53 - 1, 2 ^ 53 - 2 }))
    assert.same({}, faults_of("any[] unique", { 0.1, 0.1 + 2 ^ -56, { 2 ^ 53 }, { 2 ^ 53 - 1 } }))
    assert.same({ "/1 duplicate" }, faults_of("number[] unique", { 0, -0 }))
    local same = {}
    for i = 1, 1000 do same[i] = "x" end
    assert.equal(100, #faults_of("string[] unique", same))
  end)

  it("is no object, unless it is empty and unmarked", function()
    assert.same({ " type" }, faults_of("string[]", { a = "x" }))
    assert.same({ " type" }, faults_of("string[]", json.object {}))
    assert.same({ " type" }, faults_of({ a = "string?" }, json.array {}))
    assert.same({}, faults_of({ a = "string?" }, {}))
    assert.same({}, faults_of("array", {}))
    assert.same({ " type" }, faults_of("object", { 1 }))
  end)

  it("that is too long is not looked at item by item", function()
    local looked = 0
    local node = assert(rule.tree { function(v) looked = looked + 1 return v end })
    node.max = 2
    rule.compile(node, rule.MODES.json) { 1, 2, 3 }
    assert.equal(0, looked)
  end)
end)

describe("an object", function()
  local article = { title = "string 1..", tags = "slug[] = []", author = { name = "string", email = "email?" } }

  it("tells all faults at once, each with its JSON Pointer", function()
    assert.same({ "/author/name type", "/author/e~1x unknown", "/tags/1 format", "/title required", "/~0 unknown" },
      faults_of(article, { author = { name = 5, ["e/x"] = 1 }, tags = { "a", "B" }, ["~"] = 1 }))
  end)

  it("is copied: the value that came stays as it was", function()
    local value = { title = "x", author = { name = "a" } }
    local copy = checked(article, value)
    assert.same({ title = "x", tags = {}, author = { name = "a" } }, copy)
    assert.is_nil(value.tags)
  end)

  it("gets a default of its own each time", function()
    local first = checked(article, { title = "x", author = { name = "a" } })
    first.tags[1] = "changed"
    assert.same({}, checked(article, { title = "x", author = { name = "a" } }).tags)
  end)

  it("has unknown fields refused, dropped or checked by the rule for them", function()
    assert.same({ "/b unknown" }, faults_of({ a = "integer" }, { a = 1, b = 2 }))
    assert.same({ a = 1 }, (checked({ a = "integer", ["*"] = "drop" }, { a = 1, b = 2 })))
    assert.same({ a = 1, b = 2 }, (checked({ ["*"] = "number" }, { a = 1, b = 2 })))
    assert.same({ "/b type", "/c type" }, faults_of({ ["*"] = "number" }, { c = "x", a = 1, b = "y" }))
  end)

  it("takes null for a missing optional field, unless null is a value there", function()
    assert.same({}, (checked({ a = "string?" }, { a = json.null })))
    assert.same({ a = "x" }, (checked({ a = "string = x" }, { a = json.null })))
    assert.same({ a = json.null }, (checked({ a = "string|null?" }, { a = json.null })))
    assert.same({ "/a type" }, faults_of({ a = "string" }, { a = json.null }))
  end)

  it("tells a hundred faults at most", function()
    local items = {}
    for i = 1, 5000 do items[i] = "x" end
    assert.equal(100, #faults_of({ a = "integer[]", b = "integer[]" }, { a = items, b = items }))
  end)

  it("takes hundreds of fields", function()
    local given, value = {}, {}
    for i = 1, 400 do given["f" .. i], value["f" .. i] = "integer", i end
    assert.same(value, (checked(given, value)))
  end)

  it("with fields of any name checks them", function()
    local given = { ["a b"] = "integer", ["end"] = "integer", ['q"\n\\'] = "integer", ["%d"] = "integer" }
    local value = { ["a b"] = 1, ["end"] = 2, ['q"\n\\'] = 3, ["%d"] = 4 }
    assert.same(value, (checked(given, value)))
  end)
end)

describe("text as a source", function()
  it("becomes numbers, booleans and arrays", function()
    local given = { a = "integer", b = "number", c = "boolean", d = "integer[]", e = "80|443" }
    assert.same({ a = 5, b = -1.5, c = true, d = { 7 }, e = 80 },
      (checked(given, { a = "5", b = "-1.5", c = "on", d = "7", e = "80" }, "text")))
  end)

  it("is no number where Lua would read one", function()
    for _, wrong in ipairs { "0x10", "inf", "nan", " 5", "5 ", "", "1e", "--5" } do
      assert.same({ " type" }, faults_of("number", wrong, "text"))
      assert.same({ " type" }, faults_of("integer", wrong, "text"))
    end
    assert.equal(1500, (checked("number", "1.5e3", "text")))
    assert.same({ " type" }, faults_of("integer", "1e3", "text"))
  end)

  it("keeps whole numbers exact: 2^53 is one, 2^53 + 1 is not", function()
    assert.equal(2 ^ 53, (checked("integer", "9007199254740992", "text")))
    assert.same({ " too_big" }, faults_of("integer", "9007199254740993", "text"))
    assert.same({ " too_small" }, faults_of("integer", "-9007199254740993", "text"))
  end)

  it("that is empty is a missing field, if that is optional and no string", function()
    local given = { page = "integer = 1", tag = "slug?", q = "string?" }
    assert.same({ page = 1, q = "" }, (checked(given, { page = "", tag = "", q = "" }, "text")))
    assert.same({ "/n type" }, faults_of({ n = "integer" }, { n = "" }, "text"))
  end)

  it("leaves unknown fields behind, but not in a form", function()
    assert.same({ a = 1 }, (checked({ a = "integer" }, { a = "1", b = "2" }, "text")))
    assert.same({ "/b unknown" }, faults_of({ a = "integer" }, { a = "1", b = "2" }, "form"))
  end)

  it("is not converted in JSON", function()
    assert.same({ "/a type" }, faults_of({ a = "integer" }, { a = "5" }))
  end)
end)

describe("a file", function()
  local png = { name = "a.png", type = "image/PNG; x=y", size = 100 }

  it("has a size and a media type", function()
    assert.same({}, faults_of("file image/png ..2MiB", png))
    assert.same({}, faults_of("file image/* text/plain", png))
    assert.same({ " format" }, faults_of("file image/gif", png))
    assert.same({ " too_long" }, faults_of("file ..99B", png))
    assert.same({ " type" }, faults_of("file", "x"))
  end)
end)

describe("a function as a rule", function()
  it("gives the value or says why not", function()
    local even = function(v)
      if v % 2 == 0 then return v / 2 end
      return nil, "must be even"
    end
    assert.same({ n = 2 }, (checked({ n = even }, { n = 4 })))
    local _, faults = checked({ n = even }, { n = 3 })
    assert.same({ { path = "/n", code = "rejected", message = "must be even" } }, faults)
  end)

  it("that hands on an error object raises it: a database that is down is no fault of the client", function()
    local down = { status = 503 }
    local ok, raised = pcall(checked, { n = function() return nil, down end }, { n = 1 })
    assert.is_false(ok)
    assert.equal(down, raised)
  end)

  it("may wait", function()
    local co = coroutine.wrap(function() return (checked({ n = function(v) coroutine.yield() return v + 1 end }, { n = 1 })) end)
    assert.is_nil(co())
    assert.same({ n = 2 }, co())
  end)
end)

describe("rule.options", function()
  local RULES = { header = "string = X-Stamp", ttl = "duration?", fn = true }
  local function stamp(opts) local given = rule.options("stamp", opts, RULES) return given end

  it("fills in defaults and converts", function()
    local fn = function() end
    assert.same({ header = "X-Stamp", ttl = 300, fn = fn }, stamp { ttl = "5m", fn = fn })
    assert.same({ header = "X-Stamp" }, stamp())
  end)

  it("blames the caller of the plugin for what is wrong, with the nearest name", function()
    local _, message = pcall(function() stamp { haeder = "x" } end)
    assert.matches('rule_spec%.lua:%d+: stamp: unknown option "haeder", did you mean "header"%?$', message)
    _, message = pcall(function() stamp { ttl = "soon" } end)
    assert.matches('rule_spec%.lua:%d+: stamp: option "ttl" must be a duration like "5s"$', message)
    _, message = pcall(function() stamp "x" end)
    assert.matches("rule_spec%.lua:%d+: stamp: options are a table, not x$", message)
  end)
end)
