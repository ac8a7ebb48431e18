--- srv.etag (API, section 14): an ETag for answers that have none, so that what a client has already is not sent
--- again.
---
--- The tag is made in C (bind/ltag) when the body is there to its last byte: behind every hook and the JSON
--- encoder. 304 and 412 come from the same place as for tags that an app sets itself.
local factory = require "srv.base.factory"
local http = require "srv.core.http"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"

local OPTIONS = { weak = "boolean", limit = "bytes" }

local LIMIT = 1024 * 1024

---@class srv.EtagOptions
---@field weak boolean?          true: `W/"..."`, which compression may leave as it is
---@field limit integer|string?  "1MiB"; larger bodies get none, nor do streams

--- Tags what GET answers with 200.
---@param opts srv.EtagOptions?
---@return table plugin
return factory.name("srv.etag", function(opts)
  opts = options.check("srv.etag", opts, OPTIONS)
  local is_weak, limit = opts.weak ~= false, opts.limit or LIMIT
  if limit < 1 then misuse "srv.etag: limit must be a byte or more" end
  return {
    name = "etag",
    hooks = { send = function(_, res) http.tag_body(res, is_weak, limit) end },
  }
end)
