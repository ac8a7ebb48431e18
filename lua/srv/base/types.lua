--- The types that rules name: what a value of each is, and how that is said to people and in
--- OpenAPI. How their checks are written as code stands in rule_code.lua.
local formats = require "srv.base.formats"

local types = {}

---@class srv.RuleType
---@field family "text"|"number"|nil  text has a length; numbers compare
---@field bounded boolean             may stand with `..`
---@field expected string             "must be ..."
---@field format? fun(s: string): boolean
---@field openapi table

local function text(expected, format, openapi_format)
  return {
    family = "text", bounded = true, expected = expected, format = format,
    openapi = { type = "string", format = openapi_format },
  }
end

local function number(expected, openapi)
  return { family = "number", bounded = true, expected = expected, openapi = openapi }
end

local function plain(expected, openapi) return { bounded = false, expected = expected, openapi = openapi } end

local TYPES = {
  string = text("text"),
  email = text("an email address", formats.email, "email"),
  url = text("an http or https URL", formats.url, "uri"),
  uuid = text("a UUID", formats.uuid, "uuid"),
  date = text("a date like 2024-05-31", formats.date, "date"),
  time = text("a time like 13:45:00Z", formats.time, "time"),
  datetime = text("a date and time like 2024-05-31T13:45:00Z", formats.datetime, "date-time"),
  ip = text("an IP address", formats.ip, "ip"),
  ipv4 = text("an IPv4 address", formats.ipv4, "ipv4"),
  ipv6 = text("an IPv6 address", formats.ipv6, "ipv6"),
  cidr = text("a network like 10.0.0.0/8", formats.cidr, "cidr"),
  host = text("a host name", formats.host, "hostname"),
  slug = text("made of a-z, 0-9 and -", formats.slug, "slug"),
  hex = text("hexadecimal digits", formats.hex, "hex"),
  base64 = text("base64", formats.base64, "byte"),
  integer = number("a whole number", { type = "integer" }),
  number = number("a number", { type = "number" }),
  bigint = number("a whole number", { type = "string", format = "bigint" }),
  duration = number('a duration like "5s"', { type = { "number", "string" }, format = "duration" }),
  bytes = number('a size like "64KiB"', { type = { "integer", "string" }, format = "bytes" }),
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
