--- The answer as handlers shape it (API, section 4).
---
--- A view like the request (srv.web.objects). Methods that only set or record are C's; here are
--- those that think: redirects, cookies, negotiation, streams.
local answer = require "srv.web.answer"
local cookie = require "srv.web.cookie"
local errors = require "srv.base.errors"
local files = require "srv.web.files"
local http = require "srv.core.http"
local misuse = require "srv.core.task".misuse
local negotiate = require "srv.web.negotiate"
local objects = require "srv.web.objects"
local options = require "srv.base.options"
local sse = require "srv.web.sse"
local suggest = require "srv.base.suggest"
local text = require "srv.base.text"

---@class srv.Response
---@field error srv.Error?   the error answered with
---@field answered boolean   an answer is recorded
---@field committed boolean  the head is out
local Response = { __name = "srv.Response" }

local methods, fields, refused = {}, {}, suggest.foreign "res"

function Response.__index(res, key)
  local method = methods[key]
  if method then return method end
  local field = fields[key]
  if field then return field(res) end
  return refused[key]
end

Response.__newindex = objects.assign
objects.set_response_class(Response)

fields.answered = http.is_answered
fields.committed = http.is_committed

-- Head: each of these is `res:name(value) -> res`, and without a value reads.
methods.status = http.status
methods.header = http.field
methods.append = http.append
methods.remove = http.remove
methods.type = http.type
methods.vary = http.vary
methods.last_modified = http.last_modified
methods.early_hints = http.early_hints

local ETAG_OPTIONS = { weak = "boolean" }

--- Quotes are added where they are missing.
---@param tag string?
---@param opts { weak?: boolean }?
---@return srv.Response|string?
function methods:etag(tag, opts)
  if opts ~= nil then opts = options.check("res:etag", opts, ETAG_OPTIONS) end
  return http.etag(self, tag, opts)
end

-- Answers -------------------------------------------------------------------------------------------

local function refuse_more(name)
  misuse(("res:%s takes one value: a status goes before it, res:status(201):%s(v); headers too, res:header(name, v)")
    :format(name, name))
end

--- What else frameworks take here, a status, would be lost without a word.
function methods:json(v, more)
  if more ~= nil then refuse_more "json" end
  return http.record(self, false, http.JSON, v)
end

--- A body that is none would be an empty 200, and nobody would know why.
local function check_body(name, s, more)
  local kind = type(s)
  if kind ~= "string" and kind ~= "number" then
    misuse(("res:%s: a string was expected, not %s%s"):format(name, kind,
      s == nil and (" (is it called with a colon, res:%s(s)?)"):format(name) or ""))
  end
  if more ~= nil then refuse_more(name) end
end

---@param s string|number
function methods:html(s, more)
  check_body("html", s, more)
  http.record(self, false, http.TEXT, s)
  return http.type(self, "html")
end

---@param s string|number
function methods:text(s, more)
  check_body("text", s, more)
  return http.record(self, false, http.TEXT, s)
end

---@param s string|number
function methods:bytes(s, more)
  check_body("bytes", s, more)
  http.record(self, false, http.TEXT, s)
  return http.default_type(self, "application/octet-stream")
end

--- Records V by the table of what a handler may return.
---@return srv.Response
function methods:send(v, more)
  if v == nil then misuse("res:send: a value is missing (JSON's null is srv.null)") end
  if more ~= nil then refuse_more "send" end
  answer.settle(self, v)
  return http.note_where(self)
end

--- What was recorded; with a value: puts it in the recorded one's place, under the same status.
function methods:body(...)
  if select("#", ...) == 0 then return (http.recorded(self)) end
  answer.replace(self, self:status() or 200, (...))
  return self
end

--- A view of views/ filled with DATA (section 11), under the type of its kind unless one is set.
---@param view string
---@param data table?
function methods:render(view, data)
  local template = require "srv.web.template"
  http.record(self, false, http.TEXT, template.render(view, data))
  return http.default_type(self, template.media_type(view))
end

local REDIRECTS = { [301] = true, [302] = true, [303] = true, [307] = true, [308] = true }

--- A short body for clients that do not follow; the URL in it is escaped.
---@param url string
---@param status integer?
function methods:redirect(url, status)
  status = status or 302
  if type(url) ~= "string" then misuse('res:redirect: the URL comes first, then the status: res:redirect("/news", 303)') end
  if not REDIRECTS[status] then misuse("res:redirect: the status must be 301, 302, 303, 307 or 308") end
  local location = text.encode_url(url)
  http.status(self, status)
  http.field(self, "Location", location)
  http.vary(self, "Accept")
  local accept = http.header(objects.request(self[1]), "accept")
  if accept and negotiate.media(accept, { "text", "html" }) == "html" then
    local escaped = text.escape_html(location)
    return self:html(('<p>Redirecting to <a href="%s">%s</a></p>\n'):format(escaped, escaped))
  end
  return self:text("Redirecting to " .. location .. "\n")
end

--- The offer that the client likes best; sets type and Vary. 406 if none fits.
---@param ... string
---@return string
function methods:negotiate(...)
  local offers = { ... }
  if #offers == 0 then misuse("res:negotiate: nothing is offered") end
  http.vary(self, "Accept")
  local chosen = negotiate.media(http.header(objects.request(self[1]), "accept"), offers)
  if not chosen then errors.raise(406, "there is " .. table.concat(offers, ", ")) end
  http.type(self, chosen)
  return chosen
end

-- Cookies and links -----------------------------------------------------------------------------------

---@param name string
---@param value string|number|table
---@param opts table?
function methods:cookie(name, value, opts)
  if value == nil then misuse("res:cookie: a value is missing (clear_cookie takes one back)") end
  return http.append(self, "Set-Cookie", cookie.write(name, value, opts, objects.request(self[1]).secure))
end

--- The options must be those the cookie was set with: path and domain.
---@param name string
---@param opts table?
function methods:clear_cookie(name, opts)
  local cleared = {}
  for key, value in pairs(opts or {}) do cleared[key] = value end
  cleared.max_age = 0
  return http.append(self, "Set-Cookie", cookie.write(name, "", cleared, objects.request(self[1]).secure))
end

--- `Link: <url>; rel="next"`, in byte order of the relations.
---@param links table<string, string>
function methods:links(links)
  local relations = {}
  if type(links) ~= "table" then misuse("res:links: a table of relations and URLs was expected, not " .. type(links)) end
  for relation, url in pairs(links) do
    if type(relation) ~= "string" or relation:find('[%c"\\]') then
      misuse(("res:links: %q is no relation"):format(tostring(relation)))
    end
    if type(url) ~= "string" then misuse(("res:links: the URL of %q must be a string"):format(relation)) end
    relations[#relations + 1] = relation
  end
  table.sort(relations)
  for i, relation in ipairs(relations) do
    relations[i] = ('<%s>; rel="%s"'):format(text.encode_url(links[relation]), relation)
  end
  return http.append(self, "Link", table.concat(relations, ", "))
end

-- Streams ---------------------------------------------------------------------------------------------

--- Sends the head if it is not out, then CHUNK. Waits while the client is slower.
---@param chunk string
---@return srv.Response?
---@return srv.Error?
function methods:write(chunk)
  if type(chunk) ~= "string" then misuse("res:write: a string is missing") end
  answer.commit(self)
  return answer.write(self, chunk)
end

--- What was written goes out now.
---@return srv.Response
function methods:flush()
  answer.commit(self)
  return http.flush(self)
end

--- RFC 9110, 6.5.1: what frames, routes, authenticates, controls or describes a message, and what browsers are
--- to obey while they read it, must be known before its body.
local NO_TRAILERS = {}
for name in ([[
  content-length content-type content-encoding content-range content-disposition content-language content-location
  content-security-policy content-security-policy-report-only transfer-encoding connection keep-alive proxy-connection
  te trailer upgrade host expect max-forwards range pragma authorization proxy-authorization proxy-authenticate
  www-authenticate cookie set-cookie cache-control expires location vary date age retry-after
  strict-transport-security x-frame-options x-content-type-options
]]):gmatch "%S+" do NO_TRAILERS[name] = true end

local function is_no_trailer(name)
  return NO_TRAILERS[name] or name:find "^if%-" ~= nil or name:find "^access%-control%-" ~= nil
end

local TRAILERS_MAX = 32 -- also in bind/lstream.c

local function check_trailer(name, value)
  if type(name) ~= "string" or not text.is_token(name) then
    misuse(("res:trailer: %q is no name for a header"):format(tostring(name)))
  end
  if is_no_trailer(name:lower()) then misuse(("res:trailer: %s cannot stand behind the body"):format(name)) end
  local kind = type(value)
  if kind == "function" or kind == "number" or kind == "string" and text.is_field_value(value) then return end
  misuse("res:trailer: the value must be a text of one line, or a function that gives one")
end

--- A field behind a streamed body; a function is called at its end, and may give nil: then there is none. Where there
--- is no place for one (HTTP/1.0, a body whose length is known) it is dropped.
---@param name string
---@param value string|number|fun(): string|number|nil
---@return srv.Response
function methods:trailer(name, value)
  check_trailer(name, value)
  local list = rawget(self, "trailer_list") or {}
  if #list == TRAILERS_MAX then misuse(("res:trailer: at most %d"):format(TRAILERS_MAX)) end
  list[#list + 1] = { name = name, value = value }
  http.announce_trailer(self, name)
  self.trailer_list = list
  return self
end

--- Server-sent events; the head goes out at once.
---@param opts { heartbeat?: number|string }?
---@return srv.EventStream
function methods:sse(opts) return sse.open(self, opts) end

-- Files -----------------------------------------------------------------------------------------------

local FILE_OPTIONS = {
  root = "string", type = "string", max_age = "duration", immutable = "boolean", dotfiles = "boolean",
}

local function check_path(where, path)
  if type(path) ~= "string" then misuse(("%s: a path was expected, not %s"):format(where, type(path))) end
end

--- A file beneath `root` (the app's folder unless given): ranges, validators, 404 included.
---@param path string
---@param opts table?
---@return srv.Response
function methods:file(path, opts)
  check_path("res:file", path)
  files.send(self, path, options.check("res:file", opts, FILE_OPTIONS))
  return self
end

--- The same as a download that the browser saves as NAME.
---@param path string
---@param name string?
---@param opts table?
---@return srv.Response
function methods:download(path, name, opts)
  check_path("res:download", path)
  local checked = options.check("res:download", opts, FILE_OPTIONS)
  checked.download = name or path:match("[^/]+$") or "download"
  files.send(self, path, checked)
  return self
end

return { class = Response, fields = fields, methods = methods }
