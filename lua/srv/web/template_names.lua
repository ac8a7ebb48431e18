--- The names that a template sees besides its data's fields: helpers, then Lua's pure functions.
local escape = require "srv.web.template_escape"
local suggest = require "srv.base.suggest"
local time = require "srv.base.time"

local template_names = {}

-- ---- date ---------------------------------------------------------------------------------------

local DATE_FORMAT = "%Y-%m-%d"

--- A moment, in UTC: seconds since 1970 or a text for srv.time.parse, by srv.time.date's FORMAT. nil
--- gives nil.
---@param moment number|string|nil
---@param format string?
---@return string?
local function date(moment, format)
  if moment == nil then return nil end
  local seconds = moment
  if type(moment) == "string" then seconds = time.parse(moment) end
  if type(seconds) ~= "number" then error(("date: %s is no moment"):format(tostring(moment)), 2) end
  return (time.date(seconds, format or DATE_FORMAT))
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

--- Names the unknown NAME, and the one that was perhaps meant.
local function refuse_name(name, data, helpers)
  local known = {}
  for _, names in ipairs { data, helpers, HELPERS, PURE } do
    for candidate in pairs(names) do
      if type(candidate) == "string" then known[#known + 1] = candidate end
    end
  end
  local hint = suggest.hint(name, known)
  if hint == "" then hint = " (where a field may be missing, give false)" end
  error(("unknown name %q: it is no field of the data%s"):format(name, hint), 3)
end

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
    if value == nil and strict then refuse_name(name, rawget(env, DATA), helpers) end
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
