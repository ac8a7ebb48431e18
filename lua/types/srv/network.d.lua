---@meta _
-- luacheck: ignore 212 241 631

---@class srv.ConnectOptions
---@field timeout? srv.Duration          of each read and write; none: as long as the task may
---@field connect_timeout? srv.Duration  "3s", TLS's handshake included
---@field tls? true|srv.SocketTlsOptions

--- As of srv.http, and the names of a protocol.
---@class srv.SocketTlsOptions: srv.ClientTlsOptions
---@field alpn string|string[]|nil  most wanted first

---@class srv.ListenOptions
---@field timeout? srv.Duration  of each read and write of its sockets
---@field connections? integer   1000 at once in each worker
---@field tls? srv.ServerTlsOptions

--- What clients are shown, and whether they must show something. What is PEM is the text or the path of a file.
---@class srv.ServerTlsOptions
---@field cert string
---@field key string?                                       nil: beside it
---@field client_ca string?                                 who signs the certificates of clients
---@field client_cert "none"|"optional"|"required"|nil
---@field alpn string|string[]|nil                          most wanted first

---@class srv.SocketTls
---@field version string                                     "TLSv1.3"
---@field cipher string
---@field resumed boolean                                    without a full handshake
---@field alpn string?                                       what both speak
---@field sni string?                                        whom the client wanted; of an accepted one
---@field peer { subject: string, serial: string, fingerprint: string }?  the other end's certificate

---@class srv.TcpModule
local tcp = {}

---@param host string
---@param port integer
---@param opts srv.ConnectOptions?
---@return srv.Socket?
---@return srv.Error? err
function tcp.connect(host, port, opts) end

--- fn(socket) runs in a task of its own for each connection.
---@param address string  "127.0.0.1:9000"; port 0 is a free one
---@param fn fun(socket: srv.Socket)
---@param opts srv.ListenOptions?
---@return srv.Listener?
---@return srv.Error? err
function tcp.listen(address, fn, opts) end

---@class srv.UnixModule
local unix = {}

---@param path string
---@param opts srv.ConnectOptions?
---@return srv.Socket?
---@return srv.Error? err
function unix.connect(path, opts) end

---@param path string
---@param fn fun(socket: srv.Socket)
---@param opts srv.ListenOptions?
---@return srv.Listener?
---@return srv.Error? err
function unix.listen(path, fn, opts) end

---@class srv.Listener
---@field address string
---@field connections integer  open now
local Listener = {}

--- No more connections; those that are open go on.
function Listener:close() end

---@class srv.Socket: srv.Reader
---@field peer { ip: string, port: integer }
---@field tls srv.SocketTls?  nil: plain
local Socket = {}

---@param bytes integer
---@return string?
---@return srv.Error? err
function Socket:read_exactly(bytes) end

---@param text string  not a pattern
---@param limit srv.Size?  "1MiB"
---@return string?
---@return srv.Error? err
function Socket:read_until(text, limit) end

---@param ... string|number
---@return true?
---@return srv.Error? err
function Socket:write(...) end

--- We send no more.
---@return true?
---@return srv.Error? err
function Socket:shutdown() end

---@return string? ip
---@return integer? port
function Socket:address() end

---@param t srv.Duration?
function Socket:set_timeout(t) end

--- From here on by TLS, after a protocol's own word for that.
---@param opts srv.SocketTlsOptions?
---@return true?
---@return srv.Error? err
function Socket:start_tls(opts) end

---@class srv.UdpModule
local udp = {}

---@param address string
---@param opts { timeout?: srv.Duration }?
---@return srv.Udp?
---@return srv.Error? err
function udp.bind(address, opts) end

---@param host string
---@param port integer
---@param opts { timeout?: srv.Duration }?
---@return srv.Udp?
---@return srv.Error? err
function udp.connect(host, port, opts) end

---@class srv.Udp
local Udp = {}

---@param bytes string
---@param host string?
---@param port integer?
---@return true?
---@return srv.Error? err
function Udp:send(bytes, host, port) end

---@return string? bytes
---@return string|srv.Error ip_or_err
---@return integer port
function Udp:receive() end

function Udp:close() end

---@return string? ip
---@return integer? port
function Udp:address() end

---@class srv.DnsModule
local dns = {}

---@param name string
---@param opts { timeout?: srv.Duration }?
---@return string[]?
---@return srv.Error? err
function dns.resolve(name, opts) end
