--- app:ws (API, section 12): a route whose answer is a WebSocket.
---
--- The route is one as any other: middleware, hooks and schemas run, and may refuse. Its handler records the socket,
--- and when the answer goes out it is the switch (bind/lws_upgrade.h); from then on the socket has tasks of its own.
local class = require "srv.async.websocket_class"
local core = require "srv.core.ws"
local errors = require "srv.base.errors"
local http = require "srv.core.http"
local kinds = require "srv.web.handler"
local linked = require "srv.async.linked"
local log = require "srv.core.log"
local misuse = require "srv.core.task".misuse
local monotonic = require "srv.core.env".monotonic
local options = require "srv.base.options"
local origins = require "srv.base.origins"
local socket_request = require "srv.web.websocket_request"
local socket_rules = require "srv.async.websocket_rules"

local websocket = {}

local publish_from = require("srv.core.bus").publish_from

-- Topics ------------------------------------------------------------------------------------------------

local methods, fields = class.methods, class.fields

fields.req = socket_request.of

local own_state = fields.state

--- What middleware has put in req.state.
function fields.state(ws)
  local req = ws.req
  return req and req.state or own_state(ws)
end

--- What is published to TOPIC reaches the peer as text from now on; "*" in it stands for any bytes.
---@param topic string
---@return true?
---@return srv.Error? err
function methods:subscribe(topic)
  if linked.bus then linked.bus() end
  return core.subscribe(self, topic)
end

---@param topic string
---@return srv.WebSocket
function methods:unsubscribe(topic)
  core.unsubscribe(self, topic)
  return self
end

--- V goes to all who hear TOPIC, but not to this socket.
---@param topic string
---@param v any
---@return true?
---@return srv.Error? err
function methods:publish(topic, v)
  local ok, err = publish_from(topic, v, core.serial(self))
  if ok and linked.bus then linked.bus().tell(topic, v) end
  return ok, err
end

-- Who may come --------------------------------------------------------------------------------------------

--- A browser always says which page wants to talk; who says nothing is none, so nobody's cookies are with him.
local function check_of(given)
  if given == nil then return origins.is_own end
  if given == "*" then return function() return true end end
  if type(given) == "function" then return given end
  if type(given) ~= "table" or #given == 0 then
    misuse 'app:ws: origins must be a list like { "https://app.example" }, "*", or a function'
  end
  return origins.matcher("app:ws", given)
end

local TELL_EVERY = 1 -- seconds: whoever is refused may ask as often as he likes
local told_at, untold = -TELL_EVERY, 0

--- The host is the app's own affair: behind a proxy it is an address that nobody outside knows.
local function tell_refused(origin, req)
  local now = monotonic()
  if now - told_at < TELL_EVERY then
    untold = untold + 1
    return
  end
  log.warn("socket of another site refused", {
    origin = origin, host = req.host, path = req.path, untold = untold,
    hint = "app:ws(path, { origins = { ... } }, ...) allows an origin; behind a proxy, srv.proxy_trust tells the host",
  })
  told_at, untold = now, 0
end

local function refuse_origin(origin, req)
  tell_refused(origin, req)
  errors.raise(403, "this socket was asked for by a page of another site", { code = "cross_site" })
end

local function check_origin(is_allowed, req)
  local origin = http.header(req, "origin")
  if not origin then return end
  local allowed, err = is_allowed(origin, req)
  if not allowed and err ~= nil then error(errors.adopt(err), 0) end
  if not allowed then refuse_origin(origin, req) end
end

-- The route's handler -----------------------------------------------------------------------------------

local function check_handshake(req)
  local status, reason = core.fault(req)
  if status then errors.raise(status, reason) end
end

local function handler_of(rules, is_allowed)
  return function(req, res)
    check_handshake(req)
    check_origin(is_allowed, req)
    local ws = core.socket(req, rules)
    socket_request.keep(ws, req)
    http.record(res, false, http.SOCKET, ws)
  end
end

-- Declaring -----------------------------------------------------------------------------------------------

local KNOWN = {
  origins = "any", protocols = "table", limit = "bytes", buffer = "bytes", overflow = "wait|close", heartbeat = "any",
  message_timeout = "any", compress = "boolean",
  -- the route's own
  params = "any", query = "any", headers = "any", cookies = "any", timeout = "duration", name = "string",
  fallback = "boolean",
}
local EVENTS = { open = "function", message = "function", close = "function" }

--- What C is to know of all sockets of one route. The handlers get the socket, whose `req` is the request.
local function rules_of(opts, handler)
  local rules = socket_rules.of("app:ws", opts)
  rules.events = not kinds.is_callable(handler)
  local open = handler
  if rules.events then open, rules.message, rules.close = handler.open, handler.message, handler.close end
  rules.open = open and function(ws) open(ws, ws.req) end
  return core.rules(rules)
end

local function has_event(v)
  return type(v) == "table" and (v.open ~= nil or v.message ~= nil or v.close ~= nil)
end

local OF_ROUTE = { "params", "query", "headers", "cookies", "timeout", "name", "fallback" }

--- The handlers of a table, and what of it are options.
local function split_events(v)
  local events, rest = {}, {}
  for name, value in pairs(v) do
    if EVENTS[name] then events[name] = value else rest[name] = value end
  end
  return options.check("app:ws", events, EVENTS), rest
end

--- The last argument: a function for the whole life of a socket, or one for each event.
local function split_handler(last)
  if kinds.is_callable(last) then return last, {} end
  if has_event(last) then return split_events(last) end
  misuse "app:ws: the last argument is a function(ws, req), or a table with `open`, `message`, `close`"
end

local function is_options(v)
  return kinds.is_options(v) and not has_event(v)
end

local function merge(a, b)
  local merged = {}
  for name, value in pairs(a) do merged[name] = value end
  for name, value in pairs(b) do merged[name] = value end
  return options.check("app:ws", merged, KNOWN)
end

local function route_options(opts)
  local own = { hidden = true }
  for _, name in ipairs(OF_ROUTE) do own[name] = opts[name] end
  return own
end

--- Adds sockets at PATHS to ROUTER: `app:ws(path, [options], [middleware...], handler)`. The handler is a
--- function(ws, req), one coroutine for each socket; or a table { open, message, close }, which costs none while nothing happens.
---@param router srv.Router
---@param paths string|string[]
---@param given any
---@param ... any
function websocket.declare(router, paths, given, ...)
  if not is_options(given) then return websocket.declare(router, paths, {}, given, ...) end
  local count = select("#", ...)
  local functions = { ... }
  local handler, beside = split_handler(functions[count])
  local opts = merge(given, beside)
  functions[count] = handler_of(rules_of(opts, handler), check_of(opts.origins))
  router:route("GET", paths, route_options(opts), unpack(functions, 1, count))
  local declared = router.declared.routes
  declared[#declared].is_socket = true
end

return websocket
