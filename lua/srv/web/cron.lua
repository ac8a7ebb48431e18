--- Times of day in cron's five fields: minute hour day month weekday, as the clocks of a zone show them.
---
---     "0 4 * * *"   "*/15 9-17 * * 1-5"   "0 0 1,15 * *"
---
--- If both day and weekday are limited, a time fits when either does, as in every cron. A time that
--- the clocks skip comes as much later as they are put forward; one that they show twice comes once,
--- but each time if the hour is "*".
local zone = require "srv.base.zone"

local cron = {}

local FIELDS = {
  { name = "minute", min = 0, max = 59 }, { name = "hour", min = 0, max = 23 }, { name = "day", min = 1, max = 31 },
  { name = "month", min = 1, max = 12 }, { name = "weekday", min = 0, max = 7 },
}

--- The numbers that one element of a field stands for: "*/5", "1-5", "1-10/3", "7".
local function parse_element(element, field, fits)
  local range, step = element:match("^([^/]+)/(%d+)$")
  range, step = range or element, tonumber(step or 1)
  local from, to = range:match("^(%d+)-(%d+)$")
  if range == "*" then from, to = field.min, field.max end
  if not from and range:match("^%d+$") then from, to = range, range end
  from, to = tonumber(from), tonumber(to)
  if not from or step == 0 or from < field.min or to > field.max or from > to then
    return ("%q is no %s"):format(element, field.name)
  end
  for n = from, to, step do fits[n] = true end
end

local function parse_field(text, field)
  local fits = { any = text == "*" }
  for element in text:gmatch("[^,]+") do
    local fault = parse_element(element, field, fits)
    if fault then return nil, fault end
  end
  return fits
end

---@param text string
---@return table? schedule
---@return string? message
function cron.parse(text)
  local schedule, count = {}, 0
  for word in text:gmatch("%S+") do
    count = count + 1
    local field = FIELDS[count]
    if not field then return nil, "five fields are expected: minute hour day month weekday" end
    local fits, fault = parse_field(word, field)
    if not fits then return nil, fault end
    schedule[field.name] = fits
  end
  if count ~= #FIELDS then return nil, "five fields are expected: minute hour day month weekday" end
  schedule.weekday[0] = schedule.weekday[0] or schedule.weekday[7] -- 7 is Sunday too
  return schedule
end

local function fits_day(schedule, date)
  local day, weekday = schedule.day[date.day], schedule.weekday[date.wday - 1]
  if schedule.day.any or schedule.weekday.any then return day and weekday end
  return day or weekday
end

local MINUTE, HOUR, DAY = 60, 3600, 86400
local YEARS_MAX = 5 -- 29 February on a weekday may be that far

--- The first minute from T on that fits; both as if the zone were UTC. nil: there is none.
local function next_on_clock(schedule, t)
  local last = t + YEARS_MAX * 366 * DAY
  while t < last do
    local date = os.date("!*t", t)
    if not schedule.month[date.month] or not fits_day(schedule, date) then
      t = (math.floor(t / DAY) + 1) * DAY
    elseif not schedule.hour[date.hour] then
      t = (math.floor(t / HOUR) + 1) * HOUR
    elseif not schedule.minute[date.min] then
      t = t + MINUTE
    else
      return t
    end
  end
  return nil
end

--- The moment at which the clocks of FOUND show T, the first of two.
local function moment(found, t)
  local before, after = zone.at(found, t - DAY), zone.at(found, t + DAY)
  if before > after then return t - (zone.at(found, t - before) == before and before or after) end
  return t - (zone.at(found, t - after) == after and after or before)
end

--- The first moment from EARLY on at which the clocks have another offset than then; at LATE they have.
local function change_between(found, early, late)
  local offset = zone.at(found, early)
  while late - early > 1 do
    local middle = math.floor((early + late) / 2)
    if zone.at(found, middle) == offset then early = middle else late = middle end
  end
  return late
end

local function minute_after(t) return (math.floor(t / MINUTE) + 1) * MINUTE end

--- For each hour of the day: as time goes by, whatever the clocks do.
local function next_passing(schedule, after, found)
  local offset = zone.at(found, after)
  local shown = next_on_clock(schedule, minute_after(after + offset))
  if not shown then return nil end
  local new = zone.at(found, shown - offset)
  if new == offset then return shown - offset end
  local change = change_between(found, math.floor(after), shown - offset)
  shown = next_on_clock(schedule, minute_after(change + new - 1))
  return shown and shown - new
end

--- The first moment after AFTER (seconds since 1970) that fits, or nil when none does.
---@param schedule table
---@param after number
---@param found srv.Zone?  nil: UTC
---@return integer?
function cron.next(schedule, after, found)
  found = found or zone.find "UTC"
  if schedule.hour.any then return next_passing(schedule, after, found) end
  local shown = after + zone.at(found, after)
  while true do
    shown = next_on_clock(schedule, minute_after(shown))
    if not shown then return nil end
    local at = moment(found, shown)
    if at > after then return at end
  end
end

return cron
