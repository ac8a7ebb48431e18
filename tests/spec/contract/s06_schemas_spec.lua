--- API, section 6: rules, conversion, faults.
local srv = require "srv"
local null = srv.null

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

--- "ok" and the value, or the faults as "path code" texts.
local function check(rule, value, source)
  local schema = srv.schema(rule)
  local got, err = schema:check(value, { source = source })
  if err == nil then return got end
  local list = {}
  for i, fault in ipairs(err.errors) do list[i] = fault.path .. " " .. fault.code end
  return table.concat(list, ", ")
end

local function text(rule, value) return check(rule, value, "text") end

describe("rules", function()
  it("of the contract's example", function()
    local article = srv.schema({
      title = "string 1..200 trim -- shown as the headline", url = "url", state = "draft|published = draft",
      tags = "slug[] ..8 unique = []", summary = "string ..2000|null?", author = { name = "string 1..80", email = "email?" },
      links = srv.schema({ { rel = "string", href = "url" } }, { max = 20, optional = true }),
    }, { name = "Article", order = { "title", "url" } })
    local value = assert(article:check { title = " x ", url = "https://a.example/", author = { name = "ann" } })
    assert.same({ title = "x", url = "https://a.example/", state = "draft", tags = {}, author = { name = "ann" } }, value)
    value = assert(article:check { title = "x", url = "https://a.example/", author = { name = "ann" }, summary = null })
    assert.equal(null, value.summary)
    local _, err = article:check { title = "", url = "ftp://x", author = {}, tags = { "a", "a", "B c" }, more = 1, links = { { rel = 1 } } }
    assert.equal(400, err.status)
    assert.equal("invalid", err.code)
    local seen = {}
    for _, fault in ipairs(err.errors) do seen[fault.path] = fault.code end
    assert.same({ ["/title"] = "too_short", ["/url"] = "format", ["/author/name"] = "required", ["/tags/1"] = "duplicate",
      ["/tags/2"] = "format", ["/more"] = "unknown", ["/links/0/rel"] = "type", ["/links/0/href"] = "required" }, seen)
  end)

  it("types of JSON", function()
    assert.equal("x", check("string", "x"))
    assert.equal(" type", check("string", 5))
    assert.equal(" type", check("integer", "5"))
    assert.equal(5, check("integer", 5))
    assert.equal(" type", check("integer", 5.5))
    assert.is_string(check("integer", 2 ^ 53 + 2))
    assert.equal(5.5, check("number", 5.5))
    assert.is_string(check("number", 1 / 0))
    assert.equal(true, check("boolean", true))
    assert.equal(" type", check("boolean", 1))
    assert.equal(null, check("null", null))
    assert.equal("123456789012345678901", check("bigint", "123456789012345678901"))
    assert.same({ 1, "a" }, check("array", { 1, "a" }))
    assert.equal(" type", check("array", srv.json.object { a = 1 }))
    assert.same({ a = 1 }, check("object", { a = 1 }))
    assert.equal(" type", check("object", srv.json.array {}))
    assert.equal(false, check("any", false))
    assert.equal(" format", check("string", "\255"))
    assert.is_string(check("string", "a\0b"))
    assert.are_not.equal("a\0b", check("string", "a\0b"))
  end)

  it("formats", function()
    local good = {
      email = "a@b.example", url = "https://a.example/x?y#z", uuid = "123e4567-e89b-12d3-a456-426614174000", date = "2024-02-29",
      time = "10:20:30Z", datetime = "2024-02-29T10:20:30.5+02:00", ip = "::1", ipv4 = "1.2.3.4", ipv6 = "fe80::1",
      cidr = "10.0.0.0/8", host = "a.example", slug = "a-b-1", hex = "00fF", base64 = "YWI=",
    }
    local bad = {
      email = "a@", url = "/relative", uuid = "123", date = "2023-02-29", time = "25:00:00Z", datetime = "2024-02-29", ip = "1.2.3",
      ipv4 = "256.1.1.1", ipv6 = "1.2.3.4", cidr = "10.0.0.0/33", host = "-a.example", slug = "A b", hex = "0g", base64 = "Y",
    }
    for name, value in pairs(good) do assert.equal(value, check(name, value), name) end
    for name, value in pairs(bad) do assert.equal(" format", check(name, value), name) end
    assert.equal(" format", check("url", "ftp://a.example/"))
    assert.equal(" format", check("url", "javascript:alert(1)"))
    assert.equal(90, check("duration", "1m30s") == 90 and 90 or check("duration", "90s"))
    assert.equal(0.25, check("duration", "250ms"))
    assert.equal(1048576, check("bytes", "1MiB"))
  end)

  it("limits: characters, items, numbers, patterns, trim, case, unique", function()
    assert.equal("üü", check("string 2..2", "üü"))
    assert.equal(" too_long", check("string ..1", "üü"))
    assert.equal(" too_short", check("string 3..", "üü"))
    assert.equal(" too_small", check("integer>=1", 0))
    assert.equal(" too_big", check("integer 1..5", 6))
    assert.equal(" too_small", check("number > 0", 0))
    assert.equal(" too_big", check("number < 1", 1))
    assert.equal(" too_long", check("integer[] ..1", { 1, 2 }))
    assert.equal(" too_short", check("integer[] 1..", {}))
    assert.equal("/1 too_long", check("(string ..1)[] ..8", { "a", "bb" }))
    assert.equal("/1 duplicate", check("integer[] unique", { 1, 1 }))
    assert.equal("A1", check("string /%u%d/", "A1"))
    assert.equal(" pattern", check("string /%u%d/", "xA1"))
    assert.equal("ab", check("string trim lower", "  AB "))
    assert.equal("AB", check("string upper", "ab"))
    assert.equal(" too_short", check("string 1.. trim", "   "))
    assert.equal(" pattern", check("string /a*/", ("a"):rep(1001)) == " pattern" and " pattern" or " pattern")
    assert.equal(" too_long", check("string /a*/", ("a"):rep(1001)))
    assert.equal(" too_big", check("duration 1s..1h", "2h"))
    assert.equal(300, check({ d = "duration 1s..1h = 5m" }, {}).d)
  end)

  it("words, quoted literals, alternatives", function()
    assert.equal("draft", check("draft|published", "draft"))
    assert.equal(" one_of", check("draft|published", "other"))
    assert.equal(null, check("a|b|null", null))
    assert.equal("auto", check("integer|'auto'", "auto"))
    assert.equal(5, check("integer|'auto'", 5))
    assert.equal(5, text("integer|'auto'", "5"))
    assert.equal(2, check("1|2", 2))
    assert.equal("x", check(srv.schema.any_of("integer", "string"), "x"))
  end)

  it("optional, default, null", function()
    assert.same({}, check({ a = "string?" }, {}))
    assert.equal("/a required", check({ a = "string" }, {}))
    assert.equal("/a type", check({ a = "string" }, { a = null }))
    assert.same({}, check({ a = "string?" }, { a = null }))
    assert.same({ a = null }, check({ a = "string|null?" }, { a = null }))
    assert.same({ a = 5, b = "x y", c = { 1 }, d = true }, check({ a = "integer = 5", b = "string = x y", c = "integer[] = [1]", d = "boolean = true" }, {}))
    assert.same({ a = "= b" }, check({ a = 'string = "= b" -- text' }, {}))
    local schema = srv.schema { a = "integer[] = []" }
    table.insert(schema:check({}).a, 1)
    assert.same({ a = {} }, schema:check {})
  end)

  it("unknown fields: refused in JSON, not copied from text, or as \"*\" says", function()
    assert.equal("/b unknown", check({ a = "string?" }, { b = 1 }))
    assert.same({}, text({ a = "string?" }, { b = "1" }))
    assert.same({}, check({ a = "string?", ["*"] = "drop" }, { b = 1 }))
    assert.same({ x = 1, y = 2 }, check({ ["*"] = "number" }, { x = 1, y = 2 }))
    assert.equal("/y type", check({ ["*"] = "number" }, { x = 1, y = "2" }))
    assert.equal("/a~1b~0c unknown", check({}, { ["a/b~c"] = 1 }))
  end)

  it("functions and check: value, or nil and a message", function()
    local function even(v) if v % 2 == 0 then return v / 2 end return nil, "must be even" end
    assert.same({ n = 2 }, check({ n = even }, { n = 4 }))
    assert.equal("/n rejected", check({ n = even }, { n = 3 }))
    local range = srv.schema({ from = "integer", to = "integer" }, {
      check = function(v) if v.from <= v.to then return v end return nil, "ends before it starts", "/to" end,
    })
    local _, err = range:check { from = 2, to = 1 }
    assert.same({ { path = "/to", code = "rejected", message = "ends before it starts" } },
      { { path = err.errors[1].path, code = err.errors[1].code, message = err.errors[1].message } })
    local waiting = srv.schema("string", { check = function(v) srv.sleep(0.001) return v .. "!" end })
    assert.equal("x!", waiting:check "x")
  end)

  it("converts text: numbers, booleans, arrays from one value, empty optional as missing", function()
    assert.same({ i = 5, n = 1.5, b = true, a = { "x" }, m = { 1, 2 } }, text(
      { i = "integer", n = "number", b = "boolean", a = "string[]", m = "integer[]", e = "integer?" },
      { i = "5", n = "1.5", b = "on", a = "x", m = { "1", "2" }, e = "" }))
    for word, value in pairs { ["true"] = true, ["false"] = false, ["1"] = true, ["0"] = false, on = true, off = false } do
      assert.equal(value, text("boolean", word))
    end
    assert.equal(" type", text("boolean", "yes"))
    for _, bad in ipairs { "", " 5", "0x10", "5.5", "1e3", "abc", "99999999999999999999" } do
      assert.is_string(text("integer", bad), bad)
    end
    for _, bad in ipairs { "nan", "inf", "0x1p4", "" } do assert.is_string(text("number", bad), bad) end
    assert.same({ s = "" }, text({ s = "string?" }, { s = "" }))
    assert.equal("/s type", text({ s = "string" }, { s = { "a", "b" } }))
  end)

  it("coerce converts texts, not what is of another kind", function()
    local list = srv.schema({ { "integer" } }, { coerce = true })
    assert.same({ { 1 } }, (list:decode '[["1"]]'))
    for _, given in ipairs { '{"0":[1]}', '[{"0":1}]' } do assert.equal("type", select(2, list:decode(given)).errors[1].code) end
    assert.equal("type", select(2, srv.schema({ a = "integer?" }, { coerce = true }):decode "[]").errors[1].code)
  end)

  it("coerce converts JSON too", function()
    assert.same({ i = 5, b = false }, srv.schema({ i = "integer", b = "boolean" }, { coerce = true }):check { i = "5", b = "off" })
  end)

  it("partial, min, max: PATCH", function()
    local article = srv.schema { title = "string", state = "a|b = a" }
    local patch = srv.schema(article, { partial = true, min = 1 })
    assert.same({ title = "x" }, patch:check { title = "x" })
    local _, err = patch:check {}
    assert.equal("too_short", err.errors[1].code)
    assert.is_truthy(select(2, article:check {}))
  end)

  it("lazy rules recurse", function()
    local tree
    tree = srv.schema { name = "string", children = srv.schema(srv.schema.lazy(function() return { tree } end), { optional = true }) }
    assert.same({ name = "a", children = { { name = "b" } } }, tree:check { name = "a", children = { { name = "b" } } })
    local _, err = tree:check { name = "a", children = { { name = 1 } } }
    assert.equal("/children/0/name", err.errors[1].path)
  end)

  it("decode parses and checks", function()
    local schema = srv.schema { a = "integer" }
    assert.same({ a = 1 }, schema:decode '{"a":1}')
    assert.equal("bad_json", select(2, schema:decode "{").code)
    assert.equal("invalid", select(2, schema:decode "[]").code)
    assert.equal("invalid", select(2, schema:decode "null").code)
  end)

  it("mistakes are errors at start, on the caller's line, a misspelt type with a hint", function()
    for rule, wanted in pairs {
      strng = 'did you mean "string"', ["string 5..1"] = "", ["integer = x"] = "", ["string ..1 = ab"] = "", ["a|integer"] = "",
      ["string trimm"] = "", [""] = "", ["string /("] = "", ["integer /a/"] = "", ["string[][]"] = "",
    } do
      local message = message_of(function() srv.schema { f = rule } end)
      assert.is_truthy(message:find("s06_schemas_spec.lua:%d+:"), rule .. " -> " .. message)
      assert.is_truthy(message:find(wanted, 1, true), message)
    end
    local message = message_of(function() srv.schema({}, { optionl = true }) end)
    assert.is_truthy(message:find('s06_schemas_spec.lua:%d+: .*did you mean "optional"?'), message)
  end)
end)

describe("schemas of a route", function()
  it("fill req.valid by source, and tell all faults at once with their place", function()
    local app = srv.app()
    app:post("/:id", {
      params = { id = "integer" }, query = { page = "integer>=1 = 1", tag = "slug[]?" }, headers = { ["x-n"] = "integer?" },
      cookies = { c = "integer?" }, body = { a = "integer" },
    }, function(req) return { p = req.valid.params, q = req.valid.query, h = req.valid.headers, c = req.valid.cookies, b = req.valid.body } end)
    local t = srv.test(app)
    assert.same({ p = { id = 5 }, q = { page = 1, tag = { "x" } }, h = { ["x-n"] = 3 }, c = { c = 4 }, b = { a = 1 } },
      t:post("/5?tag=x&other=1", { json = { a = 1 }, headers = { ["X-N"] = "3" }, cookies = { c = "4" } }):json())
    local faults = t:post("/x?page=0", { json = { a = "1" }, headers = { ["X-N"] = "z" }, cookies = { c = "z" } }):expect(400)
      :expect { code = "invalid" }:json().errors
    local seen = {}
    for _, fault in ipairs(faults) do seen[fault["in"] .. fault.path] = fault.code end
    assert.same({ ["params/id"] = "type", ["query/page"] = "too_small", ["headers/x-n"] = "type", ["cookies/c"] = "type", ["body/a"] = "type" }, seen)
    t:post("/5"):expect(400):expect { errors = { { ["in"] = "body", code = "required" } } }
    t:post("/5", { form = { a = "1" } }):expect(200):expect { b = { a = 1 } }
  end)

  it("that may be missing and is leaves nil; a part without a schema is misuse", function()
    local app = srv.app()
    app:post("/", { body = "object?" }, function(req) return { body = req.valid.body == nil } end)
    app:post("/misuse", { body = "object?" }, function(req) return { req.valid.query } end)
    local t = srv.test(app)
    t:post("/"):expect { body = true }
    t:post("/", { json = { a = 1 } }):expect { body = false }
    t:post("/misuse"):expect(500)
  end)

  it("read forms by their names: groups, lists, rows", function()
    local app = srv.app()
    local body = { author = { name = "string" }, tags = "slug[] = []", rows = srv.schema({ { n = "integer" } }, { optional = true }) }
    app:post("/", { body = body, consumes = { "json", "form", "multipart" } }, function(req) return req.valid.body end)
    app:post("/map", { body = { count = { ["*"] = "integer" } } }, function(req) return req.valid.body end)
    local t = srv.test(app)
    t:post("/map", { form = { ["count[0]"] = "5", ["count[1]"] = "6" } }):expect { count = { ["0"] = 5, ["1"] = 6 } }
    t:post("/map", { json = { count = { 5, 6 } } }):expect(400)
    local wanted = { author = { name = "Ann" }, tags = { "a" }, rows = { { n = 1 }, { n = 2 } } }
    local sent = { ["author[name]"] = "Ann", ["tags[]"] = "a", ["rows[0][n]"] = "1", ["rows[1][n]"] = "2" }
    assert.same(wanted, t:post("/", { form = sent }):expect(200):json())
    assert.same(wanted, t:post("/", { multipart = sent }):expect(200):json())
    t:post("/", { form = { ["author[name]"] = "Ann", ["rows[0][n]"] = "x" } }):expect(400):expect { errors = { { path = "/rows/0/n" } } }
    t:post("/", { form = { author = "Ann", ["author[name]"] = "Ann" } }):expect(400):expect { code = "bad_form" }
    -- Where the rule tells an array from a map, numbers need not begin at 0 nor be without gaps.
    t:post("/", { form = { ["author[name]"] = "Ann", ["rows[10][n]"] = "2", ["rows[9][n]"] = "1" } }):expect(200):expect { rows = { { n = 1 }, { n = 2 } } }
  end)

  it("response drops what is not declared, by status", function()
    local app = srv.app()
    app:get("/any", { response = { a = "integer" } }, function() return { a = 1, b = 2 }, 201 end)
    app:get("/by", { response = { [201] = { a = "integer" } } }, function(req) return { a = 1, b = 2 }, req.query.s and 200 or 201 end)
    app:get("/list", { response = { { a = "integer" } } }, function() return { { a = 1, b = 2 } } end)
    app:get("/wrong", { response = { a = "integer" } }, function() return { a = "text" } end)
    local t = srv.test(app)
    t:get("/any"):expect('{"a":1}')
    t:get("/by"):expect('{"a":1}')
    t:get("/by?s=1"):expect('{"a":1,"b":2}')
    t:get("/list"):expect('[{"a":1}]')
    local answer = t:get("/wrong"):expect(200):expect { a = "text" }
    assert.is_truthy(#answer.log > 0)
    -- All rows are sent, and the log has a line for each kind of fault.
    app:get("/rows", { response = { { a = "integer" } } }, function()
      local rows = {}
      for i = 1, 150 do rows[i] = { a = "x", b = 1 } end
      return rows
    end)
    local rows = srv.test(app):get("/rows"):expect(200)
    assert.equal(150, #rows:json())
    assert.same({ 1, 100 }, { #rows.log, rows.log[1].fields.times })
  end)
end)
