---@meta srv.core.ws
-- luacheck: ignore 212 241

--- WebSockets (src/bind/lws.h). Apps use app:ws and srv.websocket (lua/srv/web/websocket.lua,
--- lua/srv/async/websocket.lua).
local ws = {}

--- The class of sockets: a metatable, for Lua to complete.
---@class srv.core.ws.WebSocket: userdata
ws.WebSocket = {}

-- A route's (bind/lws_rules.c, lws_upgrade.c) ------------------------------------------------------------

---@class srv.core.ws.Rules: userdata

---@class srv.core.ws.RuleTable
---@field limit number
---@field buffer number
---@field heartbeat number   seconds; 0: none
---@field message_timeout number?  seconds; 0: none
---@field compress boolean
---@field closes boolean     when the buffer is full
---@field client boolean?
---@field events boolean?    each in a task of its own
---@field protocols string[]?
---@field open function?
---@field message function?
---@field close function?

---@param rules srv.core.ws.RuleTable
---@return srv.core.ws.Rules
function ws.rules(rules) end

--- What a request asks to switch to: "websocket".
---@param req srv.core.http.Call
---@return string?
function ws.asked(req) end

--- What is wrong with a request as a handshake.
---@param req srv.core.http.Call
---@return integer? status
---@return string? reason
function ws.fault(req) end

--- One that is not open before it is the answer.
---@param req srv.core.http.Call
---@param rules srv.core.ws.Rules
---@return srv.WebSocket
function ws.socket(req, rules) end

-- A client's (bind/lws_client.c) -------------------------------------------------------------------------

---@class srv.core.ws.Ask: userdata
local Ask = {}
---@return { [1]: string, [2]: string }[]
function Ask:fields() end
---@param status integer
---@param fields { [1]: string, [2]: string }[]  names in lower case
---@param rules srv.core.ws.Rules
---@return true?
---@return string? reason
function Ask:check(status, fields, rules) end

---@param protocols string  "chat, superchat", or ""
---@param deflate boolean
---@return srv.core.ws.Ask
function ws.ask(protocols, deflate) end

---@param socket userdata   of srv.core.socket
---@param early string      read behind the answer's head
---@param rules srv.core.ws.Rules
---@param ask srv.core.ws.Ask
---@return srv.WebSocket?
---@return srv.Error?
function ws.over(socket, early, rules, ask) end

-- One that is passed on (bind/lws_relay.c) ---------------------------------------------------------------

---@class srv.core.ws.Relay: userdata

---@param socket userdata   of srv.core.socket, which has switched
---@param early string      read behind the answer's head
---@return srv.core.ws.Relay?
---@return srv.Error?
function ws.relay(socket, early) end

-- Of a socket (bind/lws.c, lws_talk.c, lws_topics.c) ------------------------------------------------------

--- Of this worker, since it began.
---@return { open: integer, received: integer, sent: integer, encoded: integer, dropped: integer }
function ws.counts() end

--- What the app has hung on it.
---@param socket srv.WebSocket
---@param make boolean?
---@return table?
function ws.own(socket, make) end

---@param socket srv.WebSocket
---@return table? head  { method, path, target, query, host, ip, port, id, protocol, tls, route, name, headers }
function ws.head(socket) end

---@param socket srv.WebSocket
---@return boolean
function ws.is_served(socket) end

---@param socket srv.WebSocket
---@param bytes string
---@param is_binary boolean
---@return true?
---@return srv.Error?
function ws.send(socket, bytes, is_binary) end

---@param socket srv.WebSocket
---@param seconds number?
---@return string?
---@return "text"|"binary"|srv.Error
function ws.receive(socket, seconds) end

--- Until it is closed.
---@param socket srv.WebSocket
---@param seconds number?
---@return true?
---@return srv.Error?
function ws.wait_closed(socket, seconds) end

---@param socket srv.WebSocket
---@param code integer
---@param reason string?
function ws.close(socket, code, reason) end

---@param socket srv.WebSocket
---@return "connecting"|"open"|"closing"|"closed"
function ws.status(socket) end

---@param socket srv.WebSocket
---@return integer? code
---@return string? reason
function ws.closed(socket) end

---@param socket srv.WebSocket
---@return integer bytes
function ws.pending(socket) end

---@param socket srv.WebSocket
---@return string?
function ws.protocol(socket) end

---@param socket srv.WebSocket
---@param topic string
---@return true?
---@return srv.Error?
function ws.subscribe(socket, topic) end

---@param socket srv.WebSocket
---@param topic string
function ws.unsubscribe(socket, topic) end

--- Who publishes: for srv.core.bus.publish_from.
---@param socket srv.WebSocket
---@return integer
function ws.serial(socket) end

return ws
