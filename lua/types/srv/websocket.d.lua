---@meta _
-- luacheck: ignore 212 241 631

---@alias srv.SocketHandler fun(ws: srv.WebSocket, req: srv.SocketRequest)

---@class srv.SocketOptions
---@field origins string[]|"*"|(fun(origin: string, req: srv.Request): boolean?, srv.Error?)|nil  pages that may; the app's own
---@field protocols string[]?              what it speaks
---@field limit srv.Size?                  "1MiB": of a message; more is closed with 1009
---@field buffer srv.Size?                 "1MiB": of what may wait to be sent
---@field overflow "wait"|"close"|nil      "wait": what send does then
---@field heartbeat srv.Duration|false|nil "30s" of silence until a ping
---@field message_timeout srv.Duration|false|nil "30s" for a message that has begun to go on
---@field compress boolean?                true
---@field timeout srv.Duration?            until it is open; then of each handler of a table
---@field params srv.Rule?
---@field query srv.Rule?
---@field headers srv.Rule?
---@field cookies srv.Rule?
---@field name string?
---@field fallback boolean?

--- One of them at least; options may stand beside them.
---@class srv.SocketEvents: srv.SocketOptions
---@field open srv.SocketHandler?
---@field message fun(ws: srv.WebSocket, message: string, kind: "text"|"binary")?
---@field close fun(ws: srv.WebSocket, code: integer, reason: string)?

---@class srv.WebSocketOptions
---@field headers table<string, string|number>?  of the request: Authorization, Cookie, Origin
---@field protocols string[]?
---@field timeout srv.Duration?            "10s": until it is open
---@field limit srv.Size?                  "1MiB"
---@field buffer srv.Size?                 "1MiB"
---@field overflow "wait"|"close"|nil
---@field heartbeat srv.Duration|false|nil "30s"
---@field message_timeout srv.Duration|false|nil "30s"
---@field compress boolean?                true
---@field tls table?                       of wss://, as a call of HTTP has it

--- A WebSocket, whichever end it is.
---@class srv.WebSocket
---@field req srv.SocketRequest?  what it began with; a client's has none
---@field state table             your own: what middleware has put in req.state
---@field protocol string?        the subprotocol that was agreed on
---@field close_code integer?     once it is closed; 1005: none was given, 1006: it broke off
---@field close_reason string?
---@field status "connecting"|"open"|"closing"|"closed"
---@field pending integer         bytes that wait to be sent
local WebSocket = {}

--- One message. A string is sent as it is, anything else as JSON. Waits while the buffer is full.
---@param v any
---@param kind "text"|"binary"|nil  "text"
---@return true?
---@return srv.Error? err  closed
function WebSocket:send(v, kind) end

--- The next message; waits for it.
---@param t srv.Duration?
---@return string? message
---@return "text"|"binary"|srv.Error|nil kind_or_err  err: closed, timeout
function WebSocket:receive(t) end

--- `for message, kind in ws:messages() do`, until it is closed, however.
---@return fun(ws: srv.WebSocket): string?, ("text"|"binary")?
---@return srv.WebSocket
function WebSocket:messages() end

--- Begins the closing handshake; what was sent goes out before.
---@param code integer?   1000
---@param reason string?  at most 123 bytes
function WebSocket:close(code, reason) end

--- What is published to TOPIC reaches the peer as text; "*" in it stands for any bytes.
---@param topic string
---@return true?
---@return srv.Error? err
function WebSocket:subscribe(topic) end

---@param topic string
---@return srv.WebSocket
function WebSocket:unsubscribe(topic) end

--- V goes to all who hear TOPIC, but not to this socket.
---@param topic string
---@param v any
---@return true?
---@return srv.Error? err
function WebSocket:publish(topic, v) end

--- The request that a socket began with.
---@class srv.SocketRequest
---@field method string
---@field path string
---@field original_url string
---@field params table<string, string|number>
---@field query table<string, string|string[]>
---@field cookies table<string, string>
---@field headers table<string, string>  any case reads; without those of the handshake
---@field valid table
---@field ip string
---@field ips string[]
---@field proto "http"|"https"
---@field secure boolean
---@field host string
---@field hostname string
---@field peer { ip: string, port: integer }
---@field id string
---@field log srv.Log
---@field state table
---@field route { path: string, name: string?, method: string }
---@field protocol string
---@field tls srv.TlsInfo?        nil: it came over plain HTTP
local SocketRequest = {}

---@param name string
---@return string?
function SocketRequest:header(name) end

---@param name string
---@param opts { signed?: boolean, json?: boolean }?
---@return any  nil: not sent; false: forged
function SocketRequest:cookie(name, opts) end
