--- srv.http.forward of a WebSocket: the handshake goes on to the other server, and when that has switched, the client's
--- bytes and its own go to each other without a look (src/http/relay.h).
local async = require "srv.async.task"
local core = require "srv.core.ws"
local fetch_response = require "srv.async.fetch_response"
local handshake = require "srv.async.websocket_handshake"
local socket = require "srv.async.socket"
local tls = require "srv.async.tls"

local fetch_switch = {}

local BODY_BYTES_MAX = 64 * 1024 -- of a refusal; a longer one is passed on without its body

--- What the other server has answered; a handler returns it.
---@class srv.SwitchedResponse
---@field status integer
---@field headers table<string, string|string[]>
---@field private answer string|userdata
local Response = { __name = "srv.SwitchedResponse" }
Response.__index = Response

function Response:__answer()
  local status = self.status ~= 101 and self.status or nil -- the switch has one of its own
  return status, self.headers, self.answer
end

--- Ours, in the place of the client's, which has another key, or over HTTP/2 none.
local OF_HANDSHAKE = { ["sec-websocket-key"] = true, ["sec-websocket-version"] = true }

local function request_text(request, ask)
  local lines = { ("GET %s HTTP/1.1"):format(request.target.path) }
  local function add(field) lines[#lines + 1] = field[1] .. ": " .. field[2] end
  for _, field in ipairs(request.fields) do if not OF_HANDSHAKE[field[1]:lower()] then add(field) end end
  for _, field in ipairs(ask:fields()) do add(field) end
  return table.concat(lines, "\r\n") .. "\r\n\r\n"
end

local NOT_PASSED_ON = { ["sec-websocket-accept"] = true, ["content-length"] = true, ["transfer-encoding"] = true }

local function headers_of(fields)
  local headers = {}
  for _, field in ipairs(fields) do
    local name, value = field[1], field[2]
    if not NOT_PASSED_ON[name] then headers[name] = headers[name] and headers[name] .. ", " .. value or value end
  end
  return fetch_response.end_to_end(headers)
end

local function value_of(fields, name)
  for _, field in ipairs(fields) do if field[1] == name then return field[2] end end
end

--- Whether it has switched by our key. What it has chosen is between it and the client.
local function check_accept(ask, fields, rules)
  local ours = {}
  for _, name in ipairs { "upgrade", "connection", "sec-websocket-accept" } do
    ours[#ours + 1] = { name, value_of(fields, name) or "" }
  end
  return ask:check(101, ours, rules)
end

local function refusal_of(connection, status, fields)
  local length = tonumber(value_of(fields, "content-length") or nil)
  local has_body = length and length > 0 and length <= BODY_BYTES_MAX
  local body = has_body and connection:read_exactly(length) or ""
  connection:close()
  return setmetatable({ status = status, headers = headers_of(fields), answer = body, method = "GET" }, Response)
end

local function switched(connection, fields)
  local carrier, rest = socket.parts(connection)
  local relay, err = core.relay(carrier, rest)
  if not relay then return nil, err end
  return setmetatable({ status = 101, headers = headers_of(fields), answer = relay, method = "GET" }, Response)
end

local function connect(target, opts)
  local limits = { connect_timeout = opts.connect_timeout }
  if opts.unix then return socket.unix.connect(opts.unix, limits) end
  return socket.tcp.connect(target.host, target.port, limits)
end

local function ask(connection, request)
  local rules = core.rules { limit = 1, buffer = 1, heartbeat = 0, compress = false, closes = false, client = true }
  local own_ask = core.ask("", false)
  local ok, err = handshake.secure(connection, request.target, request.opts.tls or tls.settings "srv.http.forward")
  if ok then ok, err = connection:write(request_text(request, own_ask)) end
  if not ok then return nil, err end
  local status, fields = handshake.read_answer(connection)
  if not status then return nil, fields end
  if status ~= 101 then return refusal_of(connection, status, fields) end
  local fits, reason = check_accept(own_ask, fields, rules)
  if not fits then return handshake.bad_response(reason) end
  return switched(connection, fields)
end

local function connect_and_ask(request)
  local connection, err = connect(request.target, request.opts)
  if not connection then return nil, err end
  local response
  async.defer(function() if not response then connection:close() end end)
  response, err = ask(connection, request)
  return response, err
end

--- The answer of the server of REQUEST (srv.async.fetch_forward) to a handshake.
---@param request table
---@return srv.SwitchedResponse?
---@return srv.Error? err
function fetch_switch.ask(request)
  return async.timeout(request.opts.timeout, connect_and_ask, request)
end

return fetch_switch
