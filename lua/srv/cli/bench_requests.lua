--- From URLs and options of `srv bench` to the requests of a load: bytes, origins and the order in which
--- connections go through them.
local dns = require "srv.async.dns"
local fetch_request = require "srv.async.fetch_request"
local fetch_url = require "srv.async.fetch_url"
local json = require "srv.base.json"
local tcp = require "srv.async.tcp"
local utf8 = require "srv.base.utf8"

local bench_requests = {}

--- What stands in a request until the load writes an id there: LOAD_ID_BYTES of src/load/load_plan.h.
local ID_ROOM = "srv-bench-id-00000000000000"
local PROBE_TIME = "1s"
local DEFAULT_MESSAGE = "hello"

local function read_file(path)
  local file, why = io.open(path, "rb")
  if not file then return nil, why end
  local bytes = file:read "*a"
  file:close()
  if not bytes then return nil, path .. " cannot be read" end
  return bytes
end

-- Parts of a request ---------------------------------------------------------------------------------

--- "Name=value" and "Name: value", whichever sign comes first; a name that comes again is sent again.
local function read_headers(list)
  local headers = {}
  for _, text in ipairs(list or {}) do
    local name, value = text:match "^([^=:]+)[=:]%s*(.*)$"
    if not name then return nil, ("a field is NAME=VALUE, not %q"):format(text) end
    local values = headers[name] or {}
    values[#values + 1], headers[name] = value, values
  end
  return headers
end

--- autocannon's form: { name = { type = "text", value = } | { type = "file", path =, options = { filename = } } }
local function read_form(text)
  local form, err = json.decode(text)
  if not form and not text:find "^%s*{" then
    local bytes, why = read_file(text)
    if not bytes then return nil, why end
    form, err = json.decode(bytes)
  end
  if type(form) ~= "table" then return nil, "--form is no JSON object: " .. (err and err.message or "") end
  local parts = {}
  for name, part in pairs(form) do
    if type(part) ~= "table" then return nil, ("the part %q of --form must be an object"):format(name) end
    if part.type == "file" then
      local bytes, why = read_file(tostring(part.path))
      if not bytes then return nil, why end
      local opts = type(part.options) == "table" and part.options or {}
      parts[name] = { body = bytes, name = opts.filename or opts.filepath or part.path:match "[^/]*$", type = opts.contentType }
    else
      parts[name] = tostring(part.value or "")
    end
  end
  return parts
end

--- What all requests have in common, or nil and what is wrong.
local function read_common(opts)
  local headers, why = read_headers(opts.headers)
  if not headers then return nil, why end
  local common = { headers = headers }
  if opts.input then
    common.body, why = read_file(opts.input)
    if not common.body then return nil, why end
  elseif opts.form then
    common.multipart, why = read_form(opts.form)
    if not common.multipart then return nil, why end
  else
    common.body = opts.body
  end
  return common
end

-- HAR ------------------------------------------------------------------------------------------------

local OWN_FIELDS = { host = true, ["content-length"] = true, connection = true, ["transfer-encoding"] = true }

--- VALUE, or nothing where a file has something else than an object.
local function object(value) return type(value) == "table" and value or {} end

local function text_of(value) return type(value) == "string" and value or nil end

local function har_headers(list)
  local headers = {}
  for _, field in ipairs(object(list)) do
    field = object(field)
    local name = tostring(field.name)
    if not OWN_FIELDS[name:lower()] and name:sub(1, 1) ~= ":" then headers[name] = tostring(field.value) end
  end
  return headers
end

--- The requests of a HAR file that go to one of ORIGINS; the others are told of.
local function read_har(path, origins)
  local bytes, why = read_file(path)
  if not bytes then return nil, why end
  local har = json.decode(bytes)
  local entries = type(har) == "table" and type(har.log) == "table" and har.log.entries
  if type(entries) ~= "table" then return nil, path .. " is no HAR file: it has no log.entries" end
  local found, others = {}, 0
  for _, entry in ipairs(entries) do
    local request = object(object(entry).request)
    local target = fetch_url.target((tostring(request.url):gsub("#.*$", "")))
    if target and text_of(request.method) and origins[target.scheme .. target.authority] then
      found[#found + 1] = {
        method = request.method, url = fetch_url.text(target),
        opts = { headers = har_headers(request.headers), body = text_of(object(request.postData).text) },
      }
    else
      others = others + 1
    end
  end
  if #found == 0 then return nil, ("no request of %s goes to the URLs that were given"):format(path) end
  if others > 0 then io.stderr:write(("%d requests of %s go elsewhere and are left out\n"):format(others, path)) end
  return found
end

-- Bytes ----------------------------------------------------------------------------------------------

--- TEXT with room for an id wherever it says [<id>], as it is or as URLs write it.
local function with_room(text)
  return (text:gsub("%[<id>%]", ID_ROOM):gsub("%%5[Bb]%%3[Cc]id%%3[Ee]%%5[Dd]", ID_ROOM))
end

local function with_room_everywhere(value)
  if type(value) == "string" then return with_room(value) end
  if type(value) ~= "table" then return value end
  local copy = {}
  for key, item in pairs(value) do copy[key] = with_room_everywhere(item) end
  return copy
end

--- Where ids go: bytes before each.
local function places_of(bytes)
  local places, at = {}, 1
  while true do
    local from, to = bytes:find(ID_ROOM, at, true)
    if not from then return places end
    places[#places + 1], at = from - 1, to + 1
  end
end

--- srv.fetch() keeps Connection to itself; a load may close each connection.
local function take_connection(headers)
  for name, value in pairs(headers) do
    if name:lower() == "connection" then
      headers[name] = nil
      return type(value) == "table" and value[1] or value
    end
  end
  return nil
end

--- A request as srv.fetch() would make it. What it calls misuse is here what the user has written.
local function make_request(method, address, opts)
  local done, request, err = pcall(fetch_request.new, "srv bench", method, address, opts)
  if not done then return nil, (tostring(request):gsub("^.-srv bench: ", "")) end
  if not request then return nil, err.message end
  return request
end

--- COMMON's fields and body in the place of a request's OWN, and nothing that was not asked for.
local function merged(common, own)
  local opts = fetch_request.merge({ headers = { ["Accept-Encoding"] = false } }, own)
  return fetch_request.merge(opts, common)
end

--- Request line, fields and body as HTTP/1.1 has them.
local function write_h1(request, connection)
  local head = fetch_request.head(request)
  if connection then head = head:gsub("\r\n$", function() return ("Connection: %s\r\n\r\n"):format(connection) end) end
  return head .. (request.body or "")
end

--- Names and values one behind the other, the body, and how long each of the former is.
local function write_h2(request)
  local texts, lengths = {}, {}
  for _, field in ipairs(fetch_request.h2_fields(request)) do
    for _, text in ipairs(field) do
      texts[#texts + 1], lengths[#lengths + 1] = text, #text
    end
  end
  return table.concat(texts) .. (request.body or ""), lengths
end

--- The head of a handshake, but for what the load adds to it, and a message.
local function write_ws(request, message)
  local head = fetch_request.head(request):gsub("\r\n$", "")
  return head .. message, #head
end

local function write_request(method, address, opts, common)
  local with_ids = common["id-replacement"]
  if with_ids then
    address, opts.body, opts.multipart = with_room(address), with_room_everywhere(opts.body), with_room_everywhere(opts.multipart)
    opts.headers = with_room_everywhere(opts.headers)
  end
  local message = common.websocket and (opts.body or DEFAULT_MESSAGE)
  if message then opts.body = nil end
  local connection = take_connection(opts.headers)
  local request, problem = make_request(method, address, opts)
  if not request then return nil, problem end
  local bytes, fields, head
  if message then
    bytes, head = write_ws(request, message)
  elseif common.http2 then
    if connection then return nil, "the field Connection is of HTTP/1.1: --reconnect-rate 1 makes each connection anew" end
    bytes, fields = write_h2(request)
  else
    bytes = write_h1(request, connection)
  end
  return {
    bytes = bytes, fields = fields, head = head, ids = with_ids and places_of(bytes) or nil, is_head = method == "HEAD",
    expect = message and not message:find(ID_ROOM, 1, true) and message or nil,
  }, nil, request.target
end

-- Origins and order ----------------------------------------------------------------------------------

--- "localhost" has two addresses, and a server may listen on one of them: the first that answers.
local function first_that_listens(addresses, port)
  if #addresses == 1 then return addresses[1] end
  for _, address in ipairs(addresses) do
    local probe = tcp.connect(address, port, { connect_timeout = PROBE_TIME })
    if probe then
      probe:close()
      return address
    end
  end
  return addresses[1]
end

local function resolve(target)
  local addresses, err = dns.resolve(target.host, { timeout = "5s" })
  if not addresses then return nil, err.message end
  return { host = first_that_listens(addresses, target.port), port = target.port }
end

--- Where TARGET is, and with https whose certificate its server must have; or nil and what is wrong.
local function origin_of(target, opts)
  local origin, problem = opts["socket-path"] and { path = opts["socket-path"] }
  if not origin then
    origin, problem = resolve(target)
    if not origin then return nil, problem end
  end
  if target.scheme == "https" then origin.tls, origin.name = true, opts.servername or target.host end
  return origin
end

--- Each as often as its weight says, spread evenly: always the one that is furthest behind its share.
local function spread(weights)
  local wheel, behind, total = {}, {}, 0
  for i, weight in ipairs(weights) do
    behind[i], total = 0, total + weight
  end
  for _ = 1, total do
    local most = 1
    for i, weight in ipairs(weights) do
      behind[i] = behind[i] + weight
      if behind[i] > behind[most] then most = i end
    end
    behind[most] = behind[most] - total
    wheel[#wheel + 1] = most
  end
  return wheel
end

local function read_weights(text, count)
  local weights = {}
  for word in (text or ""):gmatch "[^,]+" do
    local weight = tonumber(word)
    if not weight or weight < 1 or weight % 1 ~= 0 then
      return nil, ("a weight is a whole number from 1 on, not %q"):format(word)
    end
    weights[#weights + 1] = weight
  end
  if text and #weights ~= count then return nil, ("--weights has %d numbers for %d URLs"):format(#weights, count) end
  for i = #weights + 1, count do weights[i] = 1 end
  return weights
end

local function wanted_requests(urls, opts, common)
  if not opts.har then
    local list = {}
    for i, address in ipairs(urls) do
      list[i] = { method = opts.method or (opts.form and "POST" or "GET"), url = address, opts = {} }
    end
    return list
  end
  local origins = {}
  for _, address in ipairs(urls) do
    local target, err = fetch_url.target(address)
    if not target then return nil, err.message end
    origins[target.scheme .. target.authority] = true
  end
  common.body, common.multipart = nil, nil
  return read_har(opts.har, origins)
end

local HTTP_OF = { ws = "http", wss = "https" }
local IS_HTTP = { http = true, https = true }

--- URLs of ws and wss as those of http and https they are asked by, and whether they were such; or nil and what is
--- wrong.
local function read_schemes(urls)
  local list, count = {}, 0
  for i, address in ipairs(urls) do
    local scheme, rest = address:match "^(%a[%w+.-]*)(://.*)$"
    local http = HTTP_OF[(scheme or ""):lower()]
    if scheme and not http and not IS_HTTP[scheme:lower()] then
      return nil, ("the URL is not valid: %q does not begin with http://, https://, ws:// or wss://"):format(address)
    end
    list[i] = http and http .. rest or address
    count = count + (http and 1 or 0)
  end
  if count > 0 and count < #urls then return nil, "URLs of ws:// and of http:// do not go into one load" end
  return list, nil, count > 0
end

--- A connection stays with one server, so each needs one; they are dealt out in the order of the wheel.
local function check_shares(plan, connections)
  local served, count = {}, 0
  for i = 1, math.min(connections, #plan.wheel) do
    local origin = plan.requests[plan.wheel[i]].origin
    count = count + (served[origin] and 0 or 1)
    served[origin] = true
  end
  if count == #plan.origins then return nil end
  return ("%d connections reach %d of %d servers: -c must be larger for these weights"):format(connections, count, #plan.origins)
end

--- The part of a plan (srv.core.load) that says what is sent, or nil and what is wrong.
---@param urls string[]
---@param opts table    as bench_options has read them
---@return table? plan  { origins, requests, wheel }
---@return string? problem
function bench_requests.plan(urls, opts)
  local common, why = read_common(opts)
  if not common then return nil, why end
  urls, why, opts.websocket = read_schemes(urls)
  if not urls then return nil, why end
  if opts.websocket and (opts.http2 or opts.har or opts.form or opts.method) then
    return nil, "with ws:// a message goes out and comes back: --http2, --har, --form and --method are not for that"
  end
  local wanted, weights
  wanted, why = wanted_requests(urls, opts, common)
  if not wanted then return nil, why end
  weights, why = read_weights(opts.weights, #wanted)
  if not weights then return nil, why end
  local plan, numbers = { origins = {}, requests = {}, wheel = spread(weights), websocket = opts.websocket }, {}
  plan.binary = plan.websocket and not utf8.length(common.body or "") or nil
  for i, want in ipairs(wanted) do
    local send = merged(common, want.opts)
    local request, problem, target = write_request(want.method, want.url, send, opts)
    if not request then return nil, problem end
    local key = target.scheme .. " " .. (opts["socket-path"] or target.host .. ":" .. target.port)
    if not numbers[key] then
      local origin
      origin, problem = origin_of(target, opts)
      if not origin then return nil, problem end
      plan.origins[#plan.origins + 1] = origin
      numbers[key] = #plan.origins
    end
    request.origin, request.expect = numbers[key], opts["expect-body"] or request.expect
    plan.requests[i] = request
  end
  why = check_shares(plan, opts.connections)
  if why then return nil, why end
  return plan
end

return bench_requests
