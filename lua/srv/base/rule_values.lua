--- What the generated checks call at run time: conversions from text, comparisons, counts.
local json = require "srv.core.json"
local rule_faults = require "srv.base.rule_faults"

local rule_values = {}

local find, byte, sub = string.find, string.byte, string.sub

-- ---- text ---------------------------------------------------------------------------------------

local function is_blank(b) return b == 32 or (b ~= nil and b >= 9 and b <= 13) end

--- Without the blanks at both ends. By hand: "^%s*(.-)%s*$" is quadratic in inner blanks.
---@param s string
---@return string
function rule_values.trim(s)
  local from, to = 1, #s
  while is_blank(byte(s, from)) do from = from + 1 end
  while to > from and is_blank(byte(s, to)) do to = to - 1 end
  if from == 1 and to == #s then return s end
  return sub(s, from, to)
end

-- ---- from text: gives the text back where it says no such value ---------------------------------

local INTEGER_MAX = 2 ^ 53
local INTEGER_MAX_DIGITS = "9007199254740992"
local NUMBER_BYTES_MAX = 400 -- longer than any double is written

--- A whole number. What lies beyond 2^53 becomes a number that is surely out of bounds, since
--- 2^53 + 1 would be rounded into them.
---@param v any
---@return any
function rule_values.to_integer(v)
  if type(v) ~= "string" or #v > NUMBER_BYTES_MAX or not find(v, "^%-?%d+$") then return v end
  local number = tonumber(v)
  if number < INTEGER_MAX and number > -INTEGER_MAX then return number end
  local exact = find(v, "^%-?0*" .. INTEGER_MAX_DIGITS .. "$") ~= nil
  return exact and number or number * 2
end

--- A decimal number; no "0x10", "inf" or "nan", which tonumber would take.
---@param v any
---@return any
function rule_values.to_number(v)
  if type(v) ~= "string" or #v > NUMBER_BYTES_MAX or find(v, "[^%d.eE+-]") then return v end
  return tonumber(v) or v
end

local BOOLEANS = { ["true"] = true, ["1"] = true, on = true, ["false"] = false, ["0"] = false, off = false }

---@param v any
---@return any
function rule_values.to_boolean(v)
  local boolean = BOOLEANS[v]
  if boolean == nil then return v end
  return boolean
end

-- ---- whole numbers of any size ------------------------------------------------------------------

--- The digits of a bigint: a string of them as it is, a whole number written out; nil: neither.
---@param v any
---@return string?
function rule_values.to_digits(v)
  if type(v) == "number" and v % 1 == 0 and v >= -INTEGER_MAX and v <= INTEGER_MAX then
    return v == 0 and "0" or ("%.0f"):format(v) -- -0 would be "-0"
  end
  if type(v) ~= "string" then return nil end
  return (v == "0" or find(v, "^%-?[1-9]%d*$")) and v or nil
end

--- Is the bigint A less than B?
---@param a string
---@param b string
---@return boolean
function rule_values.digits_less(a, b)
  local a_negative, b_negative = byte(a) == 45, byte(b) == 45
  if a_negative ~= b_negative then return a_negative end
  if a_negative then a, b = sub(b, 2), sub(a, 2) end
  if #a ~= #b then return #a < #b end
  return a < b
end

-- ---- tables -------------------------------------------------------------------------------------

local getmetatable, next = getmetatable, next
local ARRAY, OBJECT = json.array_mark, json.object_mark

--- May V be an object? A mark decides; an empty table without one may be either.
---@param v any
---@return boolean
function rule_values.is_object(v)
  return type(v) == "table" and v[1] == nil and getmetatable(v) ~= ARRAY
end

---@param v any
---@return boolean
function rule_values.is_array(v)
  if type(v) ~= "table" then return false end
  local mark = getmetatable(v)
  if mark == ARRAY then return true end
  if v[1] ~= nil then return mark ~= OBJECT end
  return mark == nil and next(v) == nil
end

--- The items of a list: of a header field (RFC 9110, 5.6.1), whose lines were joined by commas, or of a path, where
--- OpenAPI writes arrays so too.
---@param text string
---@return string[]
function rule_values.list(text)
  local items = setmetatable({}, ARRAY)
  for item in text:gmatch "[^,]+" do
    item = rule_values.trim(item)
    if item ~= "" then items[#items + 1] = item end
  end
  return items
end

local function by_number(a, b) return tonumber(a) < tonumber(b) end

--- The fields of a form that are numbered (`rows[0]`, `rows[2]`: one was removed) as an array; anything else as it is.
---@param t table
---@return table
function rule_values.rows(t)
  local keys = {}
  for key in next, t do
    if type(key) ~= "string" or not find(key, "^%d+$") or #key > 9 then return t end
    keys[#keys + 1] = key
  end
  if #keys == 0 then return t end
  table.sort(keys, by_number)
  local items = setmetatable({}, ARRAY)
  for i, key in ipairs(keys) do items[i] = t[key] end
  return items
end

--- The array that numbered fields of a form have become, as fields again.
---@param t table
---@return table
function rule_values.keyed(t)
  if getmetatable(t) ~= ARRAY then return t end
  local fields = setmetatable({}, OBJECT)
  for i, item in ipairs(t) do fields[tostring(i - 1)] = item end
  return fields
end

---@param t table
---@return integer
function rule_values.count(t)
  local n = 0
  for _ in next, t do n = n + 1 end
  return n
end

--- A copy of a default, so that no request sees what another wrote into it.
---@param v any
---@return any
function rule_values.copy(v)
  if type(v) ~= "table" then return v end
  local out = setmetatable({}, getmetatable(v))
  for key, value in next, v do out[key] = rule_values.copy(value) end
  return out
end

--- One text for all values that are equal: what `unique` compares. 17 digits tell all doubles apart; -0 equals 0.
local function fingerprint(v)
  if type(v) == "number" then return v == 0 and "number:0" or ("number:%.17g"):format(v) end
  if type(v) ~= "table" then return type(v) .. ":" .. tostring(v) end
  local parts = {}
  for key, value in next, v do
    local name, content = fingerprint(key), fingerprint(value)
    parts[#parts + 1] = ("%d:%s%d:%s"):format(#name, name, #content, content)
  end
  table.sort(parts)
  return "table:" .. table.concat(parts)
end

--- Adds a fault for each item of LIST that an earlier one equals.
---@param faults srv.Fault[]?
---@param list any[]
---@return srv.Fault[]?
function rule_values.check_unique(faults, list)
  local seen = {}
  for i, item in ipairs(list) do
    local key = fingerprint(item)
    local first = seen[key]
    if first then
      faults = rule_faults.add(faults, "/" .. i - 1, "duplicate", ("is the same as item %d"):format(first))
      if #faults == rule_faults.COUNT_MAX then break end
    else
      seen[key] = i - 1
    end
  end
  return faults
end

-- ---- files --------------------------------------------------------------------------------------

--- Does a file's TYPE ("image/png; x=y") match one of MEDIA ("image/png", "image/*")?
---@param type_sent string?
---@param media string[]
---@return boolean
function rule_values.media_fits(type_sent, media)
  local sent = (type_sent or ""):lower():match("^[^;%s]*")
  for _, wanted in ipairs(media) do
    if wanted == sent or wanted == "*/*" then return true end
    if sub(wanted, -2) == "/*" and sub(sent, 1, #wanted - 1) == sub(wanted, 1, -2) then return true end
  end
  return false
end

-- ---- functions of the app -----------------------------------------------------------------------

local function pointer(path)
  if path == nil or sub(path, 1, 1) == "/" or path == "" then return path or "" end
  return rule_faults.step(path)
end

--- Runs an app's function on V. `nil, message` is the client's fault; `nil, err` with an error
--- object is the world's (a database that is down), and is raised as what it is.
---@param fn function
---@param v any
---@return any value
---@return srv.Fault[]? faults
function rule_values.call(fn, v)
  local value, message, path = fn(v)
  if value ~= nil then return value end
  if type(message) == "table" then error(message, 0) end
  return v, rule_faults.add(nil, pointer(path), "rejected", message and tostring(message) or "is not accepted")
end

local function only_undeclared(faults)
  for _, fault in ipairs(faults) do
    if fault.code ~= "unknown" then return false end
  end
  return true
end

local function is_of_type(faults)
  return faults[1].path ~= "" or (faults[1].code ~= "type" and faults[1].code ~= "one_of")
end

--- The first of CHECKS that finds no fault gives the value; else value and faults of the one that
--- came nearest, or V and MISMATCH where it is of no alternative's type.
---@param v any
---@param checks (fun(v: any): any, srv.Fault[]?)[]
---@param mismatch srv.Fault
---@param is_answer boolean?  of which undeclared fields are only told of
---@return any value
---@return srv.Fault[]? faults
function rule_values.first_of(v, checks, mismatch, is_answer)
  local nearest, nearest_value
  for i = 1, #checks do
    local value, faults = checks[i](v)
    if not faults or is_answer and only_undeclared(faults) then return value, faults end
    if is_of_type(faults) and (not nearest or #faults < #nearest) then nearest, nearest_value = faults, value end
  end
  if nearest then return nearest_value, nearest end
  return v, rule_faults.add(nil, "", mismatch.code, mismatch.message)
end

return rule_values
