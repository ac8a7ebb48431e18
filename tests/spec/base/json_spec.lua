local json = require "srv.base.json"

local function raised_by(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok)
  return message
end

describe("json.encode", function()
  it("writes arrays, objects and null, members in byte order", function()
    assert.equal('[1,"a",null]', json.encode { 1, "a", json.null })
    assert.equal('{"B":1,"a":{"y":2,"z":1}}', json.encode { a = { z = 1, y = 2 }, B = 1 })
    assert.equal("[]", json.encode {})
    assert.equal("{}", json.encode(json.object {}))
    assert.equal('{"c":1,"a":2,"b":3}', json.encode(json.object({ a = 2, b = 3, c = 1 }, { "c" })))
  end)

  it("writes for people when asked to", function()
    assert.equal('{\n  "a": [\n    1\n  ]\n}', json.encode({ a = { 1 } }, { pretty = true }))
  end)

  it("raises misuse with the path, blamed on the caller", function()
    local message = raised_by(json.encode, { items = { {}, { price = 0 / 0 } } })
    assert.truthy(message:find("srv.json.encode: items[2].price is NaN", 1, true))
    local function caller() return json.encode(print), 1 end
    assert.truthy(raised_by(caller):find("^[^:]*json_spec.lua:%d+: srv%.json%.encode: the value is a function"))
  end)

  it("refuses unknown options", function()
    assert.truthy(raised_by(json.encode, 1, { prety = true }):find('did you mean "pretty"', 1, true))
  end)

  it("calls __tojson wherever it stands, and again on what it returns", function()
    local Money = { __tojson = function(self) return { amount = self[1], unit = "EUR" } end }
    local Outer = { __tojson = function(self) return { total = self.total } end }
    local bill = setmetatable({ total = setmetatable({ 5 }, Money) }, Outer)
    assert.equal('[{"total":{"amount":5,"unit":"EUR"}}]', json.encode { bill })
  end)

  it("keeps marks around what it resolved", function()
    local Gone = { __tojson = function() return nil end }
    assert.equal('{"b":{}}', json.encode(json.object { a = setmetatable({}, Gone), b = json.object {} }))
  end)

  it("lets a __tojson wait", function()
    local Slow = { __tojson = function() return coroutine.yield("waiting") end }
    local wait = coroutine.wrap(function() return json.encode { a = setmetatable({}, Slow) } end)
    assert.equal("waiting", wait())
    assert.equal('{"a":7}', wait(7))
  end)

  it("gives up on a __tojson that gives itself, and on a circle", function()
    local Same = {}
    Same.__tojson = function() return setmetatable({}, Same) end
    assert.truthy(raised_by(json.encode, setmetatable({}, Same)):find("16 times over", 1, true))
    local circle = { setmetatable({}, { __tojson = function() return 1 end }) }
    circle[2] = circle
    assert.truthy(raised_by(json.encode, circle))
  end)
end)

describe("json.decode", function()
  it("gives back what was encoded, marked", function()
    local value = json.decode '{"a":[],"b":{},"n":null,"x":0.1}'
    assert.is_true(json.is_array(value.a))
    assert.is_true(json.is_object(value.b))
    assert.equal(json.null, value.n)
    assert.equal('{"a":[],"b":{},"n":null,"x":0.1}', json.encode(value))
  end)

  it("tells line, column and path of a fault", function()
    local value, err = json.decode '{\n "items": [1, 2,, 3]\n}'
    assert.is_nil(value)
    assert.equal("bad_json", err.code)
    assert.equal(400, err.status)
    assert.same({ 2, 17, "/items/2" }, { err.line, err.column, err.path })
  end)

  it("bounds the depth", function()
    local deep = ("["):rep(65) .. ("]"):rep(65)
    assert.is_nil(json.decode(deep))
    assert.truthy(json.decode(deep, { depth = 65 }))
    assert.truthy(raised_by(json.decode, deep, { depth = 257 }):find("from 1 to 256", 1, true))
    assert.truthy(raised_by(json.decode, 12):find("expected a string", 1, true))
  end)

  it("keeps integers that no number can hold", function()
    assert.equal("9007199254740993", json.decode "9007199254740993")
    assert.equal(9007199254740992, json.decode "9007199254740992")
  end)
end)
