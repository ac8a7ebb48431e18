---@meta srv.core.cidr
-- luacheck: ignore 212 241

--- Addresses and networks (src/bind/lcidr.c).
local cidr = {}

---@class srv.Networks
local Networks = {}

--- False for what is no address; "unix" is a peer of a Unix socket.
---@param ip string
---@return boolean
function Networks:has(ip) end

---@param networks string[]    "10.0.0.0/8", "2001:db8::1"
---@param unix_peers boolean   who comes by a Unix socket is in it
---@return srv.Networks?
---@return string? wrong       the first text that is no network
function cidr.set(networks, unix_peers) end

--- The address in its one spelling.
---@param text string
---@return string?
function cidr.address(text) end

--- Whom to count together: an IPv4 address, an IPv6 network of BITS, or TEXT if it is no address.
---@param text string
---@param bits integer
---@return string
function cidr.client(text, bits) end

return cidr
