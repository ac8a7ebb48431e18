--- A text is checked where it was decoded, a value in a copy: both must come to the same.
local srv = require "srv"

describe("a schema that decodes", function()
  local RULES = {
    { a = "integer 1..9", b = "string 1..5 trim?", c = "date = 2024-01-01" },
    { a = "integer", ["*"] = "drop" },
    { ["*"] = "number" },
    { a = "integer", ["*"] = "string trim" },
    { a = { b = { c = "slug[] ..3" } } },
    { a = "(string trim)[] unique", b = "null|integer?" },
    srv.schema({ a = "integer?", b = "string?" }, { order = { "b", "a" }, partial = true, min = 1 }),
    { a = srv.schema.any_of({ x = "string trim", y = "integer" }, { x = "string", z = "boolean = true" }) },
    { { x = "integer", y = "string = none" } },
    { a = srv.schema("integer", { coerce = true, optional = true }), b = "duration?" },
    { a = function(v) return v == 1 and "one" or nil, "must be 1" end },
    { a = srv.schema({ from = "integer", to = "integer" }, { check = function(v) return v.from < v.to and v or nil, "is empty" end }) },
  }
  local TEXTS = {
    "{}", "[]", "1", '{"a":1}', '{"a":1,"b":"  x "}', '{"a":0,"b":"toolong","c":"no"}', '{"a":"1","b":null,"d":4}',
    '{"a":{"b":{"c":["x","y"]}}}', '{"a":{"b":{"c":["x","Y",1,2]},"z":1}}', '{"a":[" x","x "],"b":null}',
    '{"a":{"x":" s ","z":false}}', '{"a":{"x":" s ","y":1.5}}', '[{"x":1},{"x":2,"y":"z"},{"y":3}]',
    '{"b":"5s"}', '{"a":{"from":1,"to":2}}', '{"a":{"from":2,"to":1}}', '{"x":1,"y":"2"}', '{"a":null}',
  }

  it("comes to what it comes to with a value, and changes no value that it is given", function()
    local accepted = 0
    for _, rule in ipairs(RULES) do
      local schema = srv.schema(rule)
      for _, text in ipairs(TEXTS) do
        local given = srv.json.decode(text)
        local checked, fault = schema:check(given)
        local decoded, decode_fault = schema:decode(text)
        assert.equal(text, srv.json.encode(given))
        assert.equal(checked and srv.json.encode(checked), decoded and srv.json.encode(decoded), text)
        assert.same(fault and fault.errors, decode_fault and decode_fault.errors, text)
        accepted = accepted + (checked and 1 or 0)
      end
    end
    assert.is_true(accepted >= 20)
  end)
end)
