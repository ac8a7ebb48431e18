--- WebSockets of an app under test (t:ws): the client's end, over a piece of memory.
local answer = require "srv.testing.answer"
local core = require "srv.core.ws"
local patience = require "srv.testing.stream".patience
local misuse = require "srv.core.task".misuse

local socket = {}

local LIMIT = 16 * 1024 * 1024
local BUFFER = 1024 * 1024

---@class srv.TestSocket
---@field status integer                   of the handshake: 101
---@field headers table<string, string>    of its answer; any case reads
---@field protocol string?
---@field close_code integer?              once it is closed
---@field close_reason string?
---@field private ws srv.WebSocket
local TestSocket = { __name = "srv.TestSocket" }

local methods = {}

local OF_SOCKET = { protocol = true, close_code = true, close_reason = true }

function TestSocket.__index(self, key)
  if OF_SOCKET[key] then return rawget(self, "ws")[key] end
  return methods[key]
end

--- One message to the app; a table is JSON.
---@param v any
---@param kind "text"|"binary"|nil
---@return true?
---@return srv.Error? err  closed
function methods:send(v, kind) return self.ws:send(v, kind) end

--- The next message of the app.
---@param t (number|string)?  at most so long: 5 s; while srv.test.clock() stands, what is there
---@return string?
---@return "text"|"binary"|srv.Error kind_or_err  err: timeout, closed
function methods:receive(t) return core.receive(self.ws, patience("ws:receive", t)) end

--- All that come, until the app closes.
function methods:messages()
  return function()
    local message, kind = self:receive()
    if message == nil then return nil end
    return message, kind
  end
end

--- Closes as a client does that has had enough, and waits until the app has agreed.
---@param code integer?   1000
---@param reason string?
---@return srv.TestSocket
function methods:close(code, reason)
  self.ws:close(code, reason)
  core.wait_closed(self.ws, patience("ws:close", nil))
  return self
end

--- Its test is over.
function methods:leave() self.ws:close(1001) end

-- Opening -------------------------------------------------------------------------------------------------

local function add_ask(request, ask)
  for _, field in ipairs(ask:fields()) do table.insert(request.headers, field) end
end

local function lower_fields(fields)
  local lower = {}
  for i, field in ipairs(fields) do lower[i] = { field[1]:lower(), field[2] } end
  return lower
end

--- What was answered in the place of a socket.
local function refusal(opened, core_stream, request)
  local pieces = {}
  for piece in function() return (opened:chunk()) end do pieces[#pieces + 1] = piece end
  core_stream:close()
  return answer.new({
    status = opened.status, fields = opened.fields, body = table.concat(pieces), pieces = pieces, interim = {}, cut = false,
    log = {}, cookies = {},
  }, request)
end

--- What the options of t:ws say of the socket itself; they are taken out of OPTS.
---@param opts { protocols: string[]?, compress: boolean? }
---@return table rules, userdata ask
function socket.plan(opts)
  local protocols = opts.protocols
  if protocols and #protocols == 0 then misuse "t:ws: protocols must be a list of names" end
  return core.rules {
    client = true, limit = LIMIT, buffer = BUFFER, heartbeat = 0, compress = opts.compress ~= false, protocols = protocols,
  }, core.ask(protocols and table.concat(protocols, ", ") or "", opts.compress ~= false)
end

--- Asks by what OPEN opens (a stream and its core) for REQUEST, which gets the fields of the handshake.
---@param request table
---@param rules userdata
---@param ask userdata
---@param open fun(request: table): srv.TestStream, userdata
---@return srv.TestSocket?
---@return srv.TestAnswer? refusal
function socket.open(request, rules, ask, open)
  add_ask(request, ask)
  local opened, core_stream = open(request)
  if opened.status ~= 101 then return nil, refusal(opened, core_stream, request) end
  local ok, reason = ask:check(opened.status, lower_fields(opened.fields), rules)
  if not ok then error("t:ws: " .. reason, 3) end
  local ws, err = core_stream:websocket(rules, ask)
  core_stream:close()
  if not ws then error(err, 3) end
  return setmetatable({ ws = ws, status = opened.status, headers = opened.headers }, TestSocket)
end

return socket
