--- Moments as texts, and back (API, section 13): srv.time. A moment is seconds since 1970 in UTC. No
--- locale: names are English.
local calendar = require "srv.base.calendar"
local errors = require "srv.base.errors"
local misuse = require "srv.core.task".misuse
local now = require "srv.core.env".now
local parse_text = require "srv.base.time_parse"
local zone = require "srv.base.zone"

local time = {}

local concat, find, match, sub = table.concat, string.find, string.match, string.sub
local floor, format = math.floor, string.format

-- RFC 3339 and its kin have four digits for a year: 0000 to 9999.
local MOMENT_MIN = calendar.seconds(0, 1, 1, 0, 0, 0)
local MOMENT_END = calendar.seconds(10000, 1, 1, 0, 0, 0)
local FORMAT_BYTES_MAX = 1024

local MONTHS = {
  "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
  "December",
}
local WEEKDAYS = { [0] = "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday" }

local function check_moment(where, t)
  if type(t) ~= "number" then
    local hint = type(t) == "string" and " (srv.time.parse reads a text)" or ""
    misuse(("srv.time.%s: a moment is seconds since 1970, not a %s%s"):format(where, type(t), hint))
  end
  if not (t >= MOMENT_MIN and t < MOMENT_END) then
    misuse(("srv.time.%s: %s lies outside of the years 0 to 9999"):format(where, tostring(t)))
  end
  return t
end

--- The moment that a function was given, or this one.
local function moment_or_now(where, t)
  if t == nil then return now() end
  return check_moment(where, t)
end

-- Fixed forms ----------------------------------------------------------------------------------------

--- "2024-05-31T13:45:00Z" (RFC 3339). Whole seconds, so that texts sort as moments do.
---@param t number?  now
---@return string
function time.iso(t)
  local date = calendar.fields(moment_or_now("iso", t))
  return format("%04d-%02d-%02dT%02d:%02d:%02dZ", date.year, date.month, date.day, date.hour, date.minute, date.second)
end

local function mail_date(t, zone_text)
  local date = calendar.fields(t)
  return format("%s, %02d %s %04d %02d:%02d:%02d %s", WEEKDAYS[date.weekday]:sub(1, 3), date.day,
    MONTHS[date.month]:sub(1, 3), date.year, date.hour, date.minute, date.second, zone_text)
end

--- "Fri, 31 May 2024 13:45:00 GMT", for headers of HTTP (RFC 9110, 5.6.7).
---@param t number?  now
---@return string
function time.http(t) return mail_date(moment_or_now("http", t), "GMT") end

--- "Fri, 31 May 2024 13:45:00 +0000", for mail and RSS (RFC 2822, 3.3; now RFC 5322).
---@param t number?  now
---@return string
function time.rfc2822(t) return mail_date(moment_or_now("rfc2822", t), "+0000") end

-- By a format ----------------------------------------------------------------------------------------

-- Most of what is written is one of these, and a lookup costs less than string.format.
local TWO_DIGITS = {}
for n = 0, 99 do TWO_DIGITS[n] = format("%02d", n) end

local function two_digits(read)
  return function(date)
    local n = read(date)
    return TWO_DIGITS[n] or format("%02d", n)
  end
end

local function padded(width, read)
  local pattern = "%0" .. width .. "d"
  return function(date) return format(pattern, read(date)) end
end

local function hour_of_12(date) return (date.hour + 11) % 12 + 1 end

local function monday_first(date) return (date.weekday + 6) % 7 end

--- ISO 8601: a week belongs to the year that its Thursday lies in.
local function iso_week(date)
  local thursday = date.days - monday_first(date) + 3
  local year = calendar.date(thursday)
  return floor((thursday - calendar.days(year, 1, 1)) / 7) + 1, year
end

--- Weeks of the year that began with the day of the week which counts as DAY 0.
local function week_from(date, day) return floor((date.year_day + 7 - day) / 7) end

--- A double keeps a microsecond of today at most: a thousandth that was read as 0.0009999 is one.
local function milliseconds(date)
  local t = date.moment
  return math.min(floor((t - floor(t)) * 1000 + 0.0005), 999)
end

local function offset_text(date, colon)
  local minutes = floor(math.abs(date.offset) / 60)
  return format("%s%02d%s%02d", date.offset < 0 and "-" or "+", floor(minutes / 60), colon, minutes % 60)
end

--- strftime's letters (POSIX), without c, x and X, which are a locale's; and L and :z.
local letters = {
  a = function(date) return sub(WEEKDAYS[date.weekday], 1, 3) end,
  A = function(date) return WEEKDAYS[date.weekday] end,
  b = function(date) return sub(MONTHS[date.month], 1, 3) end,
  B = function(date) return MONTHS[date.month] end,
  C = two_digits(function(date) return floor(date.year / 100) end),
  d = two_digits(function(date) return date.day end),
  e = function(date) return format("%2d", date.day) end,
  g = two_digits(function(date) return select(2, iso_week(date)) % 100 end),
  G = padded(4, function(date) return (select(2, iso_week(date))) end),
  H = two_digits(function(date) return date.hour end),
  I = two_digits(hour_of_12),
  j = padded(3, function(date) return date.year_day + 1 end),
  L = padded(3, milliseconds),
  m = two_digits(function(date) return date.month end),
  M = two_digits(function(date) return date.minute end),
  n = function() return "\n" end,
  p = function(date) return date.hour < 12 and "AM" or "PM" end,
  s = function(date) return format("%d", floor(date.moment)) end,
  S = two_digits(function(date) return date.second end),
  t = function() return "\t" end,
  u = function(date) return tostring(monday_first(date) + 1) end,
  U = two_digits(function(date) return week_from(date, date.weekday) end),
  V = two_digits(function(date) return (iso_week(date)) end),
  w = function(date) return tostring(date.weekday) end,
  W = two_digits(function(date) return week_from(date, monday_first(date)) end),
  y = two_digits(function(date) return date.year % 100 end),
  Y = padded(4, function(date) return date.year end),
  z = function(date) return offset_text(date, "") end,
  [":z"] = function(date) return offset_text(date, ":") end,
  Z = function(date) return date.zone end,
  ["%"] = function() return "%" end,
}
letters.h = letters.b

local LONG = { D = "%m/%d/%y", F = "%Y-%m-%d", r = "%I:%M:%S %p", R = "%H:%M", T = "%H:%M:%S" }

local function unknown_letter(flag, letter)
  misuse(("srv.time.date: the format has no letter %q"):format("%" .. flag .. letter)
    .. (letter == "" and ' (a percent sign is "%%")' or ""))
end

--- WRITER without what pads its numbers.
local function bare(writer)
  return function(date) return (writer(date):gsub("^[0 ]+(%d)", "%1")) end
end

--- Adds to PIECES what TEXT is made of: strings that stay, and writers.
local function compile(text, pieces)
  local at = 1
  repeat
    local percent = find(text, "%", at, true)
    pieces[#pieces + 1] = sub(text, at, percent and percent - 1)
    if percent then
      local flag, letter, after = match(text, "^%%(%-?)(:?.?)()", percent)
      local long = flag == "" and LONG[letter]
      local writer = long or letters[letter] or unknown_letter(flag, letter)
      if long then compile(long, pieces) else pieces[#pieces + 1] = flag == "" and writer or bare(writer) end
      at = after
    end
  until not percent
  return pieces
end

-- An app has a handful of formats; one that makes them as it goes begins anew.
local COMPILED_MAX = 64
local compiled, compiled_count = {}, 0

local function pieces_of(text)
  local pieces = compiled[text]
  if pieces then return pieces end
  pieces = compile(text, {})
  if compiled_count == COMPILED_MAX then compiled, compiled_count = {}, 0 end
  compiled[text], compiled_count = pieces, compiled_count + 1
  return pieces
end

local function write(date, text)
  local written = {}
  for i, piece in ipairs(pieces_of(text)) do
    written[i] = type(piece) == "string" and piece or piece(date)
  end
  return concat(written)
end

--- A moment by the letters of strftime, and as a clock in ZONE shows it. "%-d" leaves out what pads a
--- number, "%L" are milliseconds, "%:z" is "+02:00". docs/guide/batteries.md lists them.
---@param t number
---@param text string   the format: "%d %B %Y, %H:%M"
---@param name string?  "UTC" (unless given), "local", "+02:00", or "Europe/Berlin"
---@return string? text
---@return srv.Error? err  invalid: there is no such zone; fs: zones cannot be read
function time.date(t, text, name)
  check_moment("date", t)
  if type(text) ~= "string" then misuse("srv.time.date: the format must be a string, not a " .. type(text)) end
  if #text > FORMAT_BYTES_MAX then misuse("srv.time.date: the format is longer than 1,024 bytes") end
  if name ~= nil and type(name) ~= "string" then
    misuse("srv.time.date: the zone must be a string, not a " .. type(name))
  end
  local found, err = zone.find(name or "UTC")
  if not found then return nil, err end
  local offset, zone_name = zone.at(found, t)
  local date = calendar.fields(t + offset)
  date.moment, date.offset, date.zone = t, offset, zone_name
  return write(date, text)
end

-- From a text ----------------------------------------------------------------------------------------

local SHOWN_BYTES_MAX = 64

--- Seconds since 1970 of RFC 3339 and ISO 8601 ("2024-05-31", "2024-05-31 13:45", "20240531T134500Z";
--- UTC unless there is an offset), of mail ("Fri, 31 May 2024 13:45 EDT"), and of HTTP's three forms.
---@param text string
---@return number? t       with the fraction that the text has
---@return srv.Error? err  invalid
function time.parse(text)
  if type(text) ~= "string" then misuse("srv.time.parse: expected a string, not a " .. type(text)) end
  local t = parse_text(text)
  if t and t >= MOMENT_MIN and t < MOMENT_END then return t end
  return nil, errors.coded("invalid", ("%q is no date"):format(text:sub(1, SHOWN_BYTES_MAX)))
end

return time
