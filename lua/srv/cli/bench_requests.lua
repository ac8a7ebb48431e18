--- From URLs and options of `srv bench` to the requests of a load: bytes, origins and the order in which
--- connections go through them.
local dns = require "srv.async.dns"
local fetch_request = require "srv.async.fetch_request"
local fetch_url = require "srv.async.fetch_url"
local json = require "srv.base.json"

local bench_requests = {}

local ID = "[<id>]"
local ENCODED_ID = "%5B%3Cid%3E%5D" -- as it may stand in a URL
local ID_ROOM = ("0"):rep(27) -- LOAD_ID_BYTES of src/load/load_plan.h

local function read_file(path)
  local file, why = io.open(path, "rb")
  if not file then return nil, why end
  local bytes = file:read "*a"
  file:close()
  if not bytes then return nil, path .. " cannot be read" end
  return bytes
end

-- Parts of a request ---------------------------------------------------------------------------------

--- "Name=value" and "Name: value", whichever comes first.
local function read_headers(list)
  local headers = {}
  for _, text in ipairs(list or {}) do
    local name, value = text:match "^([^=:]+)[=:]%s*(.*)$"
    if not name then return nil, ("a field is NAME=VALUE, not %q"):format(text) end
    headers[name] = value
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

local function har_headers(list)
  local headers = {}
  for _, field in ipairs(type(list) == "table" and list or {}) do
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
    local request = entry.request or {}
    local target = fetch_url.target((tostring(request.url):gsub("#.*$", "")))
    if target and origins[target.scheme .. target.authority] then
      found[#found + 1] = {
        method = request.method, url = fetch_url.text(target),
        opts = { headers = har_headers(request.headers), body = request.postData and request.postData.text },
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

--- Where ids stand; each has the room that it needs.
local function place_ids(bytes)
  local places, at = {}, 1
  while true do
    local from = bytes:find(ID, at, true)
    if not from then return bytes, places end
    bytes = bytes:sub(1, from - 1) .. ID_ROOM .. bytes:sub(from + #ID)
    places[#places + 1] = from - 1
    at = from + #ID_ROOM
  end
end

--- A body with room for ids must be announced as long as it will be.
local function widen(text) return (text:gsub("%[<id>%]", ID_ROOM)) end

local function merged(common, own)
  local opts = { headers = {}, body = own.body or common.body, multipart = not own.body and common.multipart or nil }
  for name, value in pairs(own.headers or {}) do opts.headers[name] = value end
  for name, value in pairs(common.headers) do opts.headers[name] = value end
  if opts.headers["Accept-Encoding"] == nil then opts.headers["Accept-Encoding"] = false end
  return opts
end

local function write_request(method, address, opts, with_ids)
  local body = opts.body
  if with_ids and type(body) == "string" then opts.body = widen(body) end
  if with_ids then address = address:gsub("%[<id>%]", ENCODED_ID:gsub("%%", "%%%%")) end
  local request, err = fetch_request.new("srv bench", method, address, opts)
  if not request then return nil, err.message end
  if request.target.scheme == "https" then return nil, fetch_request.tls_fault(request.target).message end
  local head = fetch_request.head(request)
  if not with_ids then return { bytes = head .. (request.body or ""), is_head = method == "HEAD" }, nil, request.target end
  head = head:gsub(ENCODED_ID:gsub("%%", "%%%%"), ID)
  local bytes, ids = place_ids(head .. (type(body) == "string" and body or request.body or ""))
  return { bytes = bytes, ids = ids, is_head = method == "HEAD" }, nil, request.target
end

-- Origins and order ----------------------------------------------------------------------------------

local function resolve(target)
  local addresses, err = dns.resolve(target.host, { timeout = "5s" })
  if not addresses then return nil, ("%s: %s"):format(target.authority, err.message) end
  return { host = addresses[1], port = target.port }
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

--- The part of a plan (srv.core.load) that says what is sent, or nil and what is wrong.
---@param urls string[]
---@param opts table    as bench_options has read them
---@return table? plan  { origins, requests, wheel }
---@return string? problem
function bench_requests.plan(urls, opts)
  local common, why = read_common(opts)
  if not common then return nil, why end
  local wanted, weights
  wanted, why = wanted_requests(urls, opts, common)
  if not wanted then return nil, why end
  weights, why = read_weights(opts.weights, #wanted)
  if not weights then return nil, why end
  local plan, numbers = { origins = {}, requests = {}, wheel = spread(weights) }, {}
  for i, want in ipairs(wanted) do
    local send = merged(common, want.opts)
    local request, problem, target = write_request(want.method, want.url, send, opts["id-replacement"])
    if not request then return nil, problem end
    local key = opts["socket-path"] or target.host .. ":" .. target.port
    if not numbers[key] then
      local origin = opts["socket-path"] and { path = opts["socket-path"] }
      if not origin then
        origin, problem = resolve(target)
        if not origin then return nil, problem end
      end
      plan.origins[#plan.origins + 1] = origin
      numbers[key] = #plan.origins
    end
    request.origin, request.expect = numbers[key], opts["expect-body"]
    plan.requests[i] = request
  end
  return plan
end

return bench_requests
