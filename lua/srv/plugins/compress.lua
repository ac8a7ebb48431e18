--- srv.compress (API, section 14): answers as small as the client can read them.
---
--- The hook only hangs the rules on the answer. What they make of it is decided and done in C
--- (bind/lcoding), behind all hooks: so it matters not which plugin stands first.
local factory = require "srv.base.factory"
local http = require "srv.core.http"
local misuse = require "srv.core.task".misuse
local negotiate = require "srv.web.negotiate"
local options = require "srv.base.options"

local OPTIONS = { min = "bytes", encodings = "table", types = "table" }

local MIN = 1024
local ENCODINGS = { "zstd", "br", "gzip" }
local IS_ENCODING = { zstd = true, br = true, gzip = true }

local function check_encodings(encodings)
  local seen = {}
  if #encodings == 0 then misuse "srv.compress: encodings is empty" end
  for _, name in ipairs(encodings) do
    if not IS_ENCODING[name] then misuse("srv.compress: " .. options.unknown("encoding", tostring(name), IS_ENCODING)) end
    if seen[name] then misuse(("srv.compress: encoding %q stands there twice"):format(name)) end
    seen[name] = true
  end
  return encodings
end

--- "html", "image/*", "+json", "application/x-thing" -> what C compares with.
local function media_types(types)
  local list = {}
  for i, name in ipairs(types) do
    if type(name) ~= "string" then misuse "srv.compress: types is a list of media types" end
    local is_whole = name:find("/", 1, true) or name:sub(1, 1) == "+"
    list[i] = is_whole and name:lower():gsub("/%*$", "/") or negotiate.media_type(name)
  end
  if #list == 0 then misuse "srv.compress: types is empty" end
  return list
end

---@class srv.CompressOptions
---@field min integer|string?   "1KiB"; smaller bodies go out as they are
---@field encodings string[]?   the first one counts where the client does not care
---@field types string[]?       "html", "image/*", "+json"; else all texts, JSON, XML, JavaScript, wasm, plain fonts

--- Compresses answers, streams as well; never events, ranges, or what says `Cache-Control: no-transform`.
---@param opts srv.CompressOptions?
---@return table plugin
return factory.name("srv.compress", function(opts)
  opts = options.check("srv.compress", opts, OPTIONS)
  local encodings = check_encodings(opts.encodings or ENCODINGS)
  local rules = http.coding_rules(opts.min or MIN, encodings, opts.types and media_types(opts.types))
  return {
    name = "compress",
    hooks = { send = function(_, res) http.use_coding(res, rules) end },
  }
end)
