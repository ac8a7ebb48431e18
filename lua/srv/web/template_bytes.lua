--- Sets of bytes: does a text hold one, and what stands for it? Loops that the JIT compiles, where a Lua
--- pattern is called and ends the trace: 10 ns against 100 for a short text that needs no escape.
local buffer = require "string.buffer"
local ffi = require "ffi"
local cast, sub = ffi.cast, string.sub

local template_bytes = {}

local BYTES = ffi.typeof("const uint8_t *")

--- A function that tells whether a text has a byte which matches PATTERN, a class of Lua's.
---@param pattern string  "[&<>]"
---@return fun(text: string): boolean
function template_bytes.finder(pattern)
  local marks = ffi.new("uint8_t[256]")
  for code = 0, 255 do
    if string.char(code):find(pattern) then marks[code] = 1 end
  end
  return function(text)
    local bytes = cast(BYTES, text)
    for i = 0, #text - 1 do
      if marks[bytes[i]] ~= 0 then return true end
    end
    return false
  end
end

--- A function that writes REPLACED[c] for each character c of a text that has one.
---@param replaced table<string, string>
---@return fun(text: string): string
function template_bytes.replacer(replaced)
  local marks, by_code, out = ffi.new("uint8_t[256]"), {}, buffer.new()
  for char, replacement in pairs(replaced) do marks[char:byte()], by_code[char:byte()] = 1, replacement end
  return function(text)
    local bytes, from, is_changed = cast(BYTES, text), 1, false
    for i = 0, #text - 1 do
      local code = bytes[i]
      if marks[code] ~= 0 then
        out:put(sub(text, from, i), by_code[code])
        from, is_changed = i + 2, true
      end
    end
    if not is_changed then return text end
    return out:put(sub(text, from)):get()
  end
end

return template_bytes
