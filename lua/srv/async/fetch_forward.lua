--- srv.http.forward: a request of ours goes on to another server, and its response comes back.
---
--- Both bodies are streams, nothing is collected. What belongs to one connection ends here (RFC 9110,
--- 7.6.1), and what a client says about who it is counts for nothing unless `proxy_trust` believes it.
local core_http = require "srv.core.http"
local core_ws = require "srv.core.ws"
local errors = require "srv.base.errors"
local fetch_request = require "srv.async.fetch_request"
local fetch_response = require "srv.async.fetch_response"
local fetch_send = require "srv.async.fetch_send"
local fetch_switch = require "srv.async.fetch_switch"
local fetch_url = require "srv.async.fetch_url"
local misuse = require "srv.core.task".misuse
local monotonic = require "srv.core.env".monotonic
local options = require "srv.base.options"
local reader = require "srv.base.reader"
local tls = require "srv.async.tls"

local fetch_forward = {}

local DOWN_SECONDS = 5 -- an origin that could not be reached is asked last for so long
local ORIGINS_MAX = 1000
local CHUNK_BYTES = 64 * 1024

local KNOWN = {
  headers = "table", host = "string", path = "string", timeout = "duration", connect_timeout = "duration",
  first_byte_timeout = "duration", read_timeout = "duration", unix = "string", tls = "table", http2 = "any",
}
local DEFAULTS = { timeout = 10, connect_timeout = 3, read_timeout = 60 }

-- Origins ------------------------------------------------------------------------------------------------

--- Of this VM: origin -> time until which it is thought to be down; list -> whose turn it was.
local down, turns, known = {}, {}, 0

local function remember(map, key, value)
  if map[key] == nil then
    known = known + 1
    if known > ORIGINS_MAX then down, turns, known = {}, {}, 1 end
  end
  map[key] = value
end

local function mark_down(origin) remember(down, origin, monotonic() + DOWN_SECONDS) end

local function is_down(origin)
  local till = down[origin]
  return till ~= nil and till > monotonic()
end

--- ORIGINS in the order in which they are asked: from the one whose turn it is, those that are down last.
local function in_turn(origins)
  local key = table.concat(origins, " ")
  local turn = (turns[key] or 0) % #origins + 1
  remember(turns, key, turn)
  local up, rest = {}, {}
  for i = 0, #origins - 1 do
    local origin = origins[(turn + i - 1) % #origins + 1]
    local list = is_down(origin) and rest or up
    list[#list + 1] = origin
  end
  for _, origin in ipairs(rest) do up[#up + 1] = origin end
  return up
end

local function check_origins(origins)
  local list = type(origins) == "string" and { origins } or origins
  if type(list) ~= "table" or #list == 0 then misuse "srv.http.forward: an origin or a list of origins is missing" end
  for _, origin in ipairs(list) do
    local target = type(origin) == "string" and fetch_url.target(origin)
    if not target or target.path:find("?", 1, true) then
      misuse(("srv.http.forward: %q is no origin, like http://10.0.0.1:8080"):format(tostring(origin)))
    end
  end
  return list
end

-- The request ----------------------------------------------------------------------------------------------

--- Who has asked, as far as that is believed: the trusted chain, then the socket.
local function chain_of(req)
  local chain, peer = {}, req.peer.ip
  for _, ip in ipairs(req.ips) do chain[#chain + 1] = ip end
  if chain[#chain] ~= peer then chain[#chain + 1] = peer end
  return chain
end

local function forwarded_for(ip)
  if ip == "unix" then return "unknown" end
  return ip:find(":", 1, true) and '"[' .. ip .. ']"' or ip
end

--- RFC 7239: one element for each that we know of; host and proto are of the first.
local function forwarded(chain, req)
  local elements = {}
  for i, ip in ipairs(chain) do elements[i] = "for=" .. forwarded_for(ip) end
  local host = req.host
  elements[#elements] = elements[#elements] .. (host ~= "" and (';host="%s"'):format(host) or "") .. ";proto=" .. req.proto
  return table.concat(elements, ", ")
end

-- What we say ourselves; `expect` was dealt with when the body was asked for.
local OURS = {
  host = true, ["content-length"] = true, expect = true, forwarded = true, ["x-real-ip"] = true, via = true,
}

--- Many applications (CGI, WSGI) read "x_forwarded_for" as "x-forwarded-for".
local function is_ours(name)
  name = name:gsub("_", "-")
  return OURS[name] or fetch_response.is_hop_by_hop(name) or name:find "^x%-forwarded%-" ~= nil
end

--- Method, end-to-end fields, and where it has come from.
local function fields_of(req, extra)
  local fields, chain = {}, chain_of(req)
  local function add(name, value) fields[#fields + 1] = { name, value } end
  local replaced = {}
  for name in pairs(extra) do replaced[tostring(name):lower()] = true end
  for name in pairs(fetch_response.end_to_end(req.headers)) do
    if not is_ours(name) and not replaced[name] then
      for _, line in ipairs(req:header_lines(name)) do add(name, line) end
    end
  end
  table.sort(fields, function(a, b) return a[1] < b[1] end)
  local function say(name, value)
    if not replaced[name:lower()] then add(name, value) end
  end
  local via = req:header "via"
  say("Via", (via and via .. ", " or "") .. req.protocol:match("[%d.]+$") .. " srv")
  say("Forwarded", forwarded(chain, req))
  say("X-Forwarded-For", table.concat(chain, ", "))
  say("X-Forwarded-Proto", req.proto)
  if req.host ~= "" then say("X-Forwarded-Host", req.host) end
  return fields
end

--- The client's body as it comes, coded as it is; nil: there is none.
local function body_of(req)
  if not core_http.has_body(req) then return nil end
  core_http.open_stream(req)
  local p = req[1]
  return reader.new(function(bytes) return core_http.read_some(p, math.min(bytes, CHUNK_BYTES)) end)
end

local function host_of(req, host, target)
  if host == "client" then return req.host ~= "" and req.host or target.authority end
  return host ~= "origin" and host or target.authority
end

--- The path as it was sent, behind the origin's own.
local function path_of(req, origin, path)
  local target = fetch_url.target(origin)
  target.path = (target.path:gsub("/$", "")) .. (path or req.original_url)
  return target
end

local function add_extra(fields, extra)
  for name, value in pairs(extra) do
    for _, line in ipairs(type(value) == "table" and value or { value or nil }) do
      fields[#fields + 1] = { name, tostring(line) }
    end
  end
end

--- Whose field it is that cannot be set beside the client's.
local ELSEWHERE = { host = 'is the option "host"', ["content-length"] = "is the client's body's" }

local function check_headers(headers)
  fetch_request.check_fields("srv.http.forward", headers)
  for name in pairs(headers) do
    local where = ELSEWHERE[name:lower()]
    if where then misuse(("srv.http.forward: the header %s %s"):format(name, where)) end
  end
end

local IDEMPOTENT = { GET = true, HEAD = true, PUT = true, DELETE = true, OPTIONS = true, TRACE = true }

local function request_for(req, origin, body, opts)
  local target = path_of(req, origin, opts.path)
  local fields = fields_of(req, opts.headers)
  table.insert(fields, 1, { "Host", host_of(req, opts.host, target) })
  add_extra(fields, opts.headers)
  return {
    method = req.method, target = target, fields = fields, body = body,
    length = tonumber(req:header "content-length" or nil), decodes = false, idempotent = IDEMPOTENT[req.method] or false,
    opts = opts,
  }
end

-- The answer ---------------------------------------------------------------------------------------------

--- Another origin may be asked if this one has not seen the request, or may see it twice.
local function may_go_on(request, sent)
  return sent == "unsent" or request.body == nil and request.idempotent
end

local function ask_in_turn(req, origins, opts)
  local body, deadline = body_of(req), monotonic() + opts.timeout
  local response, err, sent
  for _, origin in ipairs(in_turn(origins)) do
    local request = request_for(req, origin, body, opts)
    response, err, sent = fetch_send.send(request, deadline)
    if response then
      if down[origin] then down[origin] = 0 end
      return fetch_response.end_hop(response)
    end
    if err.code == "refused" or err.code == "dns" or err.code == "closed" or sent == "unsent" then mark_down(origin) end
    if not may_go_on(request, sent) or monotonic() >= deadline then return nil, err end
  end
  return nil, err
end

--- A request that asks for a WebSocket: whose answer is the switch, or a refusal.
local function switch_in_turn(req, origins, opts, protocol)
  if protocol:lower() ~= "websocket" then
    local message = ("connections are switched to websocket only, not to %s"):format(protocol)
    return nil, errors.new(501, message, { code = "not_implemented" })
  end
  local status, reason = core_ws.fault(req)
  if status then return nil, errors.new(status, reason) end
  local response, err
  for _, origin in ipairs(in_turn(origins)) do
    response, err = fetch_switch.ask(request_for(req, origin, nil, opts))
    if response or err.code ~= "refused" and err.code ~= "dns" then break end
    mark_down(origin)
  end
  return response, err
end

--- Passes REQ on to one of ORIGINS and gives its response, whose body is still to come: a handler
--- returns it. `host`: "origin" (what stands in the URL), "client" (what the client asked for) or a name.
---@param req srv.Request
---@param origins string|string[]
---@param opts table?  headers, host, path, timeout, connect_timeout, first_byte_timeout, read_timeout, unix, tls, http2
---@return srv.HttpResponse?
---@return srv.Error? err
function fetch_forward.forward(req, origins, opts)
  local list = check_origins(origins)
  local checked = options.check("srv.http.forward", opts, KNOWN)
  for name, value in pairs(DEFAULTS) do
    if checked[name] == nil then checked[name] = value end
  end
  checked.headers, checked.host = checked.headers or {}, checked.host or "origin"
  checked.stream, checked.proxy = true, false
  checked.paces = true -- an upload may take long, as long as it goes on
  if checked.path and checked.path:sub(1, 1) ~= "/" then misuse 'srv.http.forward: option "path" must begin with "/"' end
  check_headers(checked.headers)
  fetch_request.check_http2("srv.http.forward", checked.http2)
  if checked.tls then checked.tls = tls.settings("srv.http.forward", checked.tls) end
  local protocol = core_ws.asked(req)
  if protocol then return switch_in_turn(req, list, checked, protocol) end
  return ask_in_turn(req, list, checked)
end

return fetch_forward
