--- Cookies (RFC 6265): read from a request, written into an answer, signed with the server's secret.
local crypto = require "srv.core.crypto"
local env = require "srv.core.env"
local json = require "srv.base.json"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local text = require "srv.base.text"

local cookie = {}

--- The secrets, newest first: the first signs, all verify. The server shares one among its workers
--- even where none is set; only a VM without a server makes its own.
local function read_secrets()
  local list = {}
  for secret in (env.settings().secret or ""):gmatch("[^,%s]+") do list[#list + 1] = secret end
  if #list == 0 then list[1] = crypto.random(32) end
  return list
end

local secrets

--- The first signs, all verify.
---@return string[]
function cookie.secrets()
  secrets = secrets or read_secrets()
  return secrets
end

--- "s:" value "." HMAC-SHA256. The name is signed too: a value is good under its own name only.
local function signed_text(name, value)
  return "s:" .. value .. "." .. crypto.sign(cookie.secrets()[1], name .. "=" .. value)
end

--- The value that was signed, or false when it is forged.
local function unsign(name, sent)
  local value, signature = sent:match("^s:(.*)%.([%w_-]+)$")
  if not value then return false end
  for _, secret in ipairs(cookie.secrets()) do
    if crypto.verify(secret, name .. "=" .. value, signature) then return value end
  end
  return false
end

local function unquote(value)
  return value:match('^"(.*)"$') or value
end

--- All cookies of a Cookie header, decoded; the first of a name wins.
---@param header string?
---@return table<string, string>
function cookie.parse_all(header)
  local found = {}
  for pair in (header or ""):gmatch("[^;]+") do
    local name, value = pair:match("^%s*([^=%s]+)%s*=(.*)$")
    if name and not found[name] then found[name] = text.percent_decode(unquote(text.trim(value))) end
  end
  return found
end

--- Those that are not signed.
---@param header string?
---@return table<string, string>
function cookie.parse(header)
  local plain = json.object {}
  for name, value in pairs(cookie.parse_all(header)) do
    if value:sub(1, 2) ~= "s:" then plain[name] = value end
  end
  return plain
end

--- One cookie as it was set: nil when it was not sent, false when its signature is forged.
---@param all table<string, string>
---@param name string
---@param opts { signed?: boolean, json?: boolean }?
---@return any
function cookie.read(all, name, opts)
  opts = options.check("req:cookie", opts, { signed = "boolean", json = "boolean" })
  local value = all[name]
  if value and opts.signed then value = unsign(name, value) end
  if not value or not opts.json then return value end
  return value:sub(1, 2) == "j:" and json.decode(value:sub(3)) or nil
end

local OPTIONS = {
  path = "string", http_only = "boolean", same_site = "any", secure = "any", max_age = "duration",
  domain = "string", signed = "boolean", partitioned = "boolean",
}
local SAME_SITE = { strict = "Strict", lax = "Lax", none = "None" }

local function same_site(value)
  if value == nil then value = "lax" end
  if value == false then return "" end
  local word = SAME_SITE[value] or misuse('res:cookie: same_site must be "lax", "strict", "none" or false')
  return "; SameSite=" .. word
end

local function check_path(path)
  if path:sub(1, 1) ~= "/" then misuse(('res:cookie: path %q must begin with "/"'):format(path)) end
  if path:find "[%c;]" then misuse "res:cookie: path has bytes that a cookie cannot hold" end
  return path
end

--- A name as it goes to a resolver; other alphabets as Punycode.
local function check_domain(domain)
  if not domain:find "^%.?%w[%w.-]*$" then misuse(("res:cookie: domain %q is no name of a host"):format(domain)) end
  return domain
end

local VALUES = { string = true, number = true, boolean = true, table = true }

local function encode_value(name, value, signed)
  if not VALUES[type(value)] then misuse("res:cookie: a value is a text, a number or a table, not a " .. type(value)) end
  local encoded = type(value) == "table" and "j:" .. json.encode(value) or tostring(value)
  return text.percent_encode(signed and signed_text(name, encoded) or encoded)
end

local function lifetime(max_age)
  if not max_age then return "", "" end
  local seconds = math.ceil(max_age) -- 0 would take it back
  return ("; Max-Age=%d"):format(seconds), "; Expires=" .. env.http_date(seconds <= 0 and 0 or env.now() + seconds)
end

--- Browsers drop a cookie that breaks these rules without a word, so they are faults of the app: a name that begins so
--- (in any case), `partitioned` and same_site = "none" want Secure, "__Host-" also the whole of one host.
local function check_prefix(name, opts)
  if not name:lower():find "^__host%-" then return name:lower():find "^__secure%-" ~= nil end
  if opts.domain or (opts.path or "/") ~= "/" then
    misuse(('res:cookie: %q is for one whole host: no domain, and path "/"'):format(name))
  end
  return true
end

local function check_secure(name, opts, on_tls)
  local secure = opts.secure
  if secure ~= nil and secure ~= "auto" and type(secure) ~= "boolean" then
    misuse 'res:cookie: option "secure" must be true, false or "auto"'
  end
  local must_be = check_prefix(name, opts) or opts.partitioned == true or opts.same_site == "none"
  if secure == false and must_be then
    misuse(('res:cookie: browsers drop %q without `secure`: for its name, `partitioned` or same_site = "none"'):format(name))
  end
  if type(secure) == "boolean" then return secure end
  return on_tls or must_be
end

--- Of name and value together; what is larger browsers drop.
local BYTES_MAX = 4096

local function check_size(name, value)
  if #name + #value > BYTES_MAX then
    misuse(("res:cookie: %q has %d bytes; browsers drop what is over %d: keep it in a session or in srv.cache")
      :format(name, #name + #value, BYTES_MAX))
  end
  return value
end

--- The value of one Set-Cookie field.
---@param name string
---@param value any
---@param opts table?
---@param on_tls boolean  decides `secure = "auto"`
---@return string
function cookie.write(name, value, opts, on_tls)
  opts = options.check("res:cookie", opts, OPTIONS)
  if type(name) ~= "string" or not text.is_token(name) then
    misuse(("res:cookie: %q is no name for a cookie"):format(tostring(name)))
  end
  local secure = check_secure(name, opts, on_tls)
  local max_age, expires = lifetime(opts.max_age)
  return table.concat {
    name, "=", check_size(name, encode_value(name, value, opts.signed)), max_age,
    opts.domain and "; Domain=" .. check_domain(opts.domain) or "",
    "; Path=", check_path(opts.path or "/"), expires,
    opts.http_only == false and "" or "; HttpOnly", secure and "; Secure" or "",
    opts.partitioned and "; Partitioned" or "", same_site(opts.same_site),
  }
end

return cookie
