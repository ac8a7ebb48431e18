--- Durations and sizes as people write them: "250ms" "5s" "10m" "2h" "7d", "64KiB" "1MiB" "2GiB".
--- The same units and bounds as src/base/units.c, which reads them for flags and config.lua.
local units = {}

local SECONDS = { ms = 0.001, s = 1, [""] = 1, m = 60, h = 3600, d = 86400 }
local BYTES = {
  [""] = 1, B = 1,
  KiB = 1024, MiB = 1024 ^ 2, GiB = 1024 ^ 3,
  kB = 1e3, MB = 1e6, GB = 1e9,
}
local SECONDS_MAX = 365.25e3 * 86400 -- a thousand years
local BYTES_MAX = 2 ^ 53
local TEXT_BYTES_MAX = 32 -- longer is no number that anybody meant

local function read(v, factors, max)
  if type(v) == "string" and #v <= TEXT_BYTES_MAX then
    local number, unit = v:match("^(%d+%.?%d*)(%a*)$")
    local factor = factors[unit or false]
    v = number and factor and tonumber(number) * factor
  end
  if type(v) == "number" and v >= 0 and v <= max then return v end
  return nil
end

--- Seconds, from a number of them or a text with a unit. nil: no duration, or over 1,000 years.
---@param v any
---@return number?
function units.duration(v) return read(v, SECONDS, SECONDS_MAX) end

--- Bytes, a whole number, from a number of them or a text with a unit. nil: no size.
---@param v any
---@return integer?
function units.bytes(v)
  local bytes = read(v, BYTES, BYTES_MAX)
  return bytes and bytes % 1 == 0 and bytes or nil
end

---@param unit string  "ms"
---@return number? factor  seconds in one
function units.seconds_in(unit) return SECONDS[unit] end

---@param unit string  "KiB"
---@return number? factor  bytes in one
function units.bytes_in(unit) return BYTES[unit] end

-- Of the four digits that are shown, 1023.5 and more would be 1024 of the smaller unit.
local LARGER_UNIT_FROM = 1023.5 / 1024

--- 1536 -> "1.5 KiB": for messages to people.
---@param bytes number
---@return string
function units.bytes_text(bytes)
  for power, unit in ipairs { "PiB", "TiB", "GiB", "MiB", "KiB" } do
    local size = 1024 ^ (6 - power)
    if bytes >= size * LARGER_UNIT_FROM then return ("%.4g %s"):format(bytes / size, unit) end
  end
  return ("%d %s"):format(bytes, bytes == 1 and "byte" or "bytes")
end

--- 90 -> "90s", 0.25 -> "250ms", 7200 -> "2h": the largest unit that needs no fraction.
---@param seconds number
---@return string
function units.duration_text(seconds)
  for _, unit in ipairs { "d", "h", "m", "s" } do
    local count = seconds / SECONDS[unit]
    if count >= 1 and count % 1 == 0 then return ("%d%s"):format(count, unit) end
  end
  return ("%.10gms"):format(seconds * 1000)
end

return units
