--- Lists of faults: what is wrong with a value, where (a JSON Pointer, RFC 6901) and why.
--- A list is nil until there is a fault, so that a value that is right costs none.
local suggest = require "srv.base.suggest"
local utf8 = require "srv.base.utf8"

local rule_faults = {}

---@class srv.Fault
---@field path string     JSON Pointer from the value that was checked
---@field code string     "required" "type" "too_small" "too_big" "too_short" "too_long" "pattern"
---                       "one_of" "format" "unknown" "duplicate" "rejected"
---@field message string  "must have at most 80 characters"
---@field in? string      the part of the request: "body", "query", ...

-- A body of a megabyte could hold half a million faults. Nobody reads beyond the first hundred.
rule_faults.COUNT_MAX = 100

-- A name that the client made up is told back, but not at any length.
local NAME_BYTES_MAX = 200

--- Takes FAULT into LIST. In a full one what is unknown makes room for what is wrong.
local function take(list, fault)
  local count = #list
  if count < rule_faults.COUNT_MAX then
    list[count + 1] = fault
  elseif fault.code ~= "unknown" and list[count].code == "unknown" then
    list[count] = fault
  end
end

---@param list srv.Fault[]?
---@return srv.Fault[]
function rule_faults.add(list, path, code, message)
  list = list or {}
  take(list, { path = path, code = code, message = message })
  return list
end

--- Takes INNER's faults, found beneath PREFIX, into LIST.
---@param list srv.Fault[]?
---@param inner srv.Fault[]
---@param prefix string
---@return srv.Fault[]
function rule_faults.nest(list, inner, prefix)
  for _, fault in ipairs(inner) do fault.path = prefix .. fault.path end
  if not list then return inner end
  for _, fault in ipairs(inner) do take(list, fault) end
  return list
end

--- "/a~1b": NAME as a step of a pointer.
---@param name any
---@return string
function rule_faults.step(name)
  local text = utf8.head(tostring(name), NAME_BYTES_MAX)
  return "/" .. text:gsub("~", "~0"):gsub("/", "~1")
end

--- Adds a fault for each of the names in STRANGE, in byte order.
---@param list srv.Fault[]?
---@param strange any[]
---@param known string[]
---@return srv.Fault[]
function rule_faults.unknown(list, strange, known)
  table.sort(strange, function(a, b) return tostring(a) < tostring(b) end)
  for _, name in ipairs(strange) do
    if list and #list == rule_faults.COUNT_MAX then break end
    list = rule_faults.add(list, rule_faults.step(name), "unknown", "is unknown" .. suggest.hint(tostring(name), known))
  end
  return list
end

--- Sorts by path the faults that were met in the order of a Lua table, which differs between VMs.
---@param list srv.Fault[]?
---@return srv.Fault[]?
function rule_faults.sort(list)
  if list then table.sort(list, function(a, b) return a.path < b.path end) end
  return list
end

--- "/tags/1 must have at most 80 characters (and 2 more)"; WHAT stands for the whole value.
---@param list srv.Fault[]
---@param what string
---@return string
function rule_faults.summary(list, what)
  local first = list[1]
  local more = #list > 1 and (" (and %d more)"):format(#list - 1) or ""
  return ("%s %s%s"):format(first.path == "" and what or first.path, first.message, more)
end

return rule_faults
