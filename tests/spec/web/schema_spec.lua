local errors = require "srv.base.errors"
local json = require "srv.core.json"
local schema = require "srv.web.schema"

local article = schema({
  title = "string 1..200 trim -- shown as the headline",
  url = "url",
  state = "draft|published = draft",
  tags = "slug[] ..8 unique = []",
  summary = "string ..2000|null?",
  author = { name = "string 1..80", email = "email?" },
  links = schema({ { rel = "string", href = "url" } }, { max = 20, optional = true }),
}, { name = "Article", order = { "title", "url" } })

local RIGHT = { title = " A ", url = "https://example.com/a", author = { name = "Ann" } }

local function with(changes)
  local copy = {}
  for key, value in pairs(RIGHT) do copy[key] = value end
  for key, value in pairs(changes) do copy[key] = value end
  return copy
end

describe("schema:check", function()
  it("gives the value, converted and completed", function()
    assert.same({ title = "A", url = "https://example.com/a", state = "draft", tags = {}, author = { name = "Ann" } },
      article:check(RIGHT))
  end)

  it("gives nil and the error of the client: 400 invalid, all faults with path, code and message", function()
    local value, err = article:check(with { url = "x", tags = { "ok", "NO" }, author = { email = "e" } })
    assert.is_nil(value)
    assert.is_true(errors.is(err, "invalid"))
    assert.equal(400, err.status)
    assert.is_true(err.expose)
    assert.same({
      { path = "/url", code = "format", message = "must be an http or https URL" },
      { path = "/author/email", code = "format", message = "must be an email address" },
      { path = "/author/name", code = "required", message = "is required" },
      { path = "/tags/1", code = "format", message = "must be made of a-z, 0-9 and -" },
    }, setmetatable(err.errors, nil))
    assert.equal("the value is not valid: /url must be an http or https URL (and 3 more)", err.message)
  end)

  it("needs a value, unless the schema is optional or has a default", function()
    local _, err = schema("string"):check(nil)
    assert.equal("required", err.errors[1].code)
    assert.is_nil(select(2, schema("string?"):check(nil)))
    assert.equal(5, (schema("integer = 5"):check(nil)))
  end)

  it("converts text if told so, and refuses another source", function()
    local query = schema { page = "integer>=1 = 1", dry = "boolean = false" }
    assert.same({ page = 2, dry = true }, query:check({ page = "2", dry = "on", other = "x" }, { source = "text" }))
    assert.has_error(function() query:check({}, { source = "xml" }) end)
  end)
end)

describe("schema:decode", function()
  it("parses and checks", function()
    assert.same({ a = 1 }, schema({ a = "integer" }):decode '{"a":1}')
  end)

  it("tells broken JSON from a wrong value", function()
    local _, err = schema({ a = "integer" }):decode "{"
    assert.equal("bad_json", err.code)
    _, err = schema({ a = "integer" }):decode '{"a":"1"}'
    assert.equal("invalid", err.code)
  end)
end)

describe("a schema's options", function()
  it("partial: all fields optional, no defaults, a minimum of fields", function()
    local patch = schema(article, { partial = true, min = 1 })
    assert.same({ state = "published" }, patch:check { state = "published" })
    local _, err = patch:check {}
    assert.same({ "", "too_short", "must have at least 1 field" }, { err.errors[1].path, err.errors[1].code, err.errors[1].message })
    _, err = patch:check { title = "" }
    assert.equal("/title", err.errors[1].path)
    assert.same({ summary = json.null }, patch:check { summary = json.null })
    assert.equal("draft", article:check(RIGHT).state, "the original is as it was")
  end)

  it("partial leaves what is inside a field whole: PATCH replaces it", function()
    local _, err = schema(article, { partial = true }):check { author = {} }
    assert.equal("/author/name", err.errors[1].path)
  end)

  it("min, max and unique count items", function()
    local list = schema({ "string" }, { min = 1, max = 2, unique = true })
    assert.is_nil((list:check {}))
    assert.is_nil((list:check { "a", "b", "c" }))
    assert.is_nil((list:check { "a", "a" }))
    assert.same({ "a", "b" }, list:check { "a", "b" })
  end)

  it("check runs last, sees the converted value, may change it and may point at a field", function()
    local span = schema({ from = "integer", to = "integer" }, { check = function(v)
      if v.to < v.from then return nil, "must not lie before from", "to" end
      v.length = v.to - v.from
      return v
    end })
    assert.equal(3, span:check({ from = 1, to = 4 }).length)
    local _, err = span:check { from = 4, to = 1 }
    assert.same({ "/to", "rejected", "must not lie before from" }, { err.errors[1].path, err.errors[1].code, err.errors[1].message })
    _, err = span:check { from = "x", to = 1 }
    assert.equal("type", err.errors[1].code, "check does not see a value that is wrong")
    _, err = schema({ span = span }):check { span = { from = 4, to = 1 } }
    assert.equal("/span/to", err.errors[1].path)
  end)

  it("check that gives no text for a message is told as text", function()
    local _, err = schema("string", { check = function() return nil, 5 end }):check "x"
    assert.equal("5", err.errors[1].message)
  end)

  it("check may wait", function()
    local slow = schema({ a = "integer" }, { check = function(v) coroutine.yield() return v end })
    local co = coroutine.wrap(function() return slow:check { a = 1 } end)
    co()
    assert.same({ a = 1 }, co())
  end)

  it("coerce converts text in JSON, everywhere below", function()
    local loose = schema({ n = "integer", inner = { b = "boolean" }, list = "integer[]" }, { coerce = true })
    assert.same({ n = 5, inner = { b = true }, list = { 7 } }, loose:check { n = "5", inner = { b = "true" }, list = "7" })
    assert.is_nil((loose:check { n = 5, inner = { b = true }, list = {}, other = 1 }))
  end)

  it("default is given to a field that is missing, converted by the rule", function()
    local limits = schema({ wait = schema("duration", { default = "5m" }) })
    assert.same({ wait = 300 }, limits:check {})
  end)

  it("optional lets a field be missing", function()
    assert.same({}, schema({ a = schema("integer", { optional = true }) }):check {})
  end)
end)

describe("any_of", function()
  local shape = schema.any_of(
    { kind = "'circle'", radius = "number >0" },
    { kind = "'box'", width = "number >0", height = "number >0" })

  it("takes the first that fits", function()
    assert.same({ kind = "box", width = 1, height = 2 }, shape:check { kind = "box", width = 1, height = 2 })
  end)

  it("tells the faults of the one that came nearest", function()
    local _, err = shape:check { kind = "box", width = 1, height = -2 }
    assert.equal(1, #err.errors)
    assert.equal("/height", err.errors[1].path)
  end)
end)

describe("lazy", function()
  it("is refused if it stands for itself, each time", function()
    local alone, first, second
    alone = schema.lazy(function() return alone end)
    first, second = schema.lazy(function() return second end), schema.lazy(function() return schema(first, { optional = true }) end)
    for _, lazy in ipairs { alone, first, second, alone, first } do
      local ok, message = pcall(lazy.check, lazy, 1)
      assert.is_false(ok)
      assert.is_truthy(tostring(message):find("stands for itself", 1, true))
      assert.is_false((pcall(lazy.openapi, lazy)))
    end
  end)

  it("goes as deep as JSON does", function()
    local node
    node = schema({ c = schema({ schema.any_of(schema.lazy(function() return node end), "integer") }, { optional = true }) },
      { check = function(v) return v end })
    local function nested(inner) return ('{"c":['):rep(127) .. inner .. ("]}"):rep(127) end -- 256 deep, as JSON may be
    assert.is_truthy(node:check(json.decode(nested "{}", 256)))
    local _, err = node:check(json.decode(nested '{"c":"x"}', 256))
    assert.equal(("/c/0"):rep(127) .. "/c", err.errors[1].path)
  end)

  it("lets a schema hold itself", function()
    local tree
    tree = schema { value = "integer", children = schema({ schema.lazy(function() return tree end) }, { optional = true }) }
    assert.same({ value = 1, children = { { value = 2, children = { { value = 3 } } } } },
      tree:check { value = 1, children = { { value = 2, children = { { value = 3 } } } } })
    local _, err = tree:check { value = 1, children = { { value = 2, children = { { value = "x" } } } } }
    assert.equal("/children/0/children/0/value", err.errors[1].path)
  end)
end)

describe("a mistake in a schema", function()
  local MISTAKES = {
    { 'unknown type "strng", did you mean "string"', function() schema "strng" end },
    { 'field "author": field "email": unknown type "emial"', function() schema { author = { email = "emial" } } end },
    { 'unknown option "partail", did you mean "partial"', function() schema({}, { partail = true }) end },
    { '"min" is for objects and arrays', function() schema("string", { min = 1 }) end },
    { '"max" is a whole number from 0 on, not 1.5', function() schema({ "any" }, { max = 1.5 }) end },
    { '"min" is a whole number from 0 on, not -1', function() schema({ "any" }, { min = -1 }) end },
    { '"min" is more than "max"', function() schema({ "any" }, { min = 2, max = 1 }) end },
    { 'a count is a whole number from 0 on, not 1.5', function() schema("string 1.5..2") end },
    { 'a count is a whole number from 0 on, not -1', function() schema("slug[] -1..") end },
    { 'unknown type "int", did you mean "integer"?', function() schema("int 1..5") end },
    { 'unknown type "bool", did you mean "boolean"?', function() schema { a = "bool" } end },
    { '"partial" is for objects', function() schema("string[]", { partial = true }) end },
    { '"unique" is for arrays', function() schema({}, { unique = true }) end },
    { 'order names "x", which is no field', function() schema({ a = "any" }, { order = { "x" } }) end },
    { "a name is made of", function() schema({}, { name = "a b" }) end },
    { "the default x does not fit: it must be a whole number", function() schema("integer", { default = "x" }) end },
    { "a table is { rule } for an array or { field = rule }, not both", function() schema { "string", a = "string" } end },
    { "a field's name must be a string, not 7", function() schema { [7] = "string" } end },
    { "a rule is a string, a table, a function or a schema, not true", function() schema { a = true } end },
    { "any_of wants rules", function() schema.any_of() end },
    { 'unknown type "nope"', function() schema.any_of("string", "nope") end },
    { "lazy wants a function", function() schema.lazy("string") end },
  }
  for _, case in ipairs(MISTAKES) do
    it("is raised at start on the line that made it: " .. case[1], function()
      local line = debug.getinfo(case[2], "S").linedefined
      local ok, message = pcall(case[2])
      assert.is_false(ok)
      assert.matches(case[1], message, 1, true)
      assert.matches("schema_spec.lua:" .. line .. ": srv.schema", message, 1, true)
    end)
  end
end)

describe("for the router", function()
  it("a checker names the part of the request in each fault", function()
    local value, faults = schema({ page = "integer" }):checker "query" { page = "x" }
    assert.same({ page = "x" }, value)
    assert.same({ { ["in"] = "query", path = "/page", code = "type", message = "must be a whole number" } }, faults)
    _, faults = schema({ a = "integer" }):checker "form" { a = "1", b = "2" }
    assert.same({ { ["in"] = "body", path = "/b", code = "unknown", message = "is unknown" } }, faults)
    assert.equal("the body is not valid: /b is unknown", schema.invalid(faults).message)
  end)

  it("headers are found in any case, and keep the name that the rule gives them", function()
    assert.same({ ["X-Token"] = 5 }, (schema({ ["X-Token"] = "integer" }):checker "headers" { ["x-token"] = "5", other = "x" }))
    local _, faults = schema({ ["X-Token"] = "integer" }):checker "headers" {}
    assert.equal("/X-Token", faults[1].path)
    assert.equal("the headers are not valid: /X-Token is required", schema.invalid(faults).message)
  end)

  it("a list in headers or params has its items between commas", function()
    assert.same({ ids = { 1, 2 } }, (schema({ ids = "integer[]" }):checker "params" { ids = "1,2" }))
    assert.same({ ids = { "1,2" } }, (schema({ ids = "string[]" }):checker "query" { ids = "1,2" }))
    local check = schema({ ["X-Tags"] = "slug[] ..3", ["X-N"] = "integer[]?" }):checker "headers"
    assert.same({ ["X-Tags"] = { "a", "b" } }, (check { ["x-tags"] = "a ,, b," }))
    assert.same({ ["X-Tags"] = { "a" }, ["X-N"] = { 1, 2 } }, (check { ["x-tags"] = "a", ["x-n"] = "1, 2" }))
    local _, faults = check { ["x-tags"] = "a, B" }
    assert.same({ { ["in"] = "headers", path = "/X-Tags/1", code = "format", message = "must be made of a-z, 0-9 and -" } }, faults)
  end)

  it("a missing body is one fault of the whole", function()
    local _, faults = schema({ a = "integer?" }):checker "body" (nil)
    assert.same({ { ["in"] = "body", path = "", code = "required", message = "is required" } }, faults)
    assert.equal("the body is required", schema.invalid(faults).message)
  end)

  it("an answerer drops what is not declared and always gives a value", function()
    local answer = schema { id = "integer", title = "string" }
    local value, faults = answer:answerer(false) { id = 1, title = "x", secret = "s" }
    assert.same({ id = 1, title = "x" }, value)
    assert.is_nil(faults)
    value, faults = answer:answerer(true) { id = "1", secret = "s" }
    assert.same({ id = "1" }, value)
    assert.same({ "/id type", "/title required", "/secret unknown" },
      { faults[1].path .. " " .. faults[1].code, faults[2].path .. " " .. faults[2].code, faults[3].path .. " " .. faults[3].code })
  end)

  it("an answer is built to its end, however many faults it has", function()
    local rows = {}
    for i = 1, 250 do rows[i] = { id = "x", secret = i } end
    for _, noted in ipairs { false, true } do
      assert.equal(250, #schema({ { id = "integer" } }):answerer(noted)(rows))
      assert.equal(250, #schema({ { id = "integer" } }, { coerce = true }):answerer(noted)(rows))
    end
  end)

  it("what is wrong is told of behind any number of undeclared fields", function()
    local rows = {}
    for i = 1, 200 do rows[i] = { id = i < 200 and i or "x", secret = 1 } end
    local _, faults = schema({ { id = "integer" } }):answerer(true)(rows)
    assert.equal(100, #faults)
    assert.same({ path = "/199/id", code = "type", message = "must be a whole number" }, faults[100])
  end)

  it("no undeclared field comes through with another fault", function()
    local function keys(v)
      local names = {}
      for name in pairs(v) do names[#names + 1] = name end
      return table.concat(names, " ")
    end
    for _, noted in ipairs { false, true } do
      local long = schema({ { id = "integer" } }, { max = 1 }):answerer(noted)({ { id = 1, secret = 1 }, { id = 2, secret = 2 } })
      assert.same({ 2, "id" }, { #long, keys(long[2]) })
      assert.equal("id", keys((schema.any_of({ id = "integer" }, { name = "string" }):answerer(noted)({ id = "x", secret = 1 }))))
    end
  end)

  it("an alternative fits an answer in spite of undeclared fields, in --dev too", function()
    local either = schema.any_of({ id = "integer" }, { ["*"] = "string", id = "string", name = "string" })
    local value, faults = either:answerer(true)({ id = 1, a = 1, b = 2, c = 3 })
    assert.equal(1, value.id)
    for _, fault in ipairs(faults) do assert.equal("unknown", fault.code) end
  end)

  it("a schema knows whether only multipart can bring it", function()
    assert.is_true(schema({ photos = "file[] ..3" }):wants_file())
    assert.is_false(article:wants_file())
  end)
end)
