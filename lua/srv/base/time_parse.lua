--- Dates that machines write, as seconds since 1970: RFC 3339 and ISO 8601, and the forms of mail and
--- HTTP (RFC 5322 with its obsolete zones, RFC 9110, 5.6.7).
local calendar = require "srv.base.calendar"
local now = require "srv.core.env".now
local zone = require "srv.base.zone"

local match, sub = string.match, string.sub

local TEXT_BYTES_MAX = 128 -- bounds the work of every pattern below

local MONTHS = {
  "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
  "december",
}
local WEEKDAYS = { "sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday" }

-- Hours from UTC. RFC 5322, 4.3 knows these names; others would be guesses.
local ZONES = {
  UT = 0, UTC = 0, GMT = 0, Z = 0, EST = -5, EDT = -4, CST = -6, CDT = -5, MST = -7, MDT = -6, PST = -8, PDT = -7,
}

--- "Jun", "june" and "Sept" -> their number, by the first three letters or more.
local function index_of(word, names)
  word = word:lower()
  for index, name in ipairs(names) do
    if #word >= 3 and sub(name, 1, #word) == word then return index end
  end
  return nil
end

--- Seconds ahead of UTC, or nil.
local function offset_of(text)
  local hours = ZONES[text:upper()]
  return hours and hours * 3600 or zone.offset(text)
end

--- Seconds since 1970, if there is such a day and such a time. A leap second ends a day in UTC
--- (RFC 3339, 5.7) and is, as for POSIX, the one after it.
local function moment(year, month, day, hour, minute, second, offset)
  if not offset or month < 1 or month > 12 or day < 1 or day > calendar.month_days(year, month) then return nil end
  local ends_day = hour == 24 and minute == 0 and second == 0
  if hour > 23 and not ends_day or minute > 59 or second >= 61 then return nil end
  local seconds = calendar.seconds(year, month, day, hour, minute, second) - offset
  if second >= 60 and seconds % 86400 >= 1 then return nil end
  return seconds
end

-- ISO 8601 -------------------------------------------------------------------------------------------

--- Seconds with their fraction, which may be missing, and where they end.
local function read_seconds(text, at, colon)
  local whole, after = match(text, "^" .. colon .. "(%d%d)()", at)
  if not whole then return 0, at end
  local fraction, past = match(text, "^[.,](%d+)()", after)
  if not fraction then return tonumber(whole), after end
  return tonumber(whole .. "." .. fraction), past
end

--- The rest of a text whose date ended at AT. Without a zone it is UTC, as databases write it.
local function read_iso_time(text, at, colon, year, month, day)
  if at > #text then return moment(year, month, day, 0, 0, 0, 0) end
  local hour, minute, after = match(text, "^[Tt ](%d%d)" .. colon .. "(%d%d)()", at)
  if not hour then return nil end
  local second, past = read_seconds(text, after, colon)
  local offset = 0
  if past <= #text then offset = offset_of(match(text, "^ ?(%S+)$", past) or "") end
  return moment(year, month, day, tonumber(hour), tonumber(minute), second, offset)
end

local function read_iso(text)
  local colon = ":"
  local year, month, day, after = match(text, "^(%d%d%d%d)%-(%d%d)%-(%d%d)()")
  if not year then
    colon = ""
    year, month, day, after = match(text, "^(%d%d%d%d)(%d%d)(%d%d)()")
  end
  return year and read_iso_time(text, after, colon, tonumber(year), tonumber(month), tonumber(day))
end

-- Mail and HTTP --------------------------------------------------------------------------------------

--- RFC 5322, 4.3: two digits are 1950 to 2049, three count from 1900.
local function year_of_mail(digits)
  local year = tonumber(digits)
  if #digits == 2 then return year + (year < 50 and 2000 or 1900) end
  return #digits == 3 and year + 1900 or year
end

--- RFC 9110, 5.6.7: two digits are the latest such year that is not over fifty years ahead.
local function year_of_rfc850(digits)
  if #digits ~= 2 then return tonumber(digits) end
  local this_year = calendar.fields(now()).year
  local year = this_year - this_year % 100 + tonumber(digits)
  if year > this_year + 50 then return year - 100 end
  return year <= this_year - 50 and year + 100 or year
end

--- "15:54", "15:54:07" and where it ends.
local function read_clock(text, at)
  local hour, minute, after = match(text, "^%s+(%d%d?):(%d%d)()", at)
  if not hour then return nil end
  local second, past = match(text, "^:(%d%d)()", after)
  return tonumber(hour), tonumber(minute), tonumber(second or 0), past or after
end

--- [weekday,] day month year time zone [(comment)]
local function read_mail(text, at)
  local day, separator, word, digits, after = match(text, "^(%d%d?)([%s-]%s*)(%a+)[%s-]%s*(%d%d%d?%d?)()", at)
  if not day then return nil end
  local year = separator == "-" and year_of_rfc850(digits) or year_of_mail(digits)
  local hour, minute, second, past = read_clock(text, after)
  if not hour then return nil end
  local name = match(text, "^%s*(%S+)$", past) or match(text, "^%s*(%S+)%s*%([^()]*%)$", past)
  local month = index_of(word, MONTHS)
  return name and month and moment(year, month, tonumber(day), hour, minute, second, offset_of(name))
end

--- What C's asctime() writes, in UTC: "Sun Nov  6 08:49:37 1994".
local function read_asctime(text, at)
  local word, day, after = match(text, "^(%a+)%s+(%d%d?)()", at)
  local month = word and index_of(word, MONTHS)
  if not month then return nil end
  local hour, minute, second, past = read_clock(text, after)
  local year = hour and match(text, "^%s+(%d%d%d%d)$", past)
  return year and moment(tonumber(year), month, tonumber(day), hour, minute, second, 0)
end

local function read_words(text)
  local word, after = match(text, "^(%a+),?%s+()")
  if not word then return read_mail(text, 1) end
  -- That it is that day of the week is not asked: feeds are often wrong, and the date is what counts.
  if not index_of(word, WEEKDAYS) then return nil end
  return read_mail(text, after) or read_asctime(text, after)
end

--- Seconds since 1970, or nil: no date in one of these forms.
---@param text string
---@return number?
return function(text)
  if #text > TEXT_BYTES_MAX then return nil end
  text = match(text, "^%s*(.-)%s*$")
  return read_iso(text) or read_words(text) or nil
end
