--- The option `tls`: of whoever connects to a server, how it is verified and what it is shown; of who listens, what
--- clients are shown and whether they must show something.
---
---     tls = { ca = "ca.pem", cert = "me.pem", key = "me.key", verify = true, server_name = "b.example", pin = "sha256/..." }
---     tls = { cert = "b.pem", key = "b.key", client_ca = "ca.pem", client_cert = "required" }
---
--- What is PEM may be the text itself or the path of a file, which is read again when it has changed.
local core_crypto = require "srv.core.crypto"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"

local tls = {}

local KNOWN = { ca = "string", cert = "string", key = "string", verify = "boolean", server_name = "string", pin = "any" }
local KNOWN_BARE = { alpn = "any" } -- of protocols that are not HTTP
for name, kind in pairs(KNOWN) do KNOWN_BARE[name] = kind end
local KNOWN_SERVER = {
  cert = "string", key = "string", client_ca = "string", client_cert = "none|optional|required", alpn = "any",
}
local PIN_BYTES, PINS_MAX = 32, 32
local ALPN_MAX, ALPN_BYTES_MAX = 8, 255
local PIN = "^sha256//?(" .. ("[^=]"):rep(43) .. "=?)$" -- a hash may begin with a slash of its own

--- Settings as C wants them (src/client/client_tls.h), but for the name.
---@class srv.TlsSettings
---@field id string           what tells them apart
---@field trusts_all boolean
---@field ca string?
---@field cert string?
---@field key string?
---@field pins string?        one behind the other
---@field server_name string?
---@field is_bare boolean?    not HTTP
---@field alpn string?        names that end with NUL each; of a bare one

local DEFAULT = { id = "", trusts_all = false }

local function check_pem(where, name, value)
  if value and (value == "" or value:find "%z") then
    misuse(('%s: option "%s" must be the path of a file in PEM or its text'):format(where, name))
  end
end

--- "sha256/BASE64" of a public key, also with two slashes as curl has it.
local function read_pin(where, pin)
  local text = type(pin) == "string" and (pin:match(PIN) or pin)
  local bytes = text and core_crypto.decode("base64", text)
  if not bytes or #bytes ~= PIN_BYTES then
    misuse(where .. ': option "pin" must be "sha256/" and the hash of a public key in base64, or a list of these')
  end
  return bytes
end

local function read_pins(where, pin)
  if pin == nil then return nil end
  local list, pins = type(pin) == "table" and pin or { pin }, {}
  for i, one in ipairs(list) do pins[i] = read_pin(where, one) end
  if #pins == 0 or #pins > PINS_MAX then misuse(('%s: option "pin" must have 1 to %d pins'):format(where, PINS_MAX)) end
  return table.concat(pins)
end

local function read_alpn(where, alpn)
  if alpn == nil then return nil end
  local list, names = type(alpn) == "table" and alpn or { alpn }, {}
  for i, name in ipairs(list) do
    if type(name) ~= "string" or name == "" or #name > ALPN_BYTES_MAX or name:find "%z" then
      misuse(where .. ': option "alpn" must be a name of 1 to 255 bytes, or a list of these')
    end
    names[i] = name .. "\0"
  end
  if #names == 0 or #names > ALPN_MAX then misuse(('%s: option "alpn" must have 1 to %d names'):format(where, ALPN_MAX)) end
  return table.concat(names)
end

local function id_of(settings)
  local parts = {
    tostring(settings.trusts_all), settings.ca or "", settings.cert or "", settings.key or "", settings.pins or "",
  }
  if settings.is_bare then parts[#parts + 1] = settings.alpn or "" end
  for i, part in ipairs(parts) do parts[i] = #part .. ":" .. part end
  return core_crypto.hash("sha256", table.concat(parts), "hex") -- a key in PEM is no part of other keys
end

local function check_pems(where, checked)
  for _, name in ipairs { "ca", "cert", "key", "client_ca" } do check_pem(where, name, checked[name]) end
  if checked.key and not checked.cert then misuse(where .. ': option "key" belongs to a "cert"') end
end

local function read(where, opts, known)
  where = where .. ': option "tls"'
  local checked = options.check(where, opts, known)
  check_pems(where, checked)
  if checked.server_name and (checked.server_name == "" or checked.server_name:find "[%c%s/]") then
    misuse(where .. ': option "server_name" must be the name of a host')
  end
  local settings = {
    trusts_all = checked.verify == false, ca = checked.ca, cert = checked.cert, key = checked.key,
    pins = read_pins(where, checked.pin), server_name = checked.server_name and checked.server_name:lower(),
    is_bare = known == KNOWN_BARE, alpn = read_alpn(where, checked.alpn),
  }
  settings.id = id_of(settings)
  return settings
end

--- OPTS of the caller, checked; nil are the defaults.
---@param where string
---@param opts table?
---@return srv.TlsSettings
function tls.settings(where, opts)
  if opts == nil then return DEFAULT end
  return read(where, opts, KNOWN)
end

--- The same for a protocol that is not HTTP, which may have a name for ALPN.
---@param where string
---@param opts table?
---@return srv.TlsSettings
function tls.bare(where, opts) return read(where, opts, KNOWN_BARE) end

--- Of who listens, as C wants them (src/bind/lsocket_server.c).
---@param where string
---@param opts table
---@return srv.core.socket.ServerSettings
function tls.server(where, opts)
  where = where .. ': option "tls"'
  local checked = options.check(where, opts, KNOWN_SERVER)
  check_pems(where, checked)
  if not checked.cert then misuse(where .. ': a "cert" is missing: a certificate in PEM, with its "key"') end
  local asks = checked.client_cert and checked.client_cert ~= "none"
  if asks and not checked.client_ca then
    misuse(where .. ': option "client_cert" needs a "client_ca", who signs the certificates of clients')
  end
  if checked.client_ca and not checked.client_cert then
    misuse(where .. ': option "client_ca" needs client_cert = "optional" or "required"')
  end
  checked.alpn = read_alpn(where, checked.alpn)
  return checked
end

--- SETTINGS for the server NAME, as C wants them (srv.core.fetch.Tls).
---@param settings srv.TlsSettings
---@param name string
---@return srv.core.fetch.Tls
function tls.towards(settings, name)
  return {
    id = settings.id, name = name, trusts_all = settings.trusts_all, ca = settings.ca, cert = settings.cert,
    key = settings.key, pins = settings.pins, is_bare = settings.is_bare, alpn = settings.alpn,
  }
end

--- What of SETTINGS holds for another server than the one they were made for: our certificate, pins and a name are
--- for that one alone, and so is trust without a look.
---@param settings srv.TlsSettings
---@return srv.TlsSettings
function tls.elsewhere(settings)
  if not settings.ca then return DEFAULT end
  local fewer = { trusts_all = false, ca = settings.ca }
  fewer.id = id_of(fewer)
  return fewer
end

return tls
