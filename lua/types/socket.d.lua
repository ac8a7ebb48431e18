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

--- TLS from the next byte on, as a server.
---@param server srv.core.socket.Server
---@return true?
---@return srv.Error?  tls, closed
function Socket:accept(server) end

--- Until the handshake is over.
---@param seconds number?
---@return true?
---@return srv.Error?  tls, timeout, closed, busy
function Socket:shake(seconds) end

--- Of a handshake that is over.
---@return srv.SocketTls?
function Socket:tls() end

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

--- What sockets that are accepted by TLS share; a file that has changed is read again.
---@class srv.core.socket.Server

---@class srv.core.socket.ServerSettings
---@field cert string          in PEM or the path of it, as the next two
---@field key string?
---@field client_ca string?
---@field client_cert "none"|"optional"|"required"|nil
---@field alpn string?         names that end with NUL each

---@param settings srv.core.socket.ServerSettings
---@return srv.core.socket.Server?
---@return srv.Error?  tls, unavailable
function socket.server(settings) end

---@return srv.core.socket.Socket  not connected yet
function socket.new() end

return socket
