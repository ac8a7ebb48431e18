--- The request as handlers see it (API, section 3).
---
--- A view of what C holds (srv.web.objects): fields are read from there when asked for; tables that
--- were made once (query, headers, cookies, state) stay on the view.
local body = require "srv.web.body"
local cookie = require "srv.web.cookie"
local errors = require "srv.base.errors"
local http = require "srv.core.http"
local json = require "srv.core.json"
local log = require "srv.core.log"
local misuse = require "srv.core.task".misuse
local negotiate = require "srv.web.negotiate"
local note_untrusted = require "srv.web.untrusted"
local objects = require "srv.web.objects"
local suggest = require "srv.base.suggest"

---@class srv.TlsInfo
---@field version string        "TLSv1.2"
---@field cipher string         "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
---@field sni string?           the name that the client asked for
---@field resumed boolean       taken up again without a full handshake
---@field client { subject: string, serial: string, fingerprint: string }?  its certificate, if it showed one

---@class srv.Request
---@field method string         "GET"
---@field path string           as sent, still encoded
---@field original_url string   path and query as sent
---@field base_url string       what the mounts took
---@field url string            what is left of the path, and the query
---@field params table<string, string|number>
---@field query table<string, string|string[]>
---@field cookies table<string, string>
---@field headers table<string, string>
---@field valid table           parts checked by the route's schemas
---@field ip string
---@field ips string[]
---@field proto "http"|"https"
---@field secure boolean
---@field host string           with its port
---@field hostname string
---@field peer { ip: string, port: integer }
---@field id string
---@field log table             srv.log bound to this request
---@field state table           your own
---@field route { path: string, name: string?, method: string }?
---@field protocol string       "HTTP/1.1"
---@field tls srv.TlsInfo?      nil: it came over plain HTTP
---@field aborted boolean
---@field session srv.Session?  with the plugin `session`
local Request = { __name = "srv.Request" }

local methods, fields, refused = {}, {}, suggest.foreign "req"

function Request.__index(req, key)
  local method = methods[key]
  if method then return method end
  local field = fields[key]
  if field then return field(req) end
  return refused[key]
end

Request.__newindex = objects.assign
objects.set_request_class(Request)

--- Keeps what was made for the next time this view is asked.
local function remember(req, key, value)
  rawset(req, key, value)
  return value
end

-- Fields --------------------------------------------------------------------------------------------

fields.method = http.method
fields.path = http.path
fields.original_url = http.target
fields.id = http.id
fields.protocol = http.protocol
fields.aborted = http.is_aborted

function fields.params(req) return remember(req, "params", http.params(req)) end
function fields.query(req)
  return remember(req, "query", http.query(req) or errors.raise(400, "more than 1000 pairs in the query"))
end

--- Any case reads: `req.headers["Content-Type"]`.
local Headers = {}
function Headers.__index(headers, name)
  return type(name) == "string" and rawget(headers, name:lower()) or nil
end

function fields.headers(req) return remember(req, "headers", setmetatable(http.headers(req), Headers)) end
function fields.cookies(req) return remember(req, "cookies", cookie.parse(http.header(req, "cookie"))) end

--- Bytes of the path that the mounts took.
local function taken(req)
  local plan = http.plan(req)
  return plan and http.skip(req, plan.inner.segments) or 0
end

function fields.base_url(req) return http.path(req):sub(1, taken(req)) end

function fields.url(req)
  local rest = http.target(req):sub(taken(req) + 1)
  return rest:sub(1, 1) == "/" and rest or "/" .. rest
end

function fields.hostname(req)
  local host = req.host
  return host:match("^(%[.*%])") or host:match("^[^:]*")
end

function fields.peer(req)
  local ip, port = http.peer(req)
  return remember(req, "peer", { ip = ip, port = port })
end

--- What trusted proxies tell of the client. Without the plugin `proxy_trust` nobody is believed but the socket.
local function told(req)
  local read_client = rawget(req, "read_client")
  return read_client and read_client(req)
end

function fields.ip(req)
  local client = told(req)
  if client then return client.ip end
  note_untrusted(req)
  return req.peer.ip
end

function fields.ips(req)
  local client = told(req)
  return client and client.ips or json.array {}
end

function fields.proto(req)
  local client = told(req)
  return client and client.proto or http.is_tls(req) and "https" or "http"
end

function fields.host(req)
  local client = told(req)
  return client and client.host or http.host(req)
end

function fields.secure(req) return req.proto == "https" end
function fields.tls(req) return remember(req, "tls", http.tls(req)) end

function fields.log(req) return remember(req, "log", log.with { reqId = req.id }) end

function fields.state(req)
  req.state = {} -- through __newindex: this view is kept from now on
  return rawget(req, "state")
end

local function no_schema(_, part)
  misuse(("req.valid.%s: this route has no schema for it"):format(tostring(part)))
end
local Valid = { __index = no_schema }

--- What a route's `valid` is made with: which schemas it has is known to its chain, which fills it in before the
--- handler runs. A part of PARTS that did not come, and may, is nil.
---@param parts table<string, true>
---@return metatable
function Request.valid_class(parts)
  return { __index = function(valid, part) return not parts[part] and no_schema(valid, part) or nil end }
end

function fields.valid(req) return remember(req, "valid", setmetatable({}, Valid)) end

--- Of the plugin `session`, read when it is first asked for.
function fields.session(req)
  local open = rawget(req, "open_session")
  if not open then misuse("req.session: app:use(srv.session()) makes it; no such line stands before this") end
  return remember(req, "session", open(req))
end

--- What other frameworks have, and where it is here.
function fields.body()
  misuse("req.body: a body is read by req:json(), req:form(), req:text() or req:bytes(); "
    .. "with a schema (`{ body = rule }`) it is in req.valid.body")
end

function fields.route(req)
  local path, name = http.route_info(req)
  return path and remember(req, "route", { path = path, name = name, method = req.method })
end

-- Methods ---------------------------------------------------------------------------------------------

methods.header = http.header
methods.header_lines = http.header_lines
methods.time_left = http.time_left
methods.fresh = http.is_fresh

local function all_cookies(req)
  return rawget(req, "sent_cookies") or remember(req, "sent_cookies", cookie.parse_all(http.header(req, "cookie")))
end

---@param name string
---@param opts { signed?: boolean, json?: boolean }?
---@return any  nil: not sent; false: forged
function methods:cookie(name, opts) return cookie.read(all_cookies(self), name, opts) end

---@param ... string  "json", "html", media types
---@return string?
function methods:accepts(...) return negotiate.media(http.header(self, "accept"), { ... }) end
function methods:accepts_language(...) return negotiate.language(http.header(self, "accept-language"), { ... }) end
function methods:accepts_encoding(...) return negotiate.encoding(http.header(self, "accept-encoding"), { ... }) end

---@param ... string  "json", "image/*"
---@return string?
function methods:is(...) return negotiate.is(http.header(self, "content-type"), { ... }) end

for name, read in pairs(body.methods) do methods[name] = read end

return { class = Request, fields = fields, methods = methods }
