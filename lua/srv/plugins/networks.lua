--- Lists of networks as plugins take them: CIDRs, "loopback", "private".
local core = require "srv.core.cidr"
local misuse = require "srv.core.task".misuse

local networks = {}

local NAMES = {
  loopback = { "127.0.0.0/8", "::1/128" },
  private = { "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7" },
}

--- The set of all in LIST. Who comes by a Unix socket counts as loopback.
---@param where string    begins the message of misuse: "srv.proxy_trust"
---@param list string[]
---@return userdata set  set:has(ip)
function networks.set(where, list)
  local texts, unix_peers = {}, false
  if type(list) ~= "table" then misuse(where .. ": a list of networks is missing") end
  for i, entry in ipairs(list) do
    if type(entry) ~= "string" then misuse(("%s: network %d must be a string, not a %s"):format(where, i, type(entry))) end
    unix_peers = unix_peers or entry == "loopback"
    for _, text in ipairs(NAMES[entry] or { entry }) do texts[#texts + 1] = text end
  end
  local set, wrong = core.set(texts, unix_peers)
  if not set then
    misuse(('%s: %q is no network; one is "10.0.0.0/8", "2001:db8::1", "loopback" or "private"'):format(where, wrong))
  end
  return set
end

--- Whether the client lies in SET. One behind a proxy that nobody vouches for (plugin proxy_trust) could be
--- anybody, also when the proxy itself is on this machine.
---@param set userdata
---@param req srv.Request
---@return boolean
function networks.admits(set, req)
  local is_known = rawget(req, "read_client") or not (req:header "x-forwarded-for" or req:header "forwarded")
  return is_known and set:has(req.ip)
end

return networks
