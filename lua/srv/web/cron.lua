--- Times of day in cron's five fields: minute hour day month weekday, UTC.
---
---     "0 4 * * *"   "*/15 9-17 * * 1-5"   "0 0 1,15 * *"
---
--- If both day and weekday are limited, a time fits when either does, as in every cron.
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

--- The first moment after AFTER (seconds since 1970) that fits, or nil when none does.
---@param schedule table
---@param after number
---@return integer?
function cron.next(schedule, after)
  local t = (math.floor(after / MINUTE) + 1) * MINUTE
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

return cron
