--- srv.websocket (API, section 12): the client's end of a WebSocket.
---
--- A connection of srv.tcp carries the handshake, which is a request and the head of an answer; from then on its bytes
--- are the socket's (bind/lws_client).
local async = require "srv.async.task"
local class = require "srv.async.websocket_class"
local core = require "srv.core.ws"
local errors = require "srv.base.errors"
local fetch_request = require "srv.async.fetch_request"
local fetch_url = require "srv.async.fetch_url"
local handshake = require "srv.async.websocket_handshake"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local socket = require "srv.async.socket"
local socket_rules = require "srv.async.websocket_rules"
local text = require "srv.base.text"
local tls = require "srv.async.tls"
local url = require "srv.base.url"

local websocket = {}

local OPTIONS = {
  headers = "table", protocols = "table", timeout = "duration", limit = "bytes", buffer = "bytes", overflow = "wait|close",
  heartbeat = "any", message_timeout = "any", compress = "boolean", tls = "table",
}

local TIMEOUT = 10
local PORTS = { ws = 80, wss = 443 }

-- Where to ------------------------------------------------------------------------------------------------

local function invalid(message) return nil, errors.coded("invalid", "the URL is not valid: " .. message) end

local function bracketed(host) return host:find(":", 1, true) and "[" .. host .. "]" or host end

--- { scheme, host, port, authority, user, password, path } of a URL of ws or wss.
local function target_of(address)
  if type(address) ~= "string" then misuse("srv.websocket: a URL was expected, not a " .. type(address)) end
  local parts, err = url.parse(address)
  if not parts then return nil, err end
  local default = PORTS[parts.scheme or ""]
  if not default then return invalid(("%q does not begin with ws:// or wss://"):format(address)) end
  if parts.fragment then return invalid "one of a WebSocket has no #fragment" end
  local port, host = parts.port or default, bracketed(parts.host)
  if port == 0 then return invalid "nothing listens on port 0" end
  return {
    scheme = parts.scheme, host = parts.host, port = port,
    authority = port == default and host or host .. ":" .. port, user = parts.user, password = parts.password,
    path = (parts.path ~= "" and parts.path or "/") .. (parts.query and "?" .. parts.query or ""),
  }
end

-- The request ---------------------------------------------------------------------------------------------

local OURS = { host = true, upgrade = true, connection = true, ["content-length"] = true, ["transfer-encoding"] = true }

local function check_field(name, value)
  if type(name) ~= "string" or not text.is_token(name) then
    misuse(("srv.websocket: %q is no name for a header"):format(tostring(name)))
  end
  if OURS[name:lower()] or name:lower():find "^sec%-websocket%-" then
    misuse(("srv.websocket: the header %s is the handshake's, and set by srv alone"):format(name))
  end
  if type(value) ~= "string" and type(value) ~= "number" or not text.is_field_value(tostring(value)) then
    misuse(("srv.websocket: the header %s must be a text of one line"):format(name))
  end
end

--- What the URL says of it, unless the caller does.
local function authorization(target, headers)
  if not target.user then return nil end
  for name in pairs(headers) do if name:lower() == "authorization" then return nil end end
  return fetch_request.basic(target.user, target.password or "")
end

local function request_of(target, ask, headers)
  local lines = { ("GET %s HTTP/1.1"):format(target.path), "Host: " .. target.authority }
  for _, field in ipairs(ask:fields()) do lines[#lines + 1] = field[1] .. ": " .. field[2] end
  for name, value in pairs(headers) do lines[#lines + 1] = ("%s: %s"):format(name, value) end
  local told = authorization(target, headers)
  if told then lines[#lines + 1] = "Authorization: " .. told end
  return table.concat(lines, "\r\n") .. "\r\n\r\n"
end

-- The answer ----------------------------------------------------------------------------------------------

local function refused(status)
  local err = errors.coded("unexpected_status", ("the server answered %d instead of switching to WebSocket"):format(status))
  return nil, errors.with(err, "data", { status = status })
end

local function switch(connection, request, ask, rules)
  local sent, err = connection:write(request)
  if not sent then return nil, err end
  local status, fields = handshake.read_answer(connection)
  if not status then return nil, fields end
  if status ~= 101 then return refused(status) end
  local ok, reason = ask:check(status, fields, rules)
  if not ok then return handshake.bad_response(reason) end
  return true
end

--- A connection that has switched.
local function shake_hands(target, rules, ask, opts)
  local connection, err = socket.tcp.connect(target.host, target.port)
  if not connection then return nil, err end
  local has_switched
  async.defer(function() if not has_switched then connection:close() end end)
  has_switched, err = handshake.secure(connection, target, opts.tls)
  if has_switched then has_switched, err = switch(connection, request_of(target, ask, opts.headers), ask, rules) end
  if not has_switched then return nil, err end
  return connection
end

--- Which one it was, as srv.http has it.
local function fault_of(target, err)
  err.message = ("%s: %s"):format(fetch_url.shown(fetch_url.text(target)), err.message)
  return err
end

-- Connecting ----------------------------------------------------------------------------------------------

local function check(opts)
  opts = options.check("srv.websocket", opts, OPTIONS, 4)
  opts.headers, opts.tls = opts.headers or {}, tls.settings("srv.websocket", opts.tls)
  for name, value in pairs(opts.headers) do check_field(name, value) end
  return opts
end

local function rules_of(opts)
  local rules = socket_rules.of("srv.websocket", opts)
  rules.client = true
  return core.rules(rules)
end

---@class srv.WebSocketOptions
---@field headers? table<string, string|number>  of the request: Authorization, Cookie, Origin
---@field protocols? string[]           the first that the server knows is agreed on
---@field timeout? number|string        "10s": until the socket is open
---@field limit? number|string          "1MiB": of a message
---@field buffer? number|string         "1MiB": what may wait to be sent
---@field overflow? "wait"|"close"
---@field heartbeat? number|string|false  "30s" of silence until a ping
---@field message_timeout? number|string|false  "30s" for a message that has begun to go on
---@field compress? boolean             true
---@field tls? table                    of wss://, as srv.http's

--- A socket to another server; it ends with the task that opens it.
---@param address string  "wss://host/path"
---@param opts srv.WebSocketOptions?
---@return srv.WebSocket?
---@return srv.Error? err  refused, timeout, dns, unavailable, closed, bad_response, unexpected_status, tls, invalid
function websocket.connect(address, opts)
  opts = check(opts)
  local rules = rules_of(opts)
  local target, err = target_of(address)
  if not target then return nil, err end
  local ask = core.ask(table.concat(opts.protocols or {}, ", "), opts.compress ~= false)
  local connection
  connection, err = async.timeout(opts.timeout or TIMEOUT, shake_hands, target, rules, ask, opts)
  if not connection then return nil, fault_of(target, err) end
  local carrier, rest = socket.parts(connection)
  return core.over(carrier, rest, rules, ask)
end

websocket.class = class.class

return websocket
