--- A value as a person wants to see it: `srv repl`. Bounded in depth, entries and bytes, for what is looked at may
--- be all of a running app.
local inspect = {}

local DEPTH_MAX = 4
local ENTRIES_MAX = 100        -- of one table
local STRING_BYTES_MAX = 2000  -- of one string
local BYTES_MAX = 64 * 1024    -- of it all
local WIDE = 100               -- columns that a table on one line may take

local WORDS = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat return then true
  until while]]):gmatch "%S+" do WORDS[word] = true end

local ESCAPES = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ['"'] = '\\"', ["\\"] = "\\\\" }

local function quote(text)
  local shown = #text > STRING_BYTES_MAX and text:sub(1, STRING_BYTES_MAX) or text
  local quoted = '"' .. shown:gsub('[%c"\\\127]', function(byte)
    return ESCAPES[byte] or ("\\%03d"):format(byte:byte())
  end) .. '"'
  return #text > STRING_BYTES_MAX and ("%s... (%d bytes)"):format(quoted, #text) or quoted
end

local function name_of(fn)
  local info = debug.getinfo(fn, "S")
  return info.what == "C" and tostring(fn) or ("function: %s:%d"):format(info.short_src, info.linedefined)
end

--- What an object says of itself, if its class has something to say.
local function own_words(value)
  local meta = debug.getmetatable(value)
  if type(meta) ~= "table" or rawget(meta, "__tostring") == nil then return nil end
  local ok, text = pcall(tostring, value)
  return ok and type(text) == "string" and text or nil
end

local function class_of(value)
  local meta = debug.getmetatable(value)
  local name = type(meta) == "table" and rawget(meta, "__name")
  return type(name) == "string" and not name:find "^srv%.json%." and name .. " " or ""
end

local RANK = { number = 1, string = 2, boolean = 3 }

local function comes_first(a, b)
  local rank_a, rank_b = RANK[type(a)] or 4, RANK[type(b)] or 4
  if rank_a ~= rank_b then return rank_a < rank_b end
  if rank_a <= 2 then return a < b end
  return tostring(a) < tostring(b)
end

--- Keys behind the array's part, in order, no more than are shown; and how many there are.
local function keys_of(value, length)
  local keys, count = {}, 0
  for key in next, value do
    local in_array = type(key) == "number" and key >= 1 and key <= length and key % 1 == 0
    if not in_array then
      count = count + 1
      if count <= ENTRIES_MAX then keys[count] = key end
    end
  end
  table.sort(keys, comes_first)
  return keys, count
end

local show -- a value at a depth

local function key_text(state, key, depth)
  if type(key) == "string" and key:find "^[%a_][%w_]*$" and not WORDS[key] then return key end
  return "[" .. show(state, key, depth + 1) .. "]"
end

local function entries_of(state, value, depth)
  local parts, length = {}, #value
  for i = 1, math.min(length, ENTRIES_MAX) do parts[i] = show(state, rawget(value, i), depth + 1) end
  local keys, count = keys_of(value, length)
  for _, key in ipairs(keys) do
    if #parts >= ENTRIES_MAX then break end
    parts[#parts + 1] = key_text(state, key, depth) .. " = " .. show(state, rawget(value, key), depth + 1)
  end
  local left = length + count - #parts
  if left > 0 then parts[#parts + 1] = ("... (%d more)"):format(left) end
  return parts
end

local function layout(class, parts, depth)
  if #parts == 0 then return class .. "{}" end
  local flat = class .. "{ " .. table.concat(parts, ", ") .. " }"
  if #flat + 2 * depth <= WIDE and not flat:find("\n", 1, true) then return flat end
  local indent = ("  "):rep(depth + 1)
  return class .. "{\n" .. indent .. table.concat(parts, ",\n" .. indent) .. "\n" .. ("  "):rep(depth) .. "}"
end

local function show_table(state, value, depth)
  if state.around[value] then return "(itself)" end
  if depth >= DEPTH_MAX then return next(value) == nil and "{}" or class_of(value) .. "{...}" end
  if state.bytes > BYTES_MAX then return "..." end
  state.around[value] = true
  local text = layout(class_of(value), entries_of(state, value, depth), depth)
  state.around[value] = nil
  return text
end

local function show_plain(value)
  local kind = type(value)
  if kind == "string" then return quote(value) end
  if kind == "function" then return name_of(value) end
  if kind == "number" or kind == "boolean" or kind == "nil" then return tostring(value) end
  return own_words(value) or class_of(value) .. kind
end

function show(state, value, depth)
  local text = type(value) == "table" and (own_words(value) or show_table(state, value, depth)) or show_plain(value)
  if type(value) ~= "table" then state.bytes = state.bytes + #text end
  return text
end

--- VALUE as text, on one line where it fits.
---@param value any
---@return string
function inspect.text(value)
  local text = show({ around = {}, bytes = 0 }, value, 0)
  if #text <= 2 * BYTES_MAX then return text end
  return text:sub(1, 2 * BYTES_MAX) .. "\n... (cut)"
end

return inspect
