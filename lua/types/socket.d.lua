---@meta srv.core.socket
-- luacheck: ignore 212 241

--- Connected sockets (src/bind/lsocket.c), of which srv.async.socket makes readers.
local socket = {}

---@class srv.core.socket.Socket
local Socket = {}

---@param host string?
---@param port integer?
---@param path string?      of a Unix socket, in the place of the other two
---@param seconds number?
---@return true?
---@return srv.Error? err  refused, timeout, dns, unavailable
function Socket:connect(host, port, path, seconds) end

---@param bytes integer     at most
---@param seconds number?
---@return string|false|nil piece  nil alone: the end; false: woken for nothing, again
---@return srv.Error? err  closed, timeout, busy
function Socket:read(bytes, seconds) end

--- All of TEXT.
---@param text string
---@param seconds number?
---@return true?
---@return srv.Error? err  closed, timeout, busy
function Socket:write(text, seconds) end

--- The peer reads an end; we can still read.
---@return true?
---@return srv.Error? err
function Socket:shutdown() end

--- TLS from the next byte on; the handshake is a part of the first wait.
---@param spec { tls: table, key: string }  as lua/srv/async/tls.lua makes them
---@return true?
---@return srv.Error?  tls, closed
function Socket:secure(spec) end

--- Whoever waits gets `closed`.
function Socket:close() end

---@return boolean
function Socket:is_open() end

---@return string host
---@return integer port
function Socket:peer() end

---@return string? host  of our end
---@return integer? port
function Socket:address() end

---@return srv.core.socket.Socket  not connected yet
function socket.new() end

return socket
