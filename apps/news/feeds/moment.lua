--- The dates that feeds use, as UTC in ISO 8601: "Tue, 22 Jun 2021 15:54 EDT" (RFC 822, with and
--- without seconds, weekday and century), "2021-06-22T15:54:00-04:00".
local moment = {}

local MONTHS = {
  jan = 1, feb = 2, mar = 3, apr = 4, may = 5, jun = 6, jul = 7, aug = 8, sep = 9, oct = 10, nov = 11, dec = 12,
}

-- Hours from UTC. RFC 822 knows these names; others would be guesses.
local ZONES = {
  UT = 0, UTC = 0, GMT = 0, Z = 0, EST = -5, EDT = -4, CST = -6, CDT = -5, MST = -7, MDT = -6, PST = -8, PDT = -7,
}

local MONTH_DAYS = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

local function month_days(year, month)
  local leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
  return month == 2 and leap and 29 or MONTH_DAYS[month]
end

--- Days since 1970-01-01 (Howard Hinnant's days_from_civil).
local function days_from_civil(year, month, day)
  if month <= 2 then year = year - 1 end
  local era = math.floor(year / 400)
  local year_of_era = year - era * 400
  local day_of_year = math.floor((153 * (month + (month > 2 and -3 or 9)) + 2) / 5) + day - 1
  local day_of_era = year_of_era * 365 + math.floor(year_of_era / 4) - math.floor(year_of_era / 100) + day_of_year
  return era * 146097 + day_of_era - 719468
end

local function offset_seconds(zone)
  local named = ZONES[zone:upper()]
  if named then return named * 3600 end
  local sign, hours, minutes = zone:match("^([+-])(%d%d):?(%d%d)$")
  if not sign then return nil end
  return (sign == "-" and -1 or 1) * (tonumber(hours) * 3600 + tonumber(minutes) * 60)
end

local function iso(year, month, day, hour, minute, second, zone)
  local offset = offset_seconds(zone)
  if not offset or not month or month < 1 or month > 12 or day < 1 or day > month_days(year, month)
    or hour > 23 or minute > 59 or second > 60 then
    return nil
  end
  local seconds = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset
  return os.date("!%Y-%m-%dT%H:%M:%SZ", seconds)
end

--- Two digits are a year of this century until 2069 (RFC 5322 reads them so until 2049).
local function full_year(text)
  local year = tonumber(text)
  if #text > 2 then return year end
  return year < 70 and 2000 + year or 1900 + year
end

---@param text string
---@return string? iso  "2021-06-22T19:54:00Z"; nil if it is no date
function moment.parse(text)
  local year, month, day, hour, minute, second, zone =
    text:match("^%s*(%d%d%d%d)-(%d%d)-(%d%d)[Tt ](%d%d):(%d%d):(%d%d)[%d.]*(%S+)%s*$")
  if year then
    return iso(tonumber(year), tonumber(month), tonumber(day), tonumber(hour), tonumber(minute), tonumber(second), zone)
  end
  local rest = text:gsub("^%s*%a+,?%s+", "")
  day, month, year, hour, minute, second, zone =
    rest:match("^%s*(%d%d?)%s+(%a%a%a)%a*%s+(%d+)%s+(%d%d?):(%d%d):?(%d*)%s*(%S+)%s*$")
  if not day then return nil end
  return iso(full_year(year), MONTHS[month:lower()], tonumber(day), tonumber(hour), tonumber(minute),
    tonumber(second) or 0, zone)
end

return moment
