--- Rules for daylight saving as POSIX writes them in TZ: "CET-1CEST,M3.5.0,M10.5.0/3". Files of time
--- zones end in one, for the years after their last entry (RFC 9636, 3.3).
local calendar = require "srv.base.calendar"

local zone_rule = {}

local match = string.match

local TEXT_BYTES_MAX = 128
local CLOCK_SECONDS_MAX = 167 * 3600 -- of RFC 9636, 3.3.2, so that a change may lie days away
local DAY_SECONDS = 86400

-- POSIX leaves open what holds when a rule names daylight saving and no days: all take these.
local USUAL_CHANGES = ",M3.2.0,M11.1.0"

---@class srv.ZoneChange
---@field kind "weekday"|"julian"|"day"
---@field month integer?
---@field week integer?     5: the last
---@field weekday integer?
---@field day integer?
---@field clock integer     seconds after midnight

---@class srv.ZoneRule
---@field name string
---@field offset integer    seconds ahead of UTC
---@field dst_name string?
---@field dst_offset integer?
---@field starts srv.ZoneChange?
---@field ends srv.ZoneChange?

-- Readers: a text and where to begin -> a value and where it ends, or nil ----------------------------

local function read_name(text, at)
  local name, after = match(text, "^<([%w+-]+)>()", at)
  if name then return name, after end
  return match(text, "^(%a%a%a+)()", at)
end

--- [+-]hh[:mm[:ss]] -> seconds.
local function read_clock(text, at)
  local sign, hours, after = match(text, "^([+-]?)(%d%d?%d?)()", at)
  if not sign then return nil end
  local seconds = hours * 3600
  for _, unit in ipairs { 60, 1 } do
    local digits, past = match(text, "^:([0-5]%d)()", after)
    if not digits then break end
    seconds, after = seconds + digits * unit, past
  end
  if seconds > CLOCK_SECONDS_MAX then return nil end
  return sign == "-" and -seconds or seconds, after
end

local function within(n, min, max) return n >= min and n <= max end

local function read_weekday(text, at)
  local month, week, weekday, after = match(text, "^,M(%d%d?)%.(%d)%.(%d)()", at)
  if not month then return nil end
  month, week, weekday = tonumber(month), tonumber(week), tonumber(weekday)
  if not (within(month, 1, 12) and within(week, 1, 5) and within(weekday, 0, 6)) then return nil end
  return { kind = "weekday", month = month, week = week, weekday = weekday }, after
end

local function read_day(text, at)
  local julian, digits, after = match(text, "^,(J?)(%d%d?%d?)()", at)
  if not julian then return nil end
  local is_julian, day = julian == "J", tonumber(digits)
  if not within(day, is_julian and 1 or 0, 365) then return nil end
  return { kind = is_julian and "julian" or "day", day = day }, after
end

--- ,date[/time]
local function read_change(text, at)
  local change, after = read_weekday(text, at)
  if not change then change, after = read_day(text, at) end
  if not change then return nil end
  change.clock = 2 * 3600
  if match(text, "^/", after) then
    change.clock, after = read_clock(text, after + 1)
    if not change.clock then return nil end
  end
  return change, after
end

--- What follows standard time: dst[offset],start,end to the end of the text. False if it is wrong.
local function read_dst(rule, text, at)
  local name, after = read_name(text, at)
  if not name then return false end
  rule.dst_name, rule.dst_offset = name, rule.offset + 3600
  local behind, past = read_clock(text, after)
  if behind then rule.dst_offset, after = -behind, past end
  if after > #text then text = text .. USUAL_CHANGES end
  rule.starts, after = read_change(text, after)
  if not rule.starts then return false end
  rule.ends, after = read_change(text, after)
  return rule.ends ~= nil and after > #text
end

---@param text string
---@return srv.ZoneRule?  nil: it is none
function zone_rule.parse(text)
  if #text > TEXT_BYTES_MAX then return nil end
  local name, after = read_name(text, 1)
  local behind, past = nil, nil
  if name then behind, past = read_clock(text, after) end
  if not behind then return nil end
  local rule = { name = name, offset = -behind } -- POSIX counts westwards
  if past > #text then return rule end
  return read_dst(rule, text, past) and rule or nil
end

-- When the changes are -------------------------------------------------------------------------------

local function weekday_in(change, year)
  local first = calendar.days(year, change.month, 1)
  local days = (change.weekday - calendar.weekday(first)) % 7 + (change.week - 1) * 7
  if days >= calendar.month_days(year, change.month) then days = days - 7 end
  return first + days
end

--- Days since 1970 of CHANGE's day.
local function day_of(change, year)
  if change.kind == "weekday" then return weekday_in(change, year) end
  local first = calendar.days(year, 1, 1)
  if change.kind == "day" then return first + change.day end
  -- A Julian day never counts 29 February: 60 is always 1 March.
  return first + change.day - 1 + (change.day >= 60 and calendar.is_leap(year) and 1 or 0)
end

--- Seconds since 1970 of CHANGE, whose clock shows the time before it: OFFSET.
local function moment_of(change, year, offset)
  return day_of(change, year) * DAY_SECONDS + change.clock - offset
end

local function is_dst(rule, t)
  local year = calendar.date(math.floor((t + rule.offset) / DAY_SECONDS))
  local starts = moment_of(rule.starts, year, rule.offset)
  local ends = moment_of(rule.ends, year, rule.dst_offset)
  if starts < ends then return t >= starts and t < ends end
  return t >= starts or t < ends -- south of the equator the new year is in summer
end

--- What RULE says of the moment T.
---@param rule srv.ZoneRule
---@param t number          seconds since 1970
---@return integer offset   seconds ahead of UTC
---@return string name      "CEST"
function zone_rule.at(rule, t)
  if rule.starts and is_dst(rule, t) then return rule.dst_offset, rule.dst_name end
  return rule.offset, rule.name
end

return zone_rule
