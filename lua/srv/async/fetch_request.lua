--- From a call's options to a request that can be sent: its target, fields and body.
---
--- Whatever is wrong with options is misuse, blamed on the caller; a URL that is none is the world's, for
--- URLs come from the world.
local core_crypto = require "srv.core.crypto"
local core_env = require "srv.core.env"
local fetch_url = require "srv.async.fetch_url"
local json = require "srv.base.json"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local reader = require "srv.base.reader"
local text = require "srv.base.text"
local tls = require "srv.async.tls"
local units = require "srv.base.units"
local url = require "srv.base.url"

local fetch_request = {}

local KNOWN = {
  query = "any", headers = "table", json = "any", form = "table", multipart = "table", body = "any",
  timeout = "duration", connect_timeout = "duration", first_byte_timeout = "duration", read_timeout = "duration",
  expect = "any",
  redirects = "0..100", retries = "0..100", limit = "bytes", stream = "boolean", unix = "string", proxy = "any",
  auth = "table", tls = "table", http2 = "any",
}
local KNOWN_OF_CLIENT = setmetatable({ base = "string" }, { __index = KNOWN })
for name, kind in pairs(KNOWN) do KNOWN_OF_CLIENT[name] = kind end

local DEFAULTS = {
  timeout = 10, connect_timeout = 3, redirects = 5, retries = 2, limit = units.bytes "10MiB", stream = false,
}

local USER_AGENT = "srv/" .. (core_env.version or "0")

--- Sent again after a fault without being asked (RFC 9110, 9.2.2).
local IDEMPOTENT = { GET = true, HEAD = true, PUT = true, DELETE = true, OPTIONS = true, TRACE = true }
--- A body is what these are about, so having none is said (RFC 9110, 8.6).
local NEEDS_LENGTH = { POST = true, PUT = true, PATCH = true }

---@class srv.FetchRequest
---@field method string
---@field target srv.FetchTarget
---@field fields { [1]: string, [2]: string }[]  name as it is sent, value
---@field body string|srv.Reader|function|nil
---@field length integer?       of a body that is streamed; nil: nobody knows
---@field idempotent boolean
---@field is_h1 boolean?         the server wants it in HTTP/1.1
---@field opts table

-- Options --------------------------------------------------------------------------------------------

local function check_proxy(where, proxy)
  if proxy == nil or proxy == false then return end
  if type(proxy) ~= "string" then misuse(where .. ': option "proxy" must be a URL or false') end
end

local function check_unix(where, path)
  if path and (path == "" or path:find("%z") or #path > 107) then
    misuse(where .. ': option "unix" must be the path of a socket')
  end
end

local function check_http2(where, http2)
  if http2 == nil or type(http2) == "boolean" or http2 == "prior" then return end
  misuse(where .. ': option "http2" must be true, false or "prior"')
end

--- Misuse, if HTTP2 is no value of that option.
fetch_request.check_http2 = check_http2

local function check_auth(where, auth)
  if not auth then return end
  if type(auth[1]) ~= "string" or type(auth[2]) ~= "string" or auth[1]:find("[:%c]") or auth[2]:find("%c") then
    misuse(where .. ': option "auth" must be { user, password }, and the user without a colon')
  end
end

local BODIES = { "json", "form", "multipart", "body" }

local function check_bodies(where, opts)
  local given
  for _, name in ipairs(BODIES) do
    if opts[name] ~= nil then
      if given then misuse(("%s: only one of %q and %q can be the body"):format(where, given, name)) end
      given = name
    end
  end
end

--- What a caller gave for one call, or a client as defaults of all, checked.
---@param where string
---@param opts table?
---@param of_client boolean?
---@return table
function fetch_request.check(where, opts, of_client)
  local checked = options.check(where, opts, of_client and KNOWN_OF_CLIENT or KNOWN)
  check_proxy(where, checked.proxy)
  check_unix(where, checked.unix)
  check_auth(where, checked.auth)
  check_http2(where, checked.http2)
  check_bodies(where, checked)
  if checked.tls then checked.tls = tls.settings(where, checked.tls) end
  return checked
end

local function lower_names(headers)
  local lower = {}
  for name, value in pairs(headers or {}) do
    lower[type(name) == "string" and name:lower() or name] = { name, value }
  end
  return lower
end

--- OVER's fields in the place of BASE's, whatever the case of their names.
local function merge_headers(base, over)
  local merged = {}
  local lower = lower_names(over)
  for name, value in pairs(base or {}) do
    if not lower[type(name) == "string" and name:lower() or name] then merged[name] = value end
  end
  for name, value in pairs(over or {}) do merged[name] = value end
  return merged
end

local function merge_query(base, over)
  if type(base) ~= "table" or type(over) ~= "table" then return over == nil and base or over end
  local merged = {}
  for name, value in pairs(base) do merged[name] = value end
  for name, value in pairs(over) do merged[name] = value end
  return merged
end

--- A client's defaults with what one call says.
---@param defaults table
---@param opts table
---@return table
function fetch_request.merge(defaults, opts)
  local merged = {}
  for name, value in pairs(DEFAULTS) do merged[name] = value end
  local has_body = opts.json ~= nil or opts.form ~= nil or opts.multipart ~= nil or opts.body ~= nil
  for name, value in pairs(defaults) do merged[name] = value end
  if has_body then
    for _, name in ipairs(BODIES) do merged[name] = nil end
  end
  for name, value in pairs(opts) do merged[name] = value end
  merged.headers = merge_headers(defaults.headers, opts.headers)
  merged.query = merge_query(defaults.query, opts.query)
  return merged
end

-- Fields ---------------------------------------------------------------------------------------------

local FRAMING = {
  connection = true, ["transfer-encoding"] = true, te = true, trailer = true, upgrade = true, expect = true,
  ["keep-alive"] = true, ["proxy-connection"] = true,
}

local function check_field(where, name, value)
  if type(name) ~= "string" or not text.is_token(name) then
    misuse(("%s: %q is no name for a header"):format(where, tostring(name)))
  end
  if FRAMING[name:lower()] then misuse(("%s: the header %s is the connection's, and set by srv alone"):format(where, name)) end
  local kind = type(value)
  if kind ~= "string" and kind ~= "number" then
    misuse(("%s: the header %s must be a string, a number, a list of these or false, not a %s"):format(where, name, kind))
  end
  value = tostring(value)
  if not text.is_field_value(value) then
    misuse(("%s: the value of the header %s has bytes that HTTP forbids (a line break?)"):format(where, name))
  end
  return value
end

local function add_field(where, fields, name, value)
  if type(value) ~= "table" then
    fields[#fields + 1] = { name, check_field(where, name, value) }
    return
  end
  for _, line in ipairs(value) do fields[#fields + 1] = { name, check_field(where, name, line) } end
end

--- The fields of HEADERS in a stable order. What is `false` is not sent, also where it has a default.
local function read_headers(where, headers)
  local names, fields, given = {}, {}, {}
  for name in pairs(headers) do names[#names + 1] = name end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for _, name in ipairs(names) do
    local value = headers[name]
    if type(name) == "string" then given[name:lower()] = value end
    if value ~= false then add_field(where, fields, name, value) end
  end
  return fields, given
end

--- Misuse, if one of them could not be sent.
---@param where string
---@param headers table
function fetch_request.check_fields(where, headers) read_headers(where, headers) end

-- Bodies ---------------------------------------------------------------------------------------------

local function quote(s)
  return (s:gsub('["\r\n]', { ['"'] = "%22", ["\r"] = "%0D", ["\n"] = "%0A" }))
end

local function part_text(where, name, value)
  local kind = type(value)
  if kind == "table" then
    if type(value.body) ~= "string" then
      misuse(("%s: the part %q must be a text, a number or { body =, name =, type = }"):format(where, name))
    end
    local file = value.name and ('; filename="%s"'):format(quote(tostring(value.name))) or ""
    local media_type = value.type or value.name and "application/octet-stream"
    if media_type and not text.is_field_value(media_type) then
      misuse(("%s: the type of the part %q has bytes that HTTP forbids"):format(where, name))
    end
    return ('Content-Disposition: form-data; name="%s"%s\r\n%s\r\n%s\r\n'):format(quote(name), file,
      media_type and "Content-Type: " .. media_type .. "\r\n" or "", value.body)
  end
  if kind ~= "string" and kind ~= "number" and kind ~= "boolean" then
    misuse(("%s: the part %q must be a text, a number or { body =, name =, type = }"):format(where, name))
  end
  return ('Content-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'):format(quote(name), tostring(value))
end

--- Parts in byte order of their names; a list is several parts of one name.
local function write_multipart(where, parts)
  local names, pieces = {}, {}
  local boundary = core_crypto.random(16, "hex")
  for name in pairs(parts) do
    if type(name) ~= "string" then misuse(where .. ": parts of a multipart body have names") end
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local value = parts[name]
    local list = type(value) == "table" and value.body == nil and value or { value }
    for _, one in ipairs(list) do pieces[#pieces + 1] = "--" .. boundary .. "\r\n" .. part_text(where, name, one) end
  end
  pieces[#pieces + 1] = "--" .. boundary .. "--\r\n"
  return table.concat(pieces), "multipart/form-data; boundary=" .. boundary
end

--- A body of PARTS and its media type, for who sends it in another way (srv.test).
fetch_request.multipart = write_multipart

local function is_callable(v)
  local meta = getmetatable(v)
  return type(v) == "function" or type(meta) == "table" and meta.__call ~= nil
end

--- The body and its media type.
local function read_body(where, opts)
  if opts.json ~= nil then return json.encode(opts.json), "application/json" end
  if opts.form then return url.query(opts.form), "application/x-www-form-urlencoded" end
  if opts.multipart then return write_multipart(where, opts.multipart) end
  local body = opts.body
  if body == nil or type(body) == "string" or reader.is(body) or is_callable(body) then return body end
  misuse(where .. ': option "body" must be a string, a reader or a function, not a ' .. type(body))
end

-- Making one -----------------------------------------------------------------------------------------

local function with_query(where, target, query)
  if query == nil then return end
  if type(query) == "table" then query = url.query(query) end
  if type(query) ~= "string" or query:find("[%c%s#\128-\255]") then
    misuse(where .. ': option "query" must be a table or an encoded text')
  end
  if query == "" then return end
  target.path = target.path .. (target.path:find("?", 1, true) and "&" or "?") .. query
end

local function basic(user, password)
  return "Basic " .. core_crypto.encode("base64", user .. ":" .. password)
end

--- The value of Authorization.
fetch_request.basic = basic

local function authorization(target, opts)
  if opts.auth then return basic(opts.auth[1], opts.auth[2]) end
  return target.user and basic(target.user, target.password or "")
end

--- The length of a body that is streamed, if the caller knows it.
local function announced_length(where, given, body)
  local value = given["content-length"]
  if not value then return nil end
  local length = tonumber(value)
  if not length or length < 0 or length % 1 ~= 0 then misuse(where .. ": Content-Length must be a whole number") end
  if (type(body) == "string" or body == nil) and length ~= #(body or "") then
    misuse(("%s: Content-Length is %d, but the body has %d bytes"):format(where, length, #(body or "")))
  end
  return length
end

local function drop_field(fields, lower_name)
  for i = #fields, 1, -1 do
    if fields[i][1]:lower() == lower_name then table.remove(fields, i) end
  end
end
fetch_request.drop_field = drop_field

---@param where string
---@param method string
---@param address string  absolute
---@param opts table      checked and merged
---@return srv.FetchRequest?
---@return srv.Error? err  invalid
function fetch_request.new(where, method, address, opts)
  if type(method) ~= "string" or not text.is_token(method) or method == "CONNECT" then
    misuse(("%s: %q is no method"):format(where, tostring(method)))
  end
  if type(address) ~= "string" then misuse(where .. ": the URL must be a string, not a " .. type(address)) end
  local target, err = fetch_url.target((address:gsub("#.*$", "")))
  if not target then return nil, err end
  with_query(where, target, opts.query)
  local fields, given = read_headers(where, opts.headers or {})
  local body, media_type = read_body(where, opts)
  local length = announced_length(where, given, body)
  drop_field(fields, "content-length")
  local function default(name, value)
    if value and given[name:lower()] == nil then fields[#fields + 1] = { name, value } end
  end
  default("User-Agent", USER_AGENT)
  default("Accept", "*/*")
  default("Content-Type", media_type)
  default("Authorization", authorization(target, opts))
  default("Accept-Encoding", "gzip, deflate, br")
  return {
    method = method, target = target, fields = fields, body = body, length = length, opts = opts,
    decodes = true, idempotent = IDEMPOTENT[method] or false,
  }
end

--- Whether the body can be sent a second time.
---@param request srv.FetchRequest
---@return boolean
function fetch_request.can_repeat(request)
  return request.body == nil or type(request.body) == "string"
end

--- Request line and fields as they go on the wire, and how many fields there are.
---@param request srv.FetchRequest
---@param proxy srv.FetchTarget?
---@return string head
---@return integer fields
function fetch_request.head(request, proxy)
  local target, body, has_host = request.target, request.body, false
  local lines = { "" }
  for _, field in ipairs(request.fields) do
    has_host = has_host or field[1]:lower() == "host"
    lines[#lines + 1] = field[1] .. ": " .. field[2]
  end
  if not has_host then table.insert(lines, 2, "Host: " .. target.authority) end
  if type(body) == "string" then
    lines[#lines + 1] = "Content-Length: " .. #body
  elseif body ~= nil then
    lines[#lines + 1] = request.length and ("Content-Length: %d"):format(request.length) or "Transfer-Encoding: chunked"
  elseif NEEDS_LENGTH[request.method] then
    lines[#lines + 1] = "Content-Length: 0"
  end
  if proxy and proxy.user then
    lines[#lines + 1] = "Proxy-Authorization: " .. basic(proxy.user, proxy.password or "")
  end
  lines[1] = ("%s %s HTTP/1.1"):format(request.method, proxy and fetch_url.text(target) or target.path)
  return table.concat(lines, "\r\n") .. "\r\n\r\n", #lines - 1
end

--- The same for HTTP/2: pseudo-fields first, then fields with names in lower case.
---@param request srv.FetchRequest
---@return { [1]: string, [2]: string }[]
function fetch_request.h2_fields(request)
  local target, body, authority = request.target, request.body, nil
  local fields = {}
  for _, field in ipairs(request.fields) do
    local name = field[1]:lower()
    if name == "host" then authority = field[2] else fields[#fields + 1] = { name, field[2] } end
  end
  local length = type(body) == "string" and #body or body ~= nil and request.length
    or body == nil and NEEDS_LENGTH[request.method] and 0
  if length then fields[#fields + 1] = { "content-length", ("%d"):format(length) } end
  table.insert(fields, 1, { ":method", request.method })
  table.insert(fields, 2, { ":scheme", target.scheme })
  table.insert(fields, 3, { ":authority", authority or target.authority })
  table.insert(fields, 4, { ":path", target.path })
  return fields
end

--- The request that follows a redirect to LOCATION: what browsers do with methods, and credentials for
--- their own origin alone.
---@param request srv.FetchRequest
---@param status integer
---@param target srv.FetchTarget
---@return srv.FetchRequest
function fetch_request.follow(request, status, target)
  local next_one = {}
  for key, value in pairs(request) do next_one[key] = value end
  next_one.target, next_one.fields = target, { unpack(request.fields) }
  local becomes_get = status == 303 and request.method ~= "HEAD"
    or (status == 301 or status == 302) and request.method == "POST"
  if becomes_get and request.method ~= "GET" then
    next_one.method, next_one.body, next_one.length, next_one.idempotent = "GET", nil, nil, true
    for _, name in ipairs { "content-type", "content-encoding", "content-language", "content-location" } do
      drop_field(next_one.fields, name)
    end
  end
  if not fetch_url.is_same_origin(request.target, target) then
    for _, name in ipairs { "authorization", "cookie", "host", "proxy-authorization" } do drop_field(next_one.fields, name) end
    next_one.left_origin = true
    if next_one.opts.tls then
      next_one.opts = setmetatable({ tls = tls.elsewhere(next_one.opts.tls) }, { __index = request.opts })
    end
  end
  return next_one
end

---@param request srv.FetchRequest
---@return boolean
function fetch_request.has_credentials(request)
  for _, field in ipairs(request.fields) do
    if field[1]:lower() == "authorization" then return true end
  end
  return false
end

--- What has a proxy open a tunnel to TARGET (RFC 9110, 9.3.6).
---@param target srv.FetchTarget
---@param proxy srv.FetchTarget
---@return string head
function fetch_request.tunnel(target, proxy)
  local host = target.host:find(":", 1, true) and "[" .. target.host .. "]" or target.host
  local authority = ("%s:%d"):format(host, target.port)
  local auth = proxy.user and ("Proxy-Authorization: %s\r\n"):format(basic(proxy.user, proxy.password or "")) or ""
  return ("CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n"):format(authority, authority, auth)
end

return fetch_request
