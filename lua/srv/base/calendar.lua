--- Arithmetic of the Gregorian calendar, which is taken to hold for ever in both directions. No
--- time zone is asked and no date is too large; os.time knows the machine's zone only.
local calendar = {}

local floor = math.floor

local MONTH_DAYS = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }
local ERA_YEARS, ERA_DAYS = 400, 146097 -- after which all repeats
local EPOCH_DAYS = 719468               -- from 0000-03-01 to 1970-01-01
local DAY_SECONDS = 86400

---@param year integer
---@return boolean
function calendar.is_leap(year)
  return year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
end

---@param year integer
---@param month integer  1 to 12
---@return integer
function calendar.month_days(year, month)
  return month == 2 and calendar.is_leap(year) and 29 or MONTH_DAYS[month]
end

--- Days from 1970-01-01 to a date. The year is made to begin in March, so that the leap day is its
--- last (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
---@param year integer
---@param month integer
---@param day integer
---@return integer
function calendar.days(year, month, day)
  if month <= 2 then year = year - 1 end
  local era = floor(year / ERA_YEARS)
  local year_of_era = year - era * ERA_YEARS
  local day_of_year = floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1
  local day_of_era = year_of_era * 365 + floor(year_of_era / 4) - floor(year_of_era / 100) + day_of_year
  return era * ERA_DAYS + day_of_era - EPOCH_DAYS
end

--- The date that lies so many days after 1970-01-01.
---@param days integer
---@return integer year
---@return integer month
---@return integer day
function calendar.date(days)
  days = days + EPOCH_DAYS
  local era = floor(days / ERA_DAYS)
  local day_of_era = days - era * ERA_DAYS
  local leap_days = floor(day_of_era / 1460) - floor(day_of_era / 36524) + floor(day_of_era / (ERA_DAYS - 1))
  local year_of_era = floor((day_of_era - leap_days) / 365)
  local day_of_year = day_of_era - (365 * year_of_era + floor(year_of_era / 4) - floor(year_of_era / 100))
  local march_month = floor((5 * day_of_year + 2) / 153)
  local day = day_of_year - floor((153 * march_month + 2) / 5) + 1
  local month = march_month < 10 and march_month + 3 or march_month - 9
  return era * ERA_YEARS + year_of_era + (month <= 2 and 1 or 0), month, day
end

---@param days integer  since 1970-01-01
---@return integer  0 is Sunday
function calendar.weekday(days) return (days + 4) % 7 end

--- Seconds since 1970 of a moment in UTC. What is too much of one unit counts as the next.
---@param year integer
---@param month integer  1 to 12
---@param day integer
---@param hour integer
---@param minute integer
---@param second number
---@return number
function calendar.seconds(year, month, day, hour, minute, second)
  return calendar.days(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second
end

---@class srv.Date
---@field days integer     since 1970-01-01
---@field year integer
---@field month integer    1 to 12
---@field day integer      1 to 31
---@field hour integer
---@field minute integer
---@field second integer
---@field weekday integer  0 is Sunday
---@field year_day integer 0 is the first of January

--- What calendar and clock show at a moment, in UTC.
---@param seconds number  since 1970; a fraction is left out
---@return srv.Date
function calendar.fields(seconds)
  seconds = floor(seconds)
  local days = floor(seconds / DAY_SECONDS)
  local of_day = seconds - days * DAY_SECONDS
  local year, month, day = calendar.date(days)
  return {
    days = days, year = year, month = month, day = day,
    hour = floor(of_day / 3600), minute = floor(of_day / 60) % 60, second = of_day % 60,
    weekday = calendar.weekday(days), year_day = days - calendar.days(year, 1, 1),
  }
end

return calendar
