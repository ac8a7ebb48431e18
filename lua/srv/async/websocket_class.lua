--- A WebSocket as apps see it, whichever end it is (API, section 12). Its messages are C's (bind/lws*).
local async = require "srv.async.task"
local core = require "srv.core.ws"
local json = require "srv.base.json"
local misuse = require "srv.core.task".misuse
local suggest = require "srv.base.suggest"

---@class srv.WebSocket
---@field state table          your own: what middleware put in req.state
---@field protocol string?     the subprotocol that was agreed on
---@field close_code integer?  once it is closed: 1000, 1001, ...; 1005: none was given; 1006: it broke off
---@field close_reason string?
---@field status "connecting"|"open"|"closing"|"closed"
---@field pending integer      bytes that wait to be sent
local WebSocket = core.WebSocket
WebSocket.__name = "srv.WebSocket"

local methods, fields, refused = {}, {}, suggest.foreign "ws"
local send, receive, close, closed, own = core.send, core.receive, core.close, core.closed, core.own

function WebSocket.__index(ws, key)
  local method = methods[key]
  if method then return method end
  local field = fields[key]
  if field then return field(ws) end
  local kept = own(ws)
  local value = kept and kept[key]
  if value ~= nil then return value end
  return refused[key]
end

--- An app may hang fields of its own on a socket.
function WebSocket.__newindex(ws, key, value)
  if fields[key] or methods[key] then misuse(("ws.%s cannot be set"):format(tostring(key))) end
  own(ws, true)[key] = value
end

fields.protocol, fields.status, fields.pending = core.protocol, core.status, core.pending

function fields.close_code(ws) return (closed(ws)) end
function fields.close_reason(ws) return select(2, closed(ws)) end

function fields.state(ws)
  local kept = own(ws, true)
  local state = rawget(kept, "own_state") or {}
  kept.own_state = state
  return state
end

--- "websocket: open /chat"; without a path where it is a client's.
function WebSocket.__tostring(ws)
  local head = core.head(ws)
  return ("websocket: %s%s"):format(core.status(ws), head and " " .. head.path or "")
end

-- Sending ---------------------------------------------------------------------------------------------

--- What cannot be JSON is the app's mistake.
local function json_of(v)
  if v == nil then misuse "ws:send: a value is missing (JSON's null is srv.null)" end
  local ok, text = pcall(json.encode, v)
  if ok then return text end
  if type(text) ~= "string" then error(text, 0) end
  misuse("ws:send: " .. text)
end

local KINDS = { text = false, binary = true }

--- One message. A string is sent as it is, anything else as JSON. While the buffer is full it waits, unless the
--- socket's `overflow` is "close".
---@param v any
---@param kind "text"|"binary"|nil  "text"
---@return true?
---@return srv.Error? err  closed
function methods:send(v, kind)
  local is_binary = KINDS[kind or "text"]
  if is_binary == nil then misuse('ws:send: the kind is "text" or "binary"') end
  if type(v) ~= "string" then
    if is_binary then misuse("ws:send: binary is a string, not a " .. type(v)) end
    v = json_of(v)
  end
  return send(self, v, is_binary)
end

--- Begins the closing handshake; what was sent goes out before. Idempotent.
---@param code integer?   1000
---@param reason string?  at most 123 bytes
function methods:close(code, reason)
  if code ~= nil and type(code) ~= "number" then misuse("ws:close: a code is a number, not a " .. type(code)) end
  if reason ~= nil and type(reason) ~= "string" then misuse("ws:close: a reason is a text, not a " .. type(reason)) end
  close(self, code or 1000, reason)
end

-- Receiving -------------------------------------------------------------------------------------------

--- The next message; waits for it.
---@param t number|string|nil
---@return string? message
---@return "text"|"binary"|srv.Error kind_or_err  err: closed, timeout
function methods:receive(t) return receive(self, async.seconds("ws:receive", t)) end

local function next_message(ws)
  local message, kind = receive(ws)
  if message == nil then return nil end
  return message, kind
end

--- `for message, kind in ws:messages() do`, until the socket is closed, however.
---@return fun(ws: srv.WebSocket): string?, ("text"|"binary")?
---@return srv.WebSocket
function methods:messages() return next_message, self end

return { class = WebSocket, methods = methods, fields = fields }
