--- What srv.http gives: a response, read as a whole or as its bytes come.
local errors = require "srv.base.errors"
local fetch_url = require "srv.async.fetch_url"
local fresh_for = require "srv.async.fetch_fresh"
local json = require "srv.base.json"
local reader = require "srv.base.reader"

---@class srv.HttpResponse
---@field status integer
---@field ok boolean                       200-299
---@field headers table<string, string>    any case reads; lines of one name joined by ", "
---@field url string                       the one that answered, after redirects
---@field trailers table<string, string>   empty until the body has ended
---@field body string?                     nil with `stream = true`
---@field length integer?                  the announced size of a body that is streamed
---@field private patience number?  seconds that each read of a stream may take; nil: any time
---@field private several table<string, string[]>?  lines of names that came more than once
local Response = { __name = "srv.HttpResponse" }
Response.__index = Response

local Headers = {}
function Headers.__index(headers, name)
  return type(name) == "string" and rawget(headers, name:lower()) or nil
end

---@param name string
---@return string?
function Response:header(name) return rawget(self.headers, name:lower()) end

--- The lines of NAME one by one: Set-Cookie cannot be joined.
---@param name string
---@return string[]
function Response:header_lines(name)
  name = name:lower()
  local lines = self.several and self.several[name]
  return lines and { unpack(lines) } or { rawget(self.headers, name) }
end

--- The body's value.
---@return any
---@return srv.Error? err  bad_response
function Response:json()
  if not self.body then
    local body, err = self:stream():all()
    if not body then return nil, err end
    self.body = body
  end
  local value, err = json.decode(self.body)
  if not err then return value end
  return nil, errors.coded("bad_response", "the response of " .. fetch_url.shown(self.url) .. " is no JSON", { cause = err })
end

--- The body as it comes. Asked twice, it is the same reader.
---@return srv.Reader
function Response:stream()
  if not self.source then
    local rest = self.body or ""
    self.source = reader.new(function()
      local piece = rest
      rest = ""
      return piece ~= "" and piece or nil
    end)
  end
  return self.source
end

--- Seconds that a shared cache may keep it.
---@return number
function Response:fresh_for()
  return fresh_for(self.method, self.status, self.headers, self.had_credentials)
end

--- Nothing more is wanted: an open stream is closed. Idempotent.
function Response:close() self:stream():close() end

--- As a member of an error (unexpected_status) that is shown with --dev.
function Response:__tojson() return json.object { status = self.status, url = self.url } end

function Response:__tostring() return ("response %d of %s"):format(self.status, self.url) end

-- Passed on -----------------------------------------------------------------------------------------

--- What ends at each connection (RFC 9110, 7.6.1).
local HOP_BY_HOP = {
  connection = true, ["keep-alive"] = true, ["proxy-authenticate"] = true, ["proxy-authorization"] = true,
  ["proxy-connection"] = true, te = true, trailer = true, ["transfer-encoding"] = true, upgrade = true,
}

--- The fields of a message that are for its last reader: without those that end at a connection, and
--- those that Connection names.
---@param headers table<string, string>
---@param several table<string, string[]>?
---@return table<string, string|string[]>
local function end_to_end(headers, several)
  local kept = {}
  for name, value in pairs(headers) do
    if not HOP_BY_HOP[name] then kept[name] = several and several[name] or value end
  end
  for name in (headers.connection or ""):lower():gmatch("[^%s,]+") do kept[name] = nil end
  return kept
end

--- Events may be a day apart: who listens decides how long that goes on.
local function is_event_stream(headers)
  return (headers["content-type"] or ""):lower():find("^text/event%-stream%f[%s;%z]") ~= nil
end

--- How a handler's `return response` is answered (srv.web.answer). The head has come, so it goes on at
--- once, however long the body takes to begin: `head_first` says so of its reader.
---@return integer status
---@return table headers
---@return string|srv.Reader body
function Response:__answer()
  local headers = end_to_end(self.headers, self.several)
  headers["content-type"] = headers["content-type"] or "" -- none of ours in its place
  if self.status == 204 or self.status == 304 then headers["content-length"] = nil end -- of what is not sent
  if self.body and self.method ~= "HEAD" then
    headers["content-length"] = nil
    return self.status, headers, self.body
  end
  local body = self:stream()
  body.head_first, body.has_events = true, is_event_stream(self.headers)
  if body.has_events then self.patience = nil end
  return self.status, headers, body
end

local fetch_response = { end_to_end = end_to_end }

---@param name string  in lower case
---@return boolean
function fetch_response.is_hop_by_hop(name) return HOP_BY_HOP[name] == true end

--- What ended at our connection is not the response's any more.
---@param response srv.HttpResponse
---@return srv.HttpResponse
function fetch_response.end_hop(response)
  response.headers = setmetatable(end_to_end(response.headers), Headers)
  return response
end

---@param fields table
---@return srv.HttpResponse
function fetch_response.new(fields)
  fields.ok = fields.status >= 200 and fields.status < 300
  setmetatable(fields.headers, Headers)
  fields.trailers = setmetatable(fields.trailers or {}, Headers)
  return setmetatable(fields, Response)
end

---@param v any
---@return boolean
function fetch_response.is(v) return type(v) == "table" and getmetatable(v) == Response end

return fetch_response
