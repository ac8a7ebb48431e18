--- Origins of pages (RFC 6454): lists that an app gives, held against what a browser says.
local misuse = require "srv.core.task".misuse

local origins = {}

local DEFAULT_PORTS = { http = ":80", https = ":443", ws = ":80", wss = ":443" }

---@param origin any
---@return boolean
function origins.is(origin)
  return type(origin) == "string" and origin:find "^%a[%w+.-]*://[^/%s?#@,]+$" ~= nil
end

--- "https://a.example:8443" -> "a.example:8443"; nil for "null" and what is none. A port that goes without saying
--- is left out.
---@param origin string
---@return string? host  in lower case
function origins.host(origin)
  local scheme, host = origin:lower():match "^(%a[%w+.-]*)://([^/%s?#@,]+)$"
  local default = scheme and DEFAULT_PORTS[scheme]
  if default and host:sub(-#default) == default then host = host:sub(1, -#default - 1) end
  return host
end

--- Whether ORIGIN is a page of HOST ("a.example:8443"), whatever stands between us and the browser: the scheme is not
--- looked at.
---@param origin string
---@param host string
---@return boolean
function origins.is_of_host(origin, host)
  local scheme = origin:match "^(%a[%w+.-]*)://"
  return scheme ~= nil and origins.host(origin) == origins.host(scheme .. "://" .. host)
end

--- Whether ORIGIN is a page of the request's own host. One that came by plain HTTP may be written by anybody on the
--- way, so it is none of ours where the request came over TLS.
---@param origin string
---@param req { host: string, secure: boolean }
---@return boolean
function origins.is_own(origin, req)
  return origins.is_of_host(origin, req.host) and not (req.secure and origin:lower():find "^http://")
end

--- "https://*.b.example" -> a Lua pattern: any host beneath b.example, not itself.
local function pattern_of(where, origin)
  local scheme, rest = origin:match "^(%a[%w+.-]*://)%*(%.[^*]+)$"
  if not scheme then
    misuse(('%s: in %q a star may only stand for subdomains: "https://*.b.example"'):format(where, origin))
  end
  return "^" .. scheme:gsub("%p", "%%%0") .. "[%w-][%w.-]*" .. rest:gsub("%p", "%%%0") .. "$"
end

--- A function that tells whether an origin is one of LIST.
---@param where string  begins the message of misuse
---@param list string[]
---@return fun(origin: string): boolean
function origins.matcher(where, list)
  local exact, patterns = {}, {}
  for _, origin in ipairs(list) do
    if not origins.is(origin) then
      misuse(('%s: %q is no origin; one is "https://app.example"'):format(where, tostring(origin)))
    end
    local lower = origin:lower()
    if lower:find("*", 1, true) then patterns[#patterns + 1] = pattern_of(where, lower) else exact[lower] = true end
  end
  return function(origin)
    local lower = origin:lower()
    if exact[lower] then return true end
    for _, pattern in ipairs(patterns) do if lower:find(pattern) then return true end end
    return false
  end
end

return origins
