--- The opening handshake of a WebSocket over a connection of srv.tcp: for srv.websocket, and for srv.http.forward, which passes
--- one on.
local errors = require "srv.base.errors"
local socket = require "srv.async.socket"
local text = require "srv.base.text"
local tls = require "srv.async.tls"

local handshake = {}

local HEAD_BYTES_MAX = 32 * 1024
local FIELDS_MAX = 100 -- also in bind/lws_client.c

local function bad_response(what)
  return nil, errors.coded("bad_response", "the server's answer is not valid: " .. what)
end

local function fields_of(lines)
  local fields = {}
  for line in lines:gmatch "([^\r\n]+)\r?\n" do
    local name, value = line:match "^([^:%s]+):[ \t]*(.-)[ \t]*$"
    if not name or not text.is_token(name) or not text.is_field_value(value) then
      return bad_response(("%q is no field"):format(line:sub(1, 80)))
    end
    fields[#fields + 1] = { name:lower(), value }
  end
  if #fields > FIELDS_MAX then return bad_response(("more than %d fields"):format(FIELDS_MAX)) end
  return fields
end

--- Status and fields of the next head.
local function read_head(connection)
  local head, err = connection:read_until("\r\n\r\n", HEAD_BYTES_MAX)
  if not head then
    if err and err.code ~= "too_large" then return nil, err end
    return bad_response(err and "its head is too large" or "it ended before the answer")
  end
  local minor, status, lines = (head .. "\r\n"):match "^HTTP/1%.(%d) (%d%d%d)[^\r\n]*\r\n(.*)$"
  if not status or status == "101" and minor == "0" then return bad_response "this is no HTTP/1.1" end
  local fields
  fields, err = fields_of(lines)
  if not fields then return nil, err end
  return tonumber(status), fields
end

--- 1xx but 101 comes before the answer.
---@param connection srv.Socket
---@return integer? status
---@return { [1]: string, [2]: string }[]|srv.Error fields_or_err  names in lower case
function handshake.read_answer(connection)
  local status, fields
  repeat
    status, fields = read_head(connection)
  until not status or status == 101 or status >= 200
  return status, fields
end

--- The next byte is TLS, if the URL says so.
---@param connection srv.Socket
---@param target { scheme: string, host: string, port: integer }
---@param settings srv.TlsSettings
---@return true?
---@return srv.Error?
function handshake.secure(connection, target, settings)
  if target.scheme ~= "wss" and target.scheme ~= "https" then return true end
  local carrier = socket.parts(connection)
  local name = settings.server_name or target.host
  return carrier:secure {
    key = ("wss\0%s\0%s\0%d\0%s"):format(target.host, name, target.port, settings.id),
    tls = tls.towards(settings, name),
  }
end

handshake.bad_response = bad_response

return handshake
