local json = require "srv.core.json"
local schema = require "srv.web.schema"

--- Without marks, so that tables compare by content.
local function plain(value)
  if type(value) ~= "table" or value == json.null then return value end
  local out = {}
  for key, inner in pairs(value) do out[key] = plain(inner) end
  return out
end

local function openapi(given, opts) return plain(schema(given, opts):openapi()) end

describe("schema:openapi", function()
  local CASES = {
    { "string", { type = "string" } },
    { "string 1..80 -- a name", { type = "string", minLength = 1, maxLength = 80, description = "a name" } },
    { "string /%a%d+/", { type = "string", pattern = "^[A-Za-z][0-9]+$", maxLength = 1000 } },
    { "string ..9 /%bxy/", { type = "string", maxLength = 9 } },
    { "integer 1..5 = 3", { type = "integer", minimum = 1, maximum = 5, default = 3 } },
    { "number >0", { type = "number", exclusiveMinimum = 0 } },
    { "email", { type = "string", format = "email" } },
    { "datetime", { type = "string", format = "date-time" } },
    { "file image/png", { type = "string", format = "binary", contentMediaType = "image/png" } },
    { "draft|published", { type = "string", enum = { "draft", "published" } } },
    { "80|443", { type = "integer", enum = { 80, 443 } } },
    { "string|null", { type = { "string", "null" } } },
    { "a|b|null", { type = { "string", "null" }, enum = { "a", "b", json.null } } },
    { "integer|'auto'", { anyOf = { { type = "integer" }, { type = "string", enum = { "auto" } } } } },
    { "slug[] ..8 unique", { type = "array", items = { type = "string", pattern = "^[a-z0-9-]+$", examples = { "a-slug" } }, maxItems = 8, uniqueItems = true } },
    { "any", {} },
    { "slug /a.*/", { type = "string", pattern = "^[a-z0-9-]+$", allOf = { { pattern = "^a[\\s\\S]*$" } }, maxLength = 1000, examples = { "a-slug" } } },
    { "ip|null", { anyOf = { { type = "string", anyOf = { { type = "string", format = "ipv4" }, { type = "string", format = "ipv6" } } }, { type = "null" } } } },
    { "duration 1s..1h = 5m", { type = { "number", "string" }, pattern = "^[0-9]+\\.?[0-9]*(ms|s|m|h|d)?$", minimum = 1, maximum = 3600,
      default = 300, examples = { "5s" } } },
  }
  for _, case in ipairs(CASES) do
    it("writes " .. case[1], function() assert.same(case[2], openapi(case[1])) end)
  end

  it("writes objects: what is required, what else may be there", function()
    assert.same({
      type = "object", additionalProperties = false, required = { "a" },
      properties = { a = { type = "integer" }, b = { type = "string" }, c = { type = "string", default = "x" } },
    }, openapi { a = "integer", b = "string?", c = "string = x" })
    assert.same({ type = "object", additionalProperties = { type = "number" } }, openapi { ["*"] = "number" })
    assert.same({ type = "object", properties = { a = { type = "string" } }, additionalProperties = false, minProperties = 1 },
      openapi({ a = "string = x" }, { partial = true, min = 1 }))
  end)

  it("refers to named schemas where components are collected", function()
    local author = schema({ name = "string" }, { name = "Author" })
    local components = {}
    local out = plain(schema({ author = author, editor = author }):openapi(components))
    assert.same({ ["$ref"] = "#/components/schemas/Author" }, out.properties.author)
    assert.same({ ["$ref"] = "#/components/schemas/Author" }, out.properties.editor)
    assert.same({ "name" }, plain(components.Author).required)
    assert.same({ "name" }, plain(author:openapi()).required, "without components it stands where it is used")
  end)

  it("ends on a schema that holds itself", function()
    local tree
    tree = schema { value = "integer", left = schema(schema.lazy(function() return tree end), { optional = true }) }
    local out = plain(tree:openapi())
    assert.equal("#/$defs/Schema1", out["$ref"])
    assert.same({ ["$ref"] = "#/$defs/Schema1" }, out["$defs"].Schema1.properties.left)
  end)
end)
