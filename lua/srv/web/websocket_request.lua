--- ws.req: the request that a socket began with. Its exchange has ended; what was kept of it is a block of C's
--- (bind/lws_head.h), taken apart when somebody asks, and what middleware hung on it.
local cookie = require "srv.web.cookie"
local core = require "srv.core.ws"
local http = require "srv.core.http"
local json = require "srv.base.json"
local log = require "srv.core.log"
local misuse = require "srv.core.task".misuse
local request = require "srv.web.request"
local url = require "srv.base.url"

local own = core.own

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
---@field log table
---@field state table
---@field route { path: string, name: string?, method: string }
---@field protocol string
---@field tls srv.TlsInfo?
local SocketRequest = { __name = "srv.SocketRequest" }

local fields, methods = {}, {}

function SocketRequest.__index(req, key)
  local method = methods[key]
  if method then return method end
  local field = fields[key]
  if field then return field(req) end
  if request.methods[key] then misuse(("req:%s(): the request of a socket has been answered"):format(tostring(key))) end
  return nil
end

--- From now on it stays with its socket.
function SocketRequest.__newindex(req, key, value)
  rawset(req, key, value)
  own(rawget(req, "socket"), true).own_req = req
end

local function remember(req, key, value)
  rawset(req, key, value)
  return value
end

local function head(req) return rawget(req, "head") or remember(req, "head", core.head(rawget(req, "socket"))) end

for field, name in pairs { method = "method", path = "path", original_url = "target", id = "id", protocol = "protocol" } do
  fields[field] = function(req) return head(req)[name] end
end

local Headers = {}
function Headers.__index(headers, name) return type(name) == "string" and rawget(headers, name:lower()) or nil end

function fields.headers(req) return remember(req, "headers", setmetatable(head(req).headers, Headers)) end
function fields.params(req) return remember(req, "params", json.object {}) end
function fields.query(req) return remember(req, "query", url.query(head(req).query or "") or json.object {}) end
function fields.cookies(req) return remember(req, "cookies", cookie.parse(req.headers.cookie)) end
function fields.peer(req) return remember(req, "peer", { ip = head(req).ip, port = head(req).port }) end
function fields.ip(req) return head(req).ip end
function fields.ips() return json.array {} end
function fields.proto(req) return head(req).tls and "https" or "http" end
function fields.host(req) return head(req).host end
fields.hostname = request.fields.hostname
function fields.secure(req) return req.proto == "https" end
function fields.log(req) return remember(req, "log", log.with { reqId = req.id }) end
function fields.route(req) return { path = head(req).route, name = head(req).name, method = head(req).method } end

function fields.state(req)
  req.state = {} -- through __newindex: it stays
  return rawget(req, "state")
end

function fields.session()
  misuse "req.session: the request of a socket has been answered: read its session in middleware, before the upgrade"
end

---@param name string
---@return string?
function methods:header(name) return self.headers[name] end

---@param name string
---@param opts { signed?: boolean, json?: boolean }?
---@return any  nil: not sent; false: forged
function methods:cookie(name, opts) return cookie.read(cookie.parse_all(self.headers.cookie), name, opts) end

local socket_request = {}

-- Views that somebody has: a socket keeps one only if something hangs on it.
local views = setmetatable({}, { __mode = "kv" })

local function new_view(ws)
  local view = setmetatable({ socket = ws }, SocketRequest)
  views[ws] = view
  return view
end

--- The request of WS. A client's socket has none.
---@param ws srv.WebSocket
---@return srv.SocketRequest?
function socket_request.of(ws)
  local kept = own(ws)
  local view = kept and rawget(kept, "own_req") or views[ws]
  if view or not core.is_served(ws) then return view end
  return new_view(ws)
end

-- What of a view is no news, or the exchange's.
local MADE_AGAIN = { headers = true, query = true, cookies = true, log = true, route = true, peer = true, sent_cookies = true }
local OF_CHAIN = { ran_middleware = true, passed_by = true, read_client = true }

--- What trusted proxies told of the client.
local function keep_client(view, kept)
  if not rawget(view, "read_client") then return end
  for _, name in ipairs { "ip", "ips", "proto", "host" } do kept[name] = view[name] end
end

--- What is known of the connection goes with its exchange; beside the rest of one of TLS it is little.
local function keep_tls(view, kept)
  if http.is_tls(view) then kept.tls = view.tls end
end

--- What app code and schemas have put on VIEW goes to the socket's own request.
---@param ws userdata
---@param view srv.Request
function socket_request.keep(ws, view)
  local kept = {}
  for key, value in pairs(view) do
    if key ~= 1 and not MADE_AGAIN[key] and not OF_CHAIN[key] then kept[key] = value end
  end
  keep_client(view, kept)
  keep_tls(view, kept)
  if next(kept) == nil then return end
  kept.socket = ws
  own(ws, true).own_req = setmetatable(kept, SocketRequest)
end

return socket_request
