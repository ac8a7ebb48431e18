--- srv.proxy_trust (API, section 14): who the client is, as proxies tell that are trusted.
---
--- Everybody can send X-Forwarded-For, so it is read from its end, which the proxy wrote that we see: as long as
--- an address is a trusted proxy's, the entry before it is that proxy's word. What lies further left came from
--- the client. Scheme and host are taken from the same place.
local cidr = require "srv.core.cidr"
local factory = require "srv.base.factory"
local http = require "srv.core.http"
local json = require "srv.base.json"
local misuse = require "srv.core.task".misuse
local networks = require "srv.plugins.networks"
local note_untrusted = require "srv.web.untrusted"
local options = require "srv.base.options"
local trim = require "srv.base.text".trim

local OPTIONS = { header = "auto|x-forwarded|forwarded" }

local HOPS_MAX = 32
local HOST_BYTES_MAX = 255
local COMMA, QUOTE, BACKSLASH = (","):byte(), ('"'):byte(), ("\\"):byte()
local SCHEMES = { http = "http", https = "https", ws = "http", wss = "https" }

-- Reading ---------------------------------------------------------------------------------------------

local function unquote(text)
  local inner = text:match '^"(.*)"$'
  return inner and inner:gsub("\\(.)", "%1") or text
end

--- "1.2.3.4", "1.2.3.4:80", "[::1]:80", "::1" -> the address, or nil.
local function address_of(entry)
  local bare = entry:match "^%[(.*)%]:?%d*$" or entry:match "^([^:]*):%d+$" or entry
  return cidr.address(bare)
end

--- The elements of a list, from the left.
local function elements_of(header)
  local list = {}
  if not header then return list end
  for element in (header .. ","):gmatch "([^,]*)," do list[#list + 1] = trim(element) end
  return list
end

local function is_escaped(header, at)
  local slashes = 0
  while header:byte(at - 1 - slashes) == BACKSLASH do slashes = slashes + 1 end
  return slashes % 2 == 1
end

--- The same where commas in quotes part nothing. Read from the right: a quote that the client has left open
--- must not swallow what a proxy has added.
local function quoted_elements_of(header)
  local reversed, list, is_quoted, stop = {}, {}, false, #(header or "")
  for i = stop, 1, -1 do
    local byte = header:byte(i)
    if byte == QUOTE and not is_escaped(header, i) then is_quoted = not is_quoted end
    if byte == COMMA and not is_quoted then
      reversed[#reversed + 1] = trim(header:sub(i + 1, stop))
      stop = i - 1
    end
  end
  if header then reversed[#reversed + 1] = trim(header:sub(1, stop)) end
  for i = #reversed, 1, -1 do list[#list + 1] = reversed[i] end
  return list
end

--- One element of Forwarded: `for=192.0.2.7;proto=https;host="a.example"` (RFC 7239).
local function pairs_of(element)
  local found = {}
  for name, value in (element .. ";"):gmatch '%s*([%w]+)=([^;]*);' do found[name:lower()] = unquote(value) end
  return found
end

-- The walk --------------------------------------------------------------------------------------------

--- From the socket's PEER outward while SET trusts. ADDRESSES: an entry for each hop, from the left.
---@return string ip
---@return string[] ips   without the peer, client first
---@return integer told   how many entries, from the right, trusted proxies have written
local function walk(set, peer, addresses)
  local ip, seen, told = peer, {}, 0
  for i = #addresses, math.max(1, #addresses - HOPS_MAX + 1), -1 do
    if not set:has(ip) then break end
    told = told + 1
    local address = address_of(addresses[i])
    if not address then break end
    ip, seen[#seen + 1] = address, address
  end
  local ips = {}
  for i = #seen, 1, -1 do ips[#ips + 1] = seen[i] end
  return ip, json.array(ips), told
end

--- What the outermost trusted proxy wrote in a list of as many entries as there are proxies, or fewer.
local function entry_for(list, told)
  return list[math.max(1, #list - math.max(told, 1) + 1)]
end

local function scheme_of(text) return text and SCHEMES[text:lower()] end

local function host_of(text)
  if not text or #text > HOST_BYTES_MAX then return nil end
  return (text:find "^[%w%-_.]+:?%d*$" or text:find "^%[[%x:.]+%]:?%d*$") and text or nil
end

local function by_x_forwarded(set, req, peer, addresses)
  local ip, ips, told = walk(set, peer, addresses)
  return {
    ip = ip, ips = ips,
    proto = scheme_of(entry_for(elements_of(req:header "x-forwarded-proto"), told)),
    host = host_of(entry_for(elements_of(req:header "x-forwarded-host"), told)),
  }
end

local function by_forwarded(set, peer, elements)
  local addresses = {}
  for i, element in ipairs(elements) do
    elements[i] = pairs_of(element)
    addresses[i] = elements[i]["for"] or ""
  end
  local ip, ips, told = walk(set, peer, addresses)
  local own = told > 0 and elements[#elements - told + 1] or {}
  return { ip = ip, ips = ips, proto = scheme_of(own.proto), host = host_of(own.host) }
end

--- A proxy that writes X-Forwarded-For passes on whatever Forwarded the client has sent, so that one counts
--- only where the other is missing.
local function read(set, which, req, peer)
  local x_forwarded = elements_of(which ~= "forwarded" and req:header "x-forwarded-for" or nil)
  local forwarded = quoted_elements_of(which ~= "x-forwarded" and req:header "forwarded" or nil)
  if #x_forwarded == 0 and #forwarded > 0 then return by_forwarded(set, peer, forwarded) end
  return by_x_forwarded(set, req, peer, x_forwarded)
end

-- The plugin ------------------------------------------------------------------------------------------

--- What is told of the client of a request, made when it is first asked for.
local function reader(set, which)
  return function(req)
    local client = rawget(req, "told_client")
    if client then return client end
    local peer = http.peer(req)
    if set:has(peer) then
      client = read(set, which, req, peer)
    else
      client = { ip = peer, ips = json.array {} }
      note_untrusted(req)
    end
    rawset(req, "told_client", client)
    return client
  end
end

--- `req.ip ips proto secure host hostname` follow the proxies in the list: CIDRs, "loopback", "private".
---@param list table  networks; `header = "x-forwarded"` or `"forwarded"` believes that one alone
---@return table plugin
return factory.name("srv.proxy_trust", function(list)
  if type(list) ~= "table" or #list == 0 then
    misuse 'srv.proxy_trust: a list of networks is missing: srv.proxy_trust { "loopback", "10.0.0.0/8" }'
  end
  local named = {}
  for key, value in pairs(list) do if type(key) ~= "number" then named[key] = value end end
  local opts = options.check("srv.proxy_trust", named, OPTIONS)
  local read_client = reader(networks.set("srv.proxy_trust", list), opts.header or "auto")
  return {
    name = "proxy_trust",
    hooks = {
      request = function(req)
        rawset(req, "told_client", nil) -- an outer router's proxy_trust has been asked
        req.read_client = read_client
      end,
    },
  }
end, '{ "loopback" }')
