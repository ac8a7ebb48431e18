---@meta srv.core.udp
-- luacheck: ignore 212 241

--- Datagrams (src/bind/ludp.c). Apps use srv.udp.
local udp = {}

---@class srv.core.udp.Socket
local Socket = {}

---@param bytes string
---@param host string?  an address, of a socket that is not connected
---@param port integer?
---@return boolean?  false: woken for nothing, again
---@return srv.Error? err  closed, refused, too_large, unavailable
function Socket:send(bytes, host, port) end

---@param seconds number?
---@return string|false|nil bytes  false: woken for nothing, again
---@return string|srv.Error host_or_err  err: closed, timeout, refused
---@return integer port
function Socket:receive(seconds) end

--- Whoever waits gets `closed`.
function Socket:close() end

---@return string? host
---@return integer? port
function Socket:address() end

--- This worker's socket of the address, which its generations share.
---@param host string  an address
---@param port integer
---@return srv.core.udp.Socket?
---@return srv.Error? err  unavailable
function udp.bind(host, port) end

---@param host string  an address
---@param port integer
---@return srv.core.udp.Socket?
---@return srv.Error? err  unavailable, refused
function udp.connect(host, port) end

return udp
