--- URLs (API, section 13): srv.url. By the letter of RFC 3986: what it does not allow is refused when
--- read and percent-encoded when written.
local errors = require "srv.base.errors"
local formats = require "srv.base.formats"
local json = require "srv.base.json"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local text = require "srv.base.text"

local url = {}

local byte, find, match, sub = string.byte, string.find, string.match, string.sub

local URL_BYTES_MAX = 64 * 1024
local PAIRS_MAX = 1000 -- as req.query has it
local PORT_MAX = 65535

-- What may stand in a part besides percent-escapes, as the inside of a set.
local IN_HOST = "%w%-._~!$&'()*+,;="
local IN_USERINFO = IN_HOST .. ":"
local IN_PATH = IN_USERINFO .. "@/"
local IN_QUERY = IN_PATH .. "?"

-- Schemes whose URLs are nothing without a host (RFC 9110, 4.2; RFC 6455, 3).
local NEEDS_HOST = { http = true, https = true, ws = true, wss = true }

---@class srv.Url
---@field scheme string?    lower case: "https"
---@field user string?      decoded
---@field password string?  decoded
---@field host string?      lower case; an IPv6 address without its brackets
---@field port integer?     as it stands there: none is filled in
---@field path string       encoded, maybe ""
---@field query string?     encoded, without its "?": url.query() takes it apart
---@field fragment string?  encoded, without its "#"

local function invalid(message) return errors.coded("invalid", "the URL is not valid: " .. message) end

-- Percent-encoding -----------------------------------------------------------------------------------

local function check_text(where, value)
  local kind = type(value)
  if kind ~= "string" and kind ~= "number" then
    misuse(("srv.url.%s: expected a string, not a %s"):format(where, kind))
  end
  return tostring(value)
end

--- The first "%" in S without two digits behind it.
local function find_broken_escape(s)
  local at = find(s, "%", 1, true)
  while at do
    if not find(s, "^%x%x", at + 1) then return at end
    at = find(s, "%", at + 3, true)
  end
end

--- VALUE as a part of a URL: all but letters, digits and - . _ ~ is percent-encoded.
---@param value string|number
---@return string
function url.encode(value) return text.percent_encode(check_text("encode", value)) end

--- The bytes that percent-encoded text stands for. "+" is a plus: only queries have it for a space.
---@param value string
---@return string?
---@return srv.Error? err  invalid: a broken escape
function url.decode(value)
  value = check_text("decode", value)
  local at = find_broken_escape(value)
  if at then return nil, errors.coded("invalid", ("a broken percent-escape at byte %d"):format(at)) end
  return text.percent_decode(value)
end

-- Parsing --------------------------------------------------------------------------------------------

--- Why PART (a "host", a "path") cannot be made of these bytes; nil: it can.
local function fault_in(what, part, allowed)
  local at = find(part, "[^" .. allowed .. "%%]")
  if at then
    local char = sub(part, at, at)
    local shown = find(char, "[%w%p ]") and ("%q"):format(char) or ("the byte 0x%02X"):format(byte(char))
    return ("%s cannot stand in a %s unless percent-encoded"):format(shown, what)
  end
  if find_broken_escape(part) then return ("a broken percent-escape in the " .. what) end
end

--- PART before and after the first MARK; no second value where there is none.
local function cut(part, mark)
  local at = find(part, mark, 1, true)
  if not at then return part end
  return sub(part, 1, at - 1), sub(part, at + 1)
end

local function read_userinfo(parts, userinfo)
  local fault = fault_in("user or password", userinfo, IN_USERINFO)
  if fault then return fault end
  local user, password = cut(userinfo, ":")
  parts.user, parts.password = text.percent_decode(user), password and text.percent_decode(password)
end

local function read_port(parts, port)
  if port == "" then return end
  local number = not find(port, "%D") and tonumber(port)
  if not number or number > PORT_MAX then return "the port must be a number up to 65535" end
  parts.port = number
end

--- [ userinfo "@" ] host [ ":" port ]. Returns the fault.
local function read_authority(parts, authority)
  local before, after = cut(authority, "@")
  local fault = after and read_userinfo(parts, before)
  if fault then return fault end
  local address = after or before
  local ipv6, port = match(address, "^%[([^%]]*)%](.*)$")
  if ipv6 then
    if not formats.ipv6(ipv6) then return "there is no IPv6 address between the brackets" end
    if port ~= "" and byte(port) ~= 58 then return "something other than a port follows the brackets" end
    parts.host = ipv6:lower()
    return read_port(parts, sub(port, 2))
  end
  local host, host_port = cut(address, ":")
  parts.host = host:lower()
  return fault_in("host", host, IN_HOST) or host_port and read_port(parts, host_port)
end

--- Takes the scheme off REST. Returns what is left, or nil and the fault.
local function read_scheme(parts, rest)
  local scheme, after = match(rest, "^([^:/]*):()")
  if not scheme then return rest end
  if not find(scheme, "^%a[%w+.-]*$") then return nil, "what stands before the first colon is no scheme" end
  parts.scheme = scheme:lower()
  return sub(rest, after)
end

--- What stands between the scheme and the query. Returns the fault.
local function read_hierarchy(parts, rest)
  if sub(rest, 1, 2) == "//" then
    local path_at = find(rest, "/", 3, true) or #rest + 1
    local fault = read_authority(parts, sub(rest, 3, path_at - 1))
    if fault then return fault end
    rest = sub(rest, path_at)
  end
  parts.path = rest
  return fault_in("path", rest, IN_PATH)
end

local function host_fault(parts)
  if NEEDS_HOST[parts.scheme] and (parts.host or "") == "" then return parts.scheme .. " needs a host" end
end

--- Takes a URL apart, or a relative reference ("/a?b", "//host/a", "#c"). Parts that are not there are
--- nil; "?" with nothing behind it makes an empty query.
---@param value string
---@return srv.Url?
---@return srv.Error? err  invalid
function url.parse(value)
  if type(value) ~= "string" then misuse("srv.url.parse: expected a string, not a " .. type(value)) end
  if #value > URL_BYTES_MAX then return nil, invalid "it is longer than 64 KiB" end
  local before_fragment, fragment = cut(value, "#")
  local before_query, query = cut(before_fragment, "?")
  local parts = { query = query, fragment = fragment }
  local rest, fault = read_scheme(parts, before_query)
  fault = fault or read_hierarchy(parts, rest) or host_fault(parts)
    or query and fault_in("query", query, IN_QUERY)
    or fragment and fault_in("fragment", fragment, IN_QUERY)
  if fault then return nil, invalid(fault) end
  return parts
end

-- Queries --------------------------------------------------------------------------------------------

local WHOLE_MAX = 2 ^ 53

local function value_text(name, value)
  local kind = type(value)
  if kind == "string" then return value end
  if kind == "number" and value % 1 == 0 and math.abs(value) <= WHOLE_MAX then return ("%d"):format(value) end
  if kind == "boolean" or kind == "number" and value - value == 0 then return tostring(value) end
  if kind == "cdata" then
    local digits = match(tostring(value), "^(-?%d+)U?LL$")
    if digits then return digits end
  end
  misuse(("srv.url.query: %q must be a string, number, boolean or a list of these, not %s")
    :format(name, kind == "number" and tostring(value) or "a " .. kind))
end

local function sorted_names(values)
  local names = {}
  for name in pairs(values) do
    if type(name) ~= "string" then misuse("srv.url.query: names are strings, not a " .. type(name)) end
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

local function write_query(values)
  local pieces = {}
  for _, name in ipairs(sorted_names(values)) do
    local value = values[name]
    for _, one in ipairs(type(value) == "table" and value or { value }) do
      pieces[#pieces + 1] = text.percent_encode(name) .. "=" .. text.percent_encode(value_text(name, one))
    end
  end
  return table.concat(pieces, "&")
end

local function form_decode(piece) return text.percent_decode((piece:gsub("%+", " "))) end

--- One more value of NAME: repeats make an array.
local function add_value(values, name, value)
  local had = values[name]
  if type(had) == "table" then
    had[#had + 1] = value
  else
    values[name] = had == nil and value or json.array { had, value }
  end
end

local function read_query(query)
  local values, count = json.object {}, 0
  for pair in query:gmatch("[^&]+") do
    count = count + 1
    if count > PAIRS_MAX then return nil, errors.coded("invalid", "the query has more than 1,000 pairs") end
    local name, value = cut(pair, "=")
    add_value(values, form_decode(name), form_decode(value or ""))
  end
  return values
end

--- A table as a query, without "?": names in byte order, so that equal tables give equal URLs; an array
--- repeats its name. Or a query as a table, by the rules of req.query: "+" is a space, repeats make an
--- array, a broken escape stays as it is.
---@param values table<string, string|number|boolean|(string|number|boolean)[]>|string
---@return string|table<string, string|string[]>|nil
---@return srv.Error? err  invalid: a text with more than 1,000 pairs
function url.query(values)
  if type(values) == "table" then return write_query(values) end
  if type(values) == "string" then return read_query(values) end
  misuse("srv.url.query: expected a table or a string, not a " .. type(values))
end

-- Building -------------------------------------------------------------------------------------------

local FIELDS = {
  scheme = "string", user = "string", password = "string", host = "string", port = "number", path = "string",
  query = "string", fragment = "string",
}

local function refuse(message) misuse("srv.url.build: " .. message) end

local function check_fields(parts)
  if type(parts) ~= "table" then refuse("expected a table, not a " .. type(parts)) end
  for name, value in pairs(parts) do
    local kind = FIELDS[name]
    if not kind then refuse(options.unknown("field", name, FIELDS)) end
    if type(value) ~= kind and not (name == "query" and type(value) == "table") then
      refuse(("%s must be a %s, not a %s"):format(name, kind, type(value)))
    end
  end
end

local function write_host(host)
  if formats.ipv6(host) then return "[" .. host .. "]" end
  local fault = fault_in("host", host, IN_HOST)
  if fault then refuse(fault) end
  return host
end

local function write_authority(parts)
  if not parts.host then
    local alone = parts.port and "port" or parts.user and "user" or parts.password and "password"
    if alone then refuse("a " .. alone .. " needs a host") end
    return ""
  end
  if parts.password and not parts.user then refuse "a password needs a user" end
  local port = parts.port
  if port and (port % 1 ~= 0 or port < 0 or port > PORT_MAX) then refuse "the port must be a whole number up to 65535" end
  local userinfo = parts.user and text.percent_encode(parts.user)
    .. (parts.password and ":" .. text.percent_encode(parts.password) or "") .. "@"
  return "//" .. (userinfo or "") .. write_host(parts.host) .. (port and (":%d"):format(port) or "")
end

--- A path after which another parser would see other parts is refused.
local function check_path(parts, path)
  if parts.host then
    if path ~= "" and byte(path) ~= 47 then refuse 'after a host, the path must begin with "/"' end
  elseif sub(path, 1, 2) == "//" then
    refuse 'without a host, the path cannot begin with "//": a host would follow'
  elseif not parts.scheme and find(path, "^[^/]*:") then
    refuse "without a scheme, the path's first segment cannot have a colon: a scheme would end there"
  end
end

local function percent(char) return ("%%%02X"):format(byte(char)) end

--- What is not allowed in PART is encoded; whole escapes stay.
local function write_part(part, allowed)
  part = part:gsub("[^" .. allowed .. "%%]", percent)
  return (part:gsub("%%(%x?%x?)", function(digits) return (#digits == 2 and "%" or "%25") .. digits end))
end

--- "?" and the query, "" for none.
local function query_part(query)
  if type(query) == "table" then
    local written = write_query(query)
    return written ~= "" and "?" .. written or ""
  end
  return query and "?" .. write_part(query, IN_QUERY) or ""
end

--- A URL of its parts, as url.parse() gives them; the query may be a table. User and password are
--- encoded whole, in path, query and fragment what RFC 3986 forbids there.
---@param parts srv.Url
---@return string
function url.build(parts)
  check_fields(parts)
  local scheme, path = parts.scheme, write_part(parts.path or "", IN_PATH)
  if scheme and not find(scheme, "^%a[%w+.-]*$") then refuse(("%q is no scheme"):format(scheme)) end
  local fault = host_fault(parts)
  if fault then refuse(fault) end
  check_path(parts, path)
  return (scheme and scheme .. ":" or "") .. write_authority(parts) .. path .. query_part(parts.query)
    .. (parts.fragment and "#" .. write_part(parts.fragment, IN_QUERY) or "")
end

return url
