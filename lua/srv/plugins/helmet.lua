--- srv.helmet (API, section 14): the headers that tell browsers to be careful, as helmet 8 has them.
---
--- They are set when the answer goes out, where the app has not set its own. Two of helmet's defaults are harmful
--- without TLS and are sent on TLS alone: Strict-Transport-Security (RFC 6797, 7.2 forbids it there), and
--- upgrade-insecure-requests, which breaks pages on plain HTTP.
local factory = require "srv.base.factory"
local http = require "srv.core.http"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local text = require "srv.base.text"
local units = require "srv.base.units"

local OPTIONS = { csp = "any", hsts = "any", frame = "any", referrer = "any", coop = "any", corp = "any", coep = "any" }

local CSP = "default-src 'self';base-uri 'self';font-src 'self' https: data:;form-action 'self';"
  .. "frame-ancestors 'self';img-src 'self' data:;object-src 'none';script-src 'self';script-src-attr 'none';"
  .. "style-src 'self' https: 'unsafe-inline'"
local UPGRADE = ";upgrade-insecure-requests"

--- option, header, default
local CHOSEN = {
  { "coop", "Cross-Origin-Opener-Policy", "same-origin" },
  { "corp", "Cross-Origin-Resource-Policy", "same-origin" },
  { "coep", "Cross-Origin-Embedder-Policy", false },
  { "referrer", "Referrer-Policy", "no-referrer" },
  { "frame", "X-Frame-Options", "SAMEORIGIN" },
}
local FIXED = {
  { "Origin-Agent-Cluster", "?1" },
  { "X-Content-Type-Options", "nosniff" },
  { "X-DNS-Prefetch-Control", "off" },
  { "X-Download-Options", "noopen" },
  { "X-Permitted-Cross-Domain-Policies", "none" },
  { "X-XSS-Protection", "0" },
}

-- Options ---------------------------------------------------------------------------------------------

--- A string, false, or the default where there is neither.
local function chosen(opts, name, default)
  local value = opts[name]
  if value == nil then return default end
  if value == false or type(value) == "string" and value ~= "" and text.is_field_value(value) then return value end
  misuse(("srv.helmet: option %q must be the header's text, or false"):format(name))
end

--- "365d", or the whole header as in "max-age=63072000; includeSubDomains; preload".
local function hsts_of(opts)
  local value = chosen(opts, "hsts", "365d")
  if not value or value:find "^max%-age=%d+" then return value end
  local seconds = units.duration(value)
  if not seconds then misuse 'srv.helmet: hsts must be a duration like "365d", "max-age=...", or false' end
  return ("max-age=%d; includeSubDomains"):format(seconds)
end

-- Headers ---------------------------------------------------------------------------------------------

local function add(fields, name, value)
  if not value then return end
  fields[#fields + 1], fields[#fields + 2] = name, value
end

--- What is sent, as C keeps it: putting it on an answer is one call.
local function fields_for(opts, is_secure)
  local fields = {}
  local csp, hsts = chosen(opts, "csp", is_secure and CSP .. UPGRADE or CSP), hsts_of(opts)
  add(fields, "Content-Security-Policy", csp)
  if is_secure then add(fields, "Strict-Transport-Security", hsts) end
  for _, one in ipairs(CHOSEN) do add(fields, one[2], chosen(opts, one[1], one[3])) end
  for _, one in ipairs(FIXED) do add(fields, one[1], one[2]) end
  return http.field_list(fields)
end

---@class srv.HelmetOptions  each the header's text, or false for none
---@field csp string|false|nil       Content-Security-Policy; helmet 8's
---@field hsts string|false|nil      "365d"; on TLS only
---@field frame string|false|nil     "SAMEORIGIN"
---@field referrer string|false|nil  "no-referrer"
---@field coop string|false|nil      "same-origin"
---@field corp string|false|nil      "same-origin"
---@field coep string|false|nil      false

--- Security headers on every answer.
---@param opts srv.HelmetOptions?
---@return table plugin
return factory.name("srv.helmet", function(opts)
  opts = options.check("srv.helmet", opts, OPTIONS)
  local plain, secure = fields_for(opts, false), fields_for(opts, true)
  return {
    name = "helmet",
    hooks = {
      -- In place of what the helmet of a mount further out has set: the inner one decides.
      send = function(req, res) http.set_defaults(res, req.secure and secure or plain) end,
    },
  }
end)
