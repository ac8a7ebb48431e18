--- Option tables: every key is known or refused, durations and sizes become numbers.
local misuse = require "srv.core.task".misuse
local suggest = require "srv.base.suggest"
local units = require "srv.base.units"

local options = {}

local READ = {
  duration = function(v) return units.duration(v), 'a duration like "5s" or a number of seconds' end,
  bytes = function(v) return units.bytes(v), 'a size like "1MiB" or a number of bytes' end,
  boolean = function(v) if type(v) == "boolean" then return v end return nil, "true or false" end,
  any = function(v) return v end,
}
for _, name in ipairs { "string", "number", "table", "function" } do
  READ[name] = function(v)
    if type(v) == name then return v end
    return nil, "a " .. name
  end
end

local function one_of(value, words, list)
  for word in list:gmatch("[^|]+") do
    if word == value then return value end
    words[#words + 1] = ('"%s"'):format(word)
  end
  return nil, table.concat(words, " or ")
end

local function in_range(value, least, most)
  if type(value) == "number" and value % 1 == 0 and value >= least and value <= (most or math.huge) then return value end
  return nil, ("a whole number from %d %s"):format(least, most and "to " .. most or "on")
end

local function read(kind, value)
  local reader = READ[kind]
  if reader then return reader(value) end
  local least, most = kind:match "^(%d+)%.%.(%d*)$"
  if least then return in_range(value, tonumber(least), tonumber(most)) end
  return one_of(value, {}, kind)
end

local function names_of(known)
  local names = {}
  for name in pairs(known) do names[#names + 1] = name end
  return names
end

--- `unknown option "time_out", did you mean "timeout"?`, or `unknown option "path"; known: live, ready`.
---@param what string
---@param name any
---@param known table<string, any>  its keys are the names
---@return string
function options.unknown(what, name, known)
  return ("unknown %s %q"):format(what, tostring(name)) .. suggest.names(tostring(name), names_of(known))
end

--- A checked copy of OPTS. Mistakes are blamed on the innermost line that is not srv's own.
---@param where string                   begins the message: "srv.app"
---@param opts table?                    as the caller gave them
---@param known table<string, string>    name -> duration, bytes, boolean, string, number, table, function, any, "a|b" words,
---                                     or "1.." and "0..100": whole numbers
---@return table
function options.check(where, opts, known)
  local checked = {}
  if opts ~= nil and type(opts) ~= "table" then misuse(where .. ": options are a table, not a " .. type(opts)) end
  for name, value in pairs(opts or checked) do
    local kind = known[name]
    if not kind then misuse(where .. ": " .. options.unknown("option", name, known)) end
    local wanted
    checked[name], wanted = read(kind, value)
    if checked[name] == nil then
      misuse(("%s: option %q must be %s, not %s"):format(where, name, wanted,
        type(value) == "string" and ("%q"):format(value) or tostring(value)))
    end
  end
  return checked
end

return options
