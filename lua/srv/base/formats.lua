--- The formats of text that rules know: each a function from a string to whether it is one. Most are C's
--- (base/format.h says what each takes); all are linear in the length of the text.
local core = require "srv.core.formats"

---@class srv.Formats
---@field host fun(s: string): boolean
---@field ipv4 fun(s: string): boolean
---@field ipv6 fun(s: string): boolean
---@field email fun(s: string): boolean
---@field url fun(s: string): boolean
---@field date fun(s: string): boolean
---@field time fun(s: string): boolean
---@field datetime fun(s: string): boolean
---@field uuid fun(s: string): boolean
---@field slug fun(s: string): boolean
---@field hex fun(s: string): boolean
---@field base64 fun(s: string): boolean
local formats = {}
for name, is_one in pairs(core) do formats[name] = is_one end

local find, byte, sub = string.find, string.byte, string.sub

---@param s string
---@return boolean
function formats.ip(s) return formats.ipv4(s) or formats.ipv6(s) end

local CIDR_BYTES_MAX = 49

--- RFC 4632, 3.1 and RFC 4291, 2.3: an address and the length of its prefix.
---@param s string
---@return boolean
function formats.cidr(s)
  if #s > CIDR_BYTES_MAX then return false end
  local slash = find(s, "/", 1, true)
  if not slash then return false end
  local address, length = sub(s, 1, slash - 1), sub(s, slash + 1)
  if not find(length, "^%d%d?%d?$") or (#length > 1 and byte(length) == 48) then return false end
  if formats.ipv4(address) then return tonumber(length) <= 32 end
  return formats.ipv6(address) and tonumber(length) <= 128
end

return formats
