--- srv.request_id (API, section 14): each request's id, sent back, and taken from those who are trusted.
local factory = require "srv.base.factory"
local http = require "srv.core.http"
local misuse = require "srv.core.task".misuse
local networks = require "srv.plugins.networks"
local options = require "srv.base.options"
local text = require "srv.base.text"

local OPTIONS = { header = "string", trust = "table" }

local ID_BYTES_MAX = 128

--- An id stands in logs, headers and the requests that others make of it.
local function is_id(value)
  return value ~= nil and #value <= ID_BYTES_MAX and value:find "^[%w%-_.:/+=@]+$" ~= nil
end

--- The trace that the request belongs to (W3C Trace Context, 3.2), or nil.
local function trace_of(traceparent)
  local version, trace, parent, rest = (traceparent or ""):match "^(%x%x)%-(%x+)%-(%x+)%-%x%x(.*)$"
  if not trace or #trace ~= 32 or #parent ~= 16 or traceparent:find "%u" then return nil end
  if version == "ff" or version == "00" and rest ~= "" or rest:find "^[^-]" then return nil end
  if not trace:find "[^0]" or not parent:find "[^0]" then return nil end
  return trace
end

local function taking(header, trusted)
  return function(req)
    if not trusted:has((http.peer(req))) then return end
    local id = req:header(header)
    if not is_id(id) then id = trace_of(req:header "traceparent") end
    if id then http.set_id(req, id) end
  end
end

--- Sends `req.id` back in `header`. A peer in `trust` may choose it: by that header, else by the trace id of
--- `traceparent`.
---@param opts { header?: string, trust?: string[] }?
---@return table plugin
return factory.name("srv.request_id", function(opts)
  opts = options.check("srv.request_id", opts, OPTIONS)
  local header = opts.header or "X-Request-Id"
  if not text.is_token(header) then misuse(("srv.request_id: %q is no name for a header"):format(header)) end
  local hooks = { send = function(req, res) res:header(header, req.id) end }
  if opts.trust and #opts.trust > 0 then hooks.request = taking(header, networks.set("srv.request_id", opts.trust)) end
  return { name = "request_id", hooks = hooks }
end)
