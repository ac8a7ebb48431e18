---@meta srv.core.dns
-- luacheck: ignore 212 241

--- Names to addresses (src/bind/ldns.c). Apps use srv.dns.
local dns = {}

---@param name string
---@param seconds number?
---@return string[]?
---@return srv.Error? err  dns, timeout, busy
function dns.resolve(name, seconds) end

return dns
