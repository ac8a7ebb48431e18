--- The names that a template sees besides its data's fields: helpers, then Lua's pure functions.
local escape = require "srv.web.template_escape"

local template_names = {}

-- ---- date ---------------------------------------------------------------------------------------

--- Days from 1970-01-01 to a date of the Gregorian calendar (the year begins in March, so that the
--- leap day is its last).
local function days_from_civil(year, month, day)
  if month <= 2 then year = year - 1 end
  local era = math.floor(year / 400)
  local year_of_era = year - era * 400
  local day_of_year = math.floor((153 * (month + (month > 2 and -3 or 9)) + 2) / 5) + day - 1
  local day_of_era = year_of_era * 365 + math.floor(year_of_era / 4) - math.floor(year_of_era / 100) + day_of_year
  return era * 146097 + day_of_era - 719468
end

local function offset_seconds(zone)
  local sign, hours, minutes = zone:match("^([+-])(%d%d):?(%d%d)$")
  if not sign then return 0 end
  return (sign == "-" and -1 or 1) * (tonumber(hours) * 3600 + tonumber(minutes) * 60)
end

--- Seconds since 1970 of "2024-05-31", "2024-05-31 13:45:00" or RFC 3339's form; nil: neither.
local function parse(text)
  local year, month, day, rest = text:match("^(%d%d%d%d)-(%d%d)-(%d%d)(.*)$")
  if not year then return nil end
  local hour, minute, second, zone = rest:match("^[Tt ](%d%d):(%d%d):?(%d?%d?)%.?%d*(.*)$")
  local days = days_from_civil(tonumber(year), tonumber(month), tonumber(day))
  local seconds = (tonumber(hour) or 0) * 3600 + (tonumber(minute) or 0) * 60 + (tonumber(second) or 0)
  return days * 86400 + seconds - offset_seconds(zone or "")
end

local DATE_FORMAT = "%Y-%m-%d"

--- A moment, in UTC: seconds since 1970 or ISO text, by strftime's FORMAT. nil gives nil.
---@param moment number|string|nil
---@param format string?
---@return string?
local function date(moment, format)
  if moment == nil then return nil end
  local seconds = type(moment) == "string" and parse(moment) or moment
  if type(seconds) ~= "number" then error(("date: %s is no moment"):format(tostring(moment)), 2) end
  return (os.date("!" .. (format or DATE_FORMAT), seconds))
end

-- ---- what is in sight ---------------------------------------------------------------------------

local PURE = {
  ipairs = ipairs, pairs = pairs, next = next, select = select, unpack = unpack,
  tonumber = tonumber, tostring = tostring, type = type, assert = assert, error = error, pcall = pcall,
  math = math, string = string, table = table,
}

local HELPERS = { raw = escape.raw, json = escape.as_json, date = date }

-- Where an environment keeps the data of its render: no name of Lua can be this key.
local DATA = {}

--- A metatable for the environments of one engine's templates.
---@param helpers table<string, any>  more of them: url, asset
---@param strict boolean              is another name an error (--dev), or nil
---@return table
local function sight(helpers, strict)
  local meta = {}
  function meta.__index(env, name)
    local value = rawget(env, DATA)[name]
    if value == nil then value = helpers[name] end
    if value == nil then value = HELPERS[name] end
    if value == nil then value = PURE[name] end
    if value == nil and strict then error(("unknown name %q: it is no field of the data"):format(name), 2) end
    return value
  end
  function meta.__newindex(_, name)
    error(("assigning to the undeclared name %q: write local %s = ..."):format(name, name), 2)
  end
  return meta
end

--- Makes the function that gives an environment for a render's data.
---@param helpers table<string, any>
---@param strict boolean
---@return fun(data: table): table
function template_names.environments(helpers, strict)
  local meta = sight(helpers, strict)
  return function(data) return setmetatable({ [DATA] = data }, meta) end
end

return template_names
