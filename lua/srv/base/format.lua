--- Amounts as people read them (API, section 13): srv.format. English; the units are those of
--- srv.base.units, which reads them.
local misuse = require "srv.core.task".misuse
local now = require "srv.core.env".now
local units = require "srv.base.units"

local format = {}

local floor = math.floor

local AMOUNT_MAX = 2 ^ 53
local MINUTE, HOUR, DAY = 60, 3600, 86400
local YEAR = 365.2425 * DAY -- the mean of the Gregorian calendar
local MONTH = YEAR / 12

local function check_number(where, value)
  if type(value) ~= "number" then
    misuse(("srv.format.%s: expected a number, not a %s"):format(where, type(value)))
  end
  if value ~= value or math.abs(value) > AMOUNT_MAX then
    misuse(("srv.format.%s: %s is no amount"):format(where, tostring(value)))
  end
  return value
end

--- "1.5 KiB", "100 bytes".
---@param n number  of bytes
---@return string
function format.bytes(n)
  check_number("bytes", n)
  return n < 0 and "-" .. units.bytes_text(-n) or units.bytes_text(n)
end

-- Durations ------------------------------------------------------------------------------------------

local UNITS = { { "d", DAY }, { "h", HOUR }, { "m", MINUTE }, { "s", 1 } }
local EXACT_COUNT_MAX = 99 -- "90s" is read at once, "5400s" is not

--- Below a minute: three digits.
local function short_text(seconds)
  if seconds < 0.9995 then
    return seconds < 0.0000005 and "0ms" or ("%.3gms"):format(seconds * 1000)
  end
  return ("%.3gs"):format(seconds)
end

local function unit_in(seconds)
  for i, unit in ipairs(UNITS) do
    if seconds >= unit[2] then return i end
  end
end

--- The largest unit in SECONDS (a minute or more) and the one below it, the rest rounded.
local function two_units(seconds)
  local i = unit_in(seconds)
  local below = UNITS[i + 1]
  local rounded = floor(seconds / below[2] + 0.5) * below[2]
  local unit = UNITS[unit_in(rounded)] -- 23h 59m 45s is a day
  local rest = (rounded % unit[2]) / below[2]
  return ("%d%s"):format(floor(rounded / unit[2]), unit[1]) .. (rest > 0 and (" %d%s"):format(rest, below[1]) or "")
end

local function duration_text(seconds)
  if seconds < 59.95 then return short_text(seconds) end
  local rounded = floor(seconds + 0.5)
  local exact = units.duration_text(rounded)
  if tonumber(exact:match "^%d+") <= EXACT_COUNT_MAX then return exact end
  return two_units(rounded)
end

--- "250ms", "1.5s", "90s", "2h", "1h 30m", "3d 4h": one unit where one says it, or the two largest.
---@param t number  seconds
---@return string
function format.duration(t)
  check_number("duration", t)
  return t < 0 and "-" .. duration_text(-t) or duration_text(t)
end

-- How long ago ---------------------------------------------------------------------------------------

local SPANS = {
  { "year", YEAR }, { "month", MONTH }, { "day", DAY }, { "hour", HOUR }, { "minute", MINUTE },
}

--- "3 minutes", rounded down; nil: less than a minute.
local function span_text(seconds)
  for _, span in ipairs(SPANS) do
    local count = floor(seconds / span[2])
    if count >= 1 then return ("%d %s%s"):format(count, span[1], count == 1 and "" or "s") end
  end
end

--- "just now" (within a minute), "3 minutes ago", "in 2 days".
---@param t number     seconds since 1970
---@param from number? the moment to count from: now
---@return string
function format.ago(t, from)
  check_number("ago", t)
  local age = (from == nil and now() or check_number("ago", from)) - t
  local text = span_text(math.abs(age))
  if not text then return "just now" end
  return age < 0 and "in " .. text or text .. " ago"
end

return format
