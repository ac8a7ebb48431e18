--- The page of a profile, alone or beside an earlier one.
local crypto = require "srv.core.crypto"
local gzip = require "srv.core.gzip"
local flame_pack = require "srv.cli.flame_pack"
local page = require "srv.cli.page"

local flame_page = {}

local PAGE_BYTES_MAX = 150 * 1024 -- 0x writes 880 kB, Clinic Flame 1.9 MB
local LEAST_MAX = 4096            -- samples: what is below is not worth a pixel of any page

--- A tenth of the size; the page unpacks it with a DecompressionStream.
local function pack(text) return crypto.encode("base64", assert(gzip.pack(text), "no memory")) end

local function write(profile, old, least)
  return page.write("flame", {
    profile = flame_pack.pack(profile, least), old = old and flame_pack.pack(old, least) or nil,
  }, pack)
end

--- A run with more distinct stacks than the page has room for loses the rarest ones' details.
---@param profile srv.cli.FlameProfile
---@param old srv.cli.FlameProfile?
---@param bytes_max integer?
---@return string html
function flame_page.write(profile, old, bytes_max)
  local least = 1
  while true do
    local html = write(profile, old, least)
    if #html <= (bytes_max or PAGE_BYTES_MAX) or least >= LEAST_MAX then return html end
    least = least * (#html > 4 * (bytes_max or PAGE_BYTES_MAX) and 4 or 2)
  end
end

return flame_page
