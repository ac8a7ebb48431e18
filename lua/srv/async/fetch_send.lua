--- One attempt: a request goes out over a connection of the worker's, a response comes back.
---
--- C (srv.core.fetch) does the waiting. A body that is a function or a reader is pumped by a task beside
--- ours, so that both directions can stream at once; a whole one goes out with the head.
local core = require "srv.core.fetch"
local core_task = require "srv.core.task"
local errors = require "srv.base.errors"
local fetch_request = require "srv.async.fetch_request"
local fetch_response = require "srv.async.fetch_response"
local fetch_url = require "srv.async.fetch_url"
local monotonic = require "srv.core.env".monotonic
local reader = require "srv.base.reader"
local spawn = require "srv.async.task".spawn
local tls = require "srv.async.tls"

local fetch_send = {}

local PIECE_BYTES = 64 * 1024

--- Set by srv.test.upstream: answers in the place of the network. Gets a request, and gives a response
--- or nil and an error.
---@type (fun(request: srv.FetchRequest): srv.HttpResponse?, srv.Error?)?
fetch_send.stub = nil

-- The request's body ----------------------------------------------------------------------------------

local function next_chunk(body)
  local chunk, err
  if reader.is(body) then chunk, err = body:read() else chunk, err = body() end
  if err ~= nil then error(err, 0) end
  if chunk ~= nil and type(chunk) ~= "string" then
    error("srv.http: a body gave a " .. type(chunk) .. " instead of a string", 0)
  end
  return chunk
end

--- All of CHUNK, waiting for room. False: nobody wants more.
local function write(call, chunk)
  local more, at = call:write(chunk, 0)
  while more and at do more, at = call:write(chunk, at) end
  return more
end

local function pump_all(call, body)
  for chunk in next_chunk, body do
    if not write(call, chunk) then return end
  end
  call:finish()
end

--- What goes wrong is left in FAILURE for who waits for the response.
local function pump(call, body, failure)
  local ok, raised = xpcall(pump_all, core_task.keep_trace, call, body)
  if ok then return end
  failure.raised, failure.has = raised, true
  call:fail("the request's body could not be read")
end

-- The response -----------------------------------------------------------------------------------------

local function response_of(request, status, headers, several, length, decoded)
  if decoded then headers["content-encoding"], headers["content-length"] = nil, nil end
  return fetch_response.new {
    status = status, headers = headers, several = several, length = length,
    url = fetch_url.text(request.target), method = request.method,
    had_credentials = fetch_request.has_credentials(request),
  }
end

--- The reader of a body that is still on its way. Each wait has as long as the whole call had, unless
--- the caller said `read_timeout`.
local function open_stream(response, call, opts)
  response.patience = opts.read_timeout or opts.timeout
  response.source = reader.new(function(bytes)
    local piece, err, trailers = call:read(math.min(bytes, PIECE_BYTES), response.patience)
    if trailers then
      for name, value in pairs(trailers) do response.trailers[name] = value end
    end
    return piece, err
  end, function() call:close() end)
  return response
end

--- Reads a stream to its end, within what the caller allows.
local function read_whole(response, limit)
  local body, err = response:stream():all { limit = limit }
  if not body then return nil, err end
  response.body, response.source = body, nil
  return response
end

--- What went wrong for an app to read: which request it was.
local function fault_of(request, err, failure)
  if failure and failure.has then
    local raised = failure.raised
    if errors.is(raised) then return raised end
    error(raised, 0)
  end
  err.message = ("%s %s: %s"):format(request.method, fetch_url.shown(fetch_url.text(request.target)), err.message)
  return err
end

-- Attempts ----------------------------------------------------------------------------------------------

local function milliseconds(seconds) return seconds and math.max(1, math.ceil(seconds * 1000)) or nil end

--- The socket of the origin that the caller meant, and of no other.
local function unix_of(request) return not request.left_origin and request.opts.unix or nil end

local function proxy_of(request)
  local proxy = request.opts.proxy
  if proxy == false or unix_of(request) then return nil end
  proxy = proxy or fetch_url.proxy_of_environment(request.target)
  if not proxy then return nil end
  local target, err = fetch_url.target(proxy)
  if not target then return nil, err end
  if request.opts.http2 == "prior" and request.target.scheme == "http" then
    return nil, errors.coded("invalid", 'a proxy of HTTP/1.1 cannot pass on what http2 = "prior" asks for')
  end
  return target
end

local function http2_of(request) return not request.is_h1 and request.opts.http2 end

local function secured(settings, name, offers_h2)
  local secure = tls.towards(settings, name)
  if offers_h2 then secure.id, secure.offers_h2 = secure.id .. "+h2", true end
  return secure
end

local function settings_of(request) return request.opts.tls or tls.settings "srv.http" end

--- How the server of a URL of https is verified, or nil.
local function tls_of(request)
  local target, settings = request.target, settings_of(request)
  if target.scheme ~= "https" then return nil end
  return secured(settings, settings.server_name or target.host, http2_of(request) ~= false)
end

--- The same of a proxy.
local function tls_of_proxy(request, proxy)
  if not proxy or proxy.scheme ~= "https" then return nil end
  return secured(tls.elsewhere(settings_of(request)), proxy.host, false)
end

--- A proxy with what it must be told to be passed by.
local function key_of_proxy(proxy)
  return proxy and ("%s %s:%s"):format(fetch_url.text(proxy), proxy.user or "", proxy.password or "") or ""
end

--- All that tells connections apart.
local function key_of(request, proxy, secure, by_proxy)
  local target = request.target
  return table.concat({
    target.scheme, target.host, tostring(target.port), unix_of(request) or "", key_of_proxy(proxy),
    by_proxy and by_proxy.id or "", secure and secure.id or "", secure and secure.name or "",
    http2_of(request) == "prior" and "h2" or "",
  }, "\0")
end

local function spec_of(request, proxy, deadline, fresh)
  local opts, at, secure, by_proxy = request.opts, proxy or request.target, tls_of(request), tls_of_proxy(request, proxy)
  local head, fields = fetch_request.head(request, not secure and proxy or nil)
  return {
    key = key_of(request, proxy, secure, by_proxy), host = at.host, port = at.port,
    tls = secure or by_proxy, proxy_tls = secure and by_proxy,
    tunnel = secure and proxy and fetch_request.tunnel(request.target, proxy) or nil,
    path = unix_of(request), is_h2 = not secure and http2_of(request) == "prior", head = head, fields = fields,
    body = type(request.body) == "string" and request.body or request.body ~= nil and (request.length or true) or nil,
    answers_head = request.method == "HEAD", fresh = fresh, decodes = request.decodes, limit = opts.limit,
    connect_ms = milliseconds(opts.connect_timeout), first_byte_ms = milliseconds(opts.first_byte_timeout),
    total_ms = milliseconds(deadline - monotonic()), paces = opts.paces,
  }
end

local function send_whole(request, spec)
  local call = core.call()
  local status, headers, several, length, decoded, body, trailers = call:open(spec, "whole")
  if not status then return nil, headers, several end
  local response = response_of(request, status, headers, several, length, decoded)
  response.body = body
  for name, value in pairs(trailers or {}) do response.trailers[name] = value end
  return response
end

local function send_for_stream(request, spec)
  local call = core.call()
  local status, headers, several, length, decoded = call:open(spec, "head")
  if not status then return nil, headers, several end
  return open_stream(response_of(request, status, headers, several, length, decoded), call, request.opts)
end

--- The body is not touched until there is a connection.
local function send_pumped(request, spec, failure)
  local call = core.call()
  local connected, err, sent = call:open(spec, "connected")
  if not connected then return nil, err, sent end
  local pumping = spawn(pump, call, request.body, failure)
  local status, headers, several, length, decoded = call:head()
  if not status then
    pumping:cancel()
    return nil, headers, "sent"
  end
  local response = open_stream(response_of(request, status, headers, several, length, decoded), call, request.opts)
  if request.opts.stream then return response end
  local whole, fault = read_whole(response, request.opts.limit)
  pumping:cancel()
  return whole, fault, "sent"
end

local function attempt(request, proxy, deadline, fresh, failure)
  local spec = spec_of(request, proxy, deadline, fresh)
  if not fetch_request.can_repeat(request) then
    spec.fresh = true
    return send_pumped(request, spec, failure)
  end
  if request.opts.stream then return send_for_stream(request, spec) end
  return send_whole(request, spec)
end

--- Whether what failed goes out once more, over a fresh connection.
local function goes_again(request, err, sent)
  if not fetch_request.can_repeat(request) then return false end
  return sent == "stale" and request.idempotent or sent == "unsent" and err.code == "closed" or sent == "for_h1"
end

--- Sends REQUEST once; a second time over a fresh connection, if a kept one turned out to be stale and the server
--- has not seen it or may see it twice, or if it wants it in HTTP/1.1. `sent` tells how much the server may have
--- seen of what failed: "unsent" or "sent".
---@param request srv.FetchRequest
---@param deadline number  of srv.monotonic()
---@return srv.HttpResponse?
---@return srv.Error? err
---@return "unsent"|"sent"|nil sent
function fetch_send.send(request, deadline)
  if fetch_send.stub then return fetch_send.stub(request) end
  local proxy, proxy_fault = proxy_of(request)
  if proxy_fault then return nil, proxy_fault, "sent" end
  local failure = {}
  local response, err, sent = attempt(request, proxy, deadline, false, failure)
  if not response and goes_again(request, err, sent) then
    request.is_h1 = sent == "for_h1"
    response, err, sent = attempt(request, proxy, deadline, true, failure)
  end
  if response then return response end
  return nil, fault_of(request, err, failure), sent == "unsent" and "unsent" or "sent"
end

return fetch_send
