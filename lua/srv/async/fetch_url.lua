--- Where a call of srv.http goes: URLs taken apart for the wire, references resolved, proxies found.
local errors = require "srv.base.errors"
local formats = require "srv.base.formats"
local text = require "srv.base.text"
local url = require "srv.base.url"

local fetch_url = {}

local PORTS = { http = 80, https = 443 }

---@class srv.FetchTarget
---@field scheme "http"|"https"
---@field host string       lower case, an IPv6 address without brackets
---@field port integer
---@field authority string  as in a Host field: the scheme's own port is left out
---@field path string       "/" at least, with the query
---@field user string?
---@field password string?

local function bracketed(host) return formats.ipv6(host) and "[" .. host .. "]" or host end

--- What an absolute URL of http or https means.
---@param value string
---@return srv.FetchTarget?
---@return srv.Error? err  invalid
function fetch_url.target(value)
  local parts, err = url.parse(value)
  if not parts then return nil, err end
  local default = PORTS[parts.scheme or ""]
  if not default then
    return nil, errors.coded("invalid", ("the URL is not valid: %q does not begin with http:// or https://"):format(value))
  end
  local port, host = parts.port or default, bracketed(parts.host)
  if port == 0 then return nil, errors.coded("invalid", "the URL is not valid: nothing listens on port 0") end
  return {
    scheme = parts.scheme, host = parts.host, port = port, user = parts.user, password = parts.password,
    authority = port == default and host or host .. ":" .. port,
    path = (parts.path ~= "" and parts.path or "/") .. (parts.query and "?" .. parts.query or ""),
  }
end

--- The URL of a target, without its user.
---@param target srv.FetchTarget
---@return string
function fetch_url.text(target) return target.scheme .. "://" .. target.authority .. target.path end

--- A URL as it may stand in messages and logs: queries hold keys.
---@param address string
---@return string
function fetch_url.shown(address) return (address:gsub("%?.*$", "")) end

---@param a srv.FetchTarget
---@param b srv.FetchTarget
---@return boolean
function fetch_url.is_same_origin(a, b)
  return a.scheme == b.scheme and a.host == b.host and a.port == b.port
end

-- References -----------------------------------------------------------------------------------------

--- RFC 3986, 5.2.4.
local function without_dots(path)
  local kept, ends_in_folder = {}, false
  for segment in path:gmatch("/([^/]*)") do
    ends_in_folder = segment == "." or segment == ".."
    if segment == ".." then
      kept[#kept] = nil
    elseif segment ~= "." then
      kept[#kept + 1] = segment
    end
  end
  return "/" .. table.concat(kept, "/") .. (ends_in_folder and #kept > 0 and "/" or "")
end

local function merge(base_path, path)
  if path:sub(1, 1) == "/" then return without_dots(path) end
  return without_dots(base_path:match("^.*/") .. path)
end

--- What the Location REFERENCE means at BASE (RFC 3986, 5.2.2). Bytes that no URL may hold are encoded:
--- many servers send them.
---@param base srv.FetchTarget
---@param reference string
---@return srv.FetchTarget?
---@return srv.Error? err  invalid
function fetch_url.resolve(base, reference)
  local parts, err = url.parse(text.encode_url(reference))
  if not parts then return nil, err end
  if parts.scheme then return fetch_url.target(text.encode_url(reference)) end
  local query = parts.query and "?" .. parts.query or ""
  if parts.host then return fetch_url.target(base.scheme .. ":" .. text.encode_url(reference)) end
  local base_path, base_query = base.path:match("^([^?]*)(.*)$")
  local path = parts.path == "" and base_path .. (parts.query and query or base_query)
    or merge(base_path, parts.path) .. query
  return {
    scheme = base.scheme, host = base.host, port = base.port, authority = base.authority, path = path,
  }
end

-- Proxies --------------------------------------------------------------------------------------------

local function env(name)
  local value = os.getenv(name:lower()) or os.getenv(name)
  return value ~= "" and value or nil
end

local function is_loopback(host)
  return host == "localhost" or host:find("^127%.") and formats.ipv4(host) or host == "::1"
end

--- Whether NO_PROXY names it: "*", a host, a domain with all beneath it, each maybe with a port.
local function is_exempt(target, list)
  for entry in list:lower():gmatch("[^,%s]+") do
    local name, port = entry:match("^%[(.-)%]:?(%d*)$")
    if not name then name, port = entry:match("^([^:]*):?(%d*)$") end
    name = name or entry -- an IPv6 address without brackets
    local domain = name:gsub("^%*?%.", "")
    local fits = name == "*" or target.host == domain or target.host:sub(-#domain - 1) == "." .. domain
    if fits and (not port or port == "" or tonumber(port) == target.port) then return true end
  end
  return false
end

--- The proxy that the environment names for TARGET (HTTP_PROXY, HTTPS_PROXY, NO_PROXY, in lower case
--- first), or nil. This machine itself is never asked by way of a proxy.
---@param target srv.FetchTarget
---@return string?
function fetch_url.proxy_of_environment(target)
  local proxy = env(target.scheme:upper() .. "_PROXY")
  if not proxy or is_loopback(target.host) or is_exempt(target, env "NO_PROXY" or "") then return nil end
  return proxy:find("://", 1, true) and proxy or "http://" .. proxy
end

return fetch_url
