--- Rules, and what they say of themselves in JSON Schema, held against each other: each rule's schema is a valid one of
--- 2020-12, and python3-jsonschema takes by it what the rule takes. Where both differ, the list below says why.
local exec = require "srv.async.exec"
local json = require "srv.core.json"
local schema = require "srv.web.schema"

--- Where the sources are; srv.exec begins in the app's folder.
local ROOT = io.popen("pwd"):read "*l"

local function python(...) return assert(exec({ "python3", ... }, { timeout = "60s", cwd = ROOT })) end

local function available() return python("-c", "import jsonschema").status == 0 end

-- The values, as JSON texts -------------------------------------------------------------------------------

local VALUES = {}
for value in ([==[
null true false 0 -0 1 2 5 9 10 -1 -2 1.0 1.5 0.5 0.1 -1.5 1e3 3600 3601 9007199254740991 1e300 "" "a" "ab" "aa" "abc" "abcd"
"AB" "é" "ééé" "😀😀😀" "\u0020a" "1-" "12-ab" "draft" "auto" "x" "1" "5" "-5" "007" "-0" "4" "12345678901234567890"
"ann@example.com" "ann" "https://example.com/a" "ftp://example.com/" "HTTP://a.b" "3f2b8a0e-5c1d-4e7a-9b60-1d2c3e4f5a6b"
"3f2b8a0e5c1d4e7a9b601d2c3e4f5a6b" "2024-02-29" "2023-02-29" "2024-02-29T12:00:00Z" "12:00:00Z" "12:00" "5s" "0.5h" "5\u0020s"
"1KiB" "1kb" "127.0.0.1" "127.0.0.01" "::1" "10.0.0.0/8" "::/0" "example.com" "-a.com" "a-b" "A-B" "c0ffee" "c0f" "c3J2" "c3J"
"c3J=" "abcdef" [] [1] [1,1] [1,1.0] [1,2] [1,2,3] [1,2,3,4] ["a"] ["a","b"] ["a","b","c"] [null,1] [["a"]] [[1]] [{"a":1}]
[{"a":1},{"a":1}] [{"a":"x"}] [true,1] [0,-0,false] [9007199254740991,9007199254740990] {} {"a":1} {"a":"x"} {"a":1,"b":"y"}
{"a":1,"b":"y","c":2} {"b":"y"} {"b":2} {"a":{"b":1}} {"a":{"b":"x"}} {"a":{"a":{}}} {"a":{"a":1}} {"c":1} {"a":6} {"":1}
{"__proto__":1} {"a/b":1}
]==]):gmatch "%S+" do VALUES[#VALUES + 1] = value end

-- The rules -------------------------------------------------------------------------------------------------

local tree
tree = schema { a = schema(schema.lazy(function() return tree end), { optional = true }) }

local RULES = {
  "string", "string 1..3", "string 2..", "string /%d+-%a*/", "string /[^a]+/", "string /(%a)%1/", "string ..5 /.-/",
  "integer", "integer 1..9", "integer >1", "integer <-1", "number", "number >0", "number <=1.5", "number 0.5..2", "boolean",
  "null", "any", "object", "array", "bigint", "email", "url", "uuid", "date", "time", "datetime", "duration",
  "duration 1s..1h", "bytes", "bytes ..1KiB", "ip", "ipv4", "ipv6", "cidr", "host", "slug", "hex", "base64", "slug /a.*/",
  "hex 2..4", "draft|auto", "1|2|3", "1|'a'", "'a'|null", "integer|null", "integer|'auto'", "ip|null", "duration|null",
  "string|integer", "string[]", "string[] 1..2", "any[] unique", "(integer|null)[]", "(string[])[]", "any[] unique ..3",
  "(1|2)[]", { a = "integer" }, { a = "integer|null?", b = "string?" }, { a = "any = x" }, { ["*"] = "integer" },
  { a = "integer", ["*"] = "drop" }, { a = { b = "integer" } }, { "integer" }, { { a = "integer" } },
  { ["a/b"] = "integer", a = "any?" }, schema({ a = "any", b = "string = x" }, { partial = true, min = 1 }),
  schema({ ["*"] = "any" }, { max = 1 }), schema({ "any" }, { min = 1, max = 2, unique = true }),
  schema.any_of({ a = "integer" }, { b = "string" }, "string"), tree, schema({ a = "integer 1..5" }, { name = "Named" }),
}

-- Where they differ -----------------------------------------------------------------------------------------

--- Formats that python3-jsonschema does not look at without other packages.
local NOT_LOOKED_AT = { time = true, datetime = true, host = true }

local BEYOND_2_53 = { ["1e300"] = true, ["12345678901234567890"] = true, ["9007199254740991"] = true }

--- Why may RULE and its schema disagree about VALUE? TAKEN: it is the rule that takes it.
local function reason(rule, value, taken)
  if type(rule) ~= "string" then return nil end
  if rule == "bigint" and taken then return tonumber(value) and "numbers are taken, and become the digits that are told of" end
  if taken then return nil end
  if NOT_LOOKED_AT[rule] and value:sub(1, 1) == '"' then return "the format is only a word there" end
  if BEYOND_2_53[value:gsub('"', "")] and not rule:find "^number" then return "whole numbers lie within 2^53, durations within 1,000 years" end
  if rule:find "^duration 1s" and value == '"12345678901234567890"' then return "the bounds are those of numbers there" end
end

local function judged(rules)
  local cases = {}
  for i, rule in ipairs(rules) do cases[i] = { schema = schema(rule):openapi(), values = json.array(VALUES) } end
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write((assert(json.encode(cases))))
  file:close()
  local output = python("tests/support/schema_check.py", path)
  os.remove(path)
  return assert(json.decode(output.stdout), output.stderr)
end

local function shown(rule) return type(rule) == "string" and rule or (json.encode(schema(rule):openapi())) end

describe("a rule and its JSON Schema", function()
  if not available() then return pending "python3-jsonschema is not here" end

  it("agree about every value, but for the reasons listed", function()
    local verdicts, drifted = judged(RULES), {}
    for i, rule in ipairs(RULES) do
      assert.is_table(verdicts[i], shown(rule) .. ": " .. tostring(verdicts[i]))
      for j, text in ipairs(VALUES) do
        local _, err = schema(rule):decode(text)
        local taken = err == nil
        if taken ~= verdicts[i][j] and not reason(rule, text, taken) then
          drifted[#drifted + 1] = ("%s: %s is %s"):format(shown(rule), text, taken and "taken" or "refused")
        end
      end
    end
    assert.same({}, drifted)
  end)

  it("differ in what the rule makes right before it looks: blanks, case, null for what may be missing", function()
    for rule, text in pairs { ["string ..1 trim"] = '" a "', ["string lower /[a-z]/"] = '"A"' } do
      assert.is_nil(select(2, schema(rule):decode(text)))
    end
    assert.is_nil(select(2, schema({ a = "integer?" }):decode '{"a":null}'))
  end)
end)
