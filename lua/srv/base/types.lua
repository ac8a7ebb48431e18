--- The types that rules name: what a value of each is, and how that is said to people and in
--- OpenAPI. How their checks are written as code stands in rule_code.lua.
local formats = require "srv.base.formats"
local json = require "srv.core.json"

local types = {}

---@class srv.RuleType
---@field family "text"|"number"|nil  text has a length; numbers compare
---@field bounded boolean             may stand with `..`
---@field expected string             "must be ..."
---@field format? fun(s: string): boolean
---@field openapi table               JSON Schema, with no format but those that are registered: validators that are
---                                   strict stop at others

local function text(expected, format, openapi)
  openapi.type = "string"
  return { family = "text", bounded = true, expected = expected, format = format, openapi = openapi }
end

--- Text that has no registered format.
local function shaped(expected, format, regex, example)
  return text(expected, format, { pattern = regex, examples = json.array { example } })
end

--- A number, or text with a unit.
local function measure(expected, kind, units, example)
  return {
    family = "number", bounded = true, expected = expected,
    openapi = {
      type = json.array { kind, "string" }, minimum = 0, pattern = "^[0-9]+\\.?[0-9]*(" .. units .. ")?$",
      examples = json.array { example },
    },
  }
end

local function number(expected, openapi)
  return { family = "number", bounded = true, expected = expected, openapi = openapi }
end

local function plain(expected, openapi) return { bounded = false, expected = expected, openapi = openapi } end

local TYPES = {
  string = text("text", nil, {}),
  email = text("an email address", formats.email, { format = "email" }),
  url = text("an http or https URL", formats.url, { format = "uri", pattern = "^[hH][tT][tT][pP][sS]?://" }),
  uuid = text("a UUID", formats.uuid, { format = "uuid" }),
  date = text("a date like 2024-05-31", formats.date, { format = "date" }),
  time = text("a time like 13:45:00Z", formats.time, { format = "time" }),
  datetime = text("a date and time like 2024-05-31T13:45:00Z", formats.datetime, { format = "date-time" }),
  ip = text("an IP address", formats.ip, {
    anyOf = json.array { json.object { type = "string", format = "ipv4" }, json.object { type = "string", format = "ipv6" } },
  }),
  ipv4 = text("an IPv4 address", formats.ipv4, { format = "ipv4" }),
  ipv6 = text("an IPv6 address", formats.ipv6, { format = "ipv6" }),
  cidr = shaped("a network like 10.0.0.0/8", formats.cidr, "^[0-9A-Fa-f:.]+/[0-9]{1,3}$", "10.0.0.0/8"),
  host = text("a host name", formats.host, { format = "hostname" }),
  slug = shaped("made of a-z, 0-9 and -", formats.slug, "^[a-z0-9-]+$", "a-slug"),
  hex = shaped("hexadecimal digits", formats.hex, "^[0-9A-Fa-f]+$", "c0ffee"),
  base64 = text("base64", formats.base64, {
    contentEncoding = "base64", pattern = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    examples = json.array { "c3J2" },
  }),
  integer = number("a whole number", { type = "integer" }),
  number = number("a number", { type = "number" }),
  bigint = number("a whole number", {
    type = "string", pattern = "^(0|-?[1-9][0-9]*)$", examples = json.array { "12345678901234567890" },
  }),
  duration = measure('a duration like "5s"', "number", "ms|s|m|h|d", "5s"),
  bytes = measure('a size like "64KiB"', "integer", "B|KiB|MiB|GiB|kB|MB|GB", "64KiB"),
  boolean = plain("true or false", { type = "boolean" }),
  null = plain("null", { type = "null" }),
  any = plain("a value", {}),
  object = plain("an object", { type = "object" }),
  array = plain("an array", { type = "array" }),
  file = { bounded = true, expected = "a file", openapi = { type = "string", format = "binary" } },
}

local NAMES = {}
for name in pairs(TYPES) do NAMES[#NAMES + 1] = name end
table.sort(NAMES)

---@param name string
---@return srv.RuleType?
function types.get(name) return TYPES[name] end

---@param name string
---@return boolean
function types.is_type(name) return TYPES[name] ~= nil end

---@param name string?
---@return "text"|"number"|nil
function types.family(name) return name and TYPES[name].family end

---@param name string?
---@return boolean
function types.is_bounded(name) return name ~= nil and TYPES[name].bounded end

--- All names, in byte order.
---@return string[]
function types.names() return NAMES end

return types
