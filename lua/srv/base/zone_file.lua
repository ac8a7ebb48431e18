--- Files of time zones: TZif, version 2 and later (RFC 9636). Such a file holds the same twice; the
--- second part has 64 bits for a moment and is the one that is read.
local zone_rule = require "srv.base.zone_rule"

local zone_file = {}

local byte, find, match, sub = string.byte, string.find, string.match, string.sub

local HEADER_BYTES = 44
local TYPE_BYTES = 6
local OFFSET_SECONDS_MAX = 26 * 3600 -- RFC 9636, 3.2: readers may refuse more

---@class srv.ZoneFile
---@field times number[]                                 when something changes, ascending
---@field types { offset: integer, name: string }[]      what holds from then on
---@field first { offset: integer, name: string }        what holds before
---@field rule srv.ZoneRule?                             what holds after the last

local function read_u32(text, at)
  local a, b, c, d = byte(text, at, at + 3)
  return ((a * 256 + b) * 256 + c) * 256 + d
end

local function read_i32(text, at)
  local n = read_u32(text, at)
  return n < 2 ^ 31 and n or n - 2 ^ 32
end

local function read_i64(text, at) return read_i32(text, at) * 2 ^ 32 + read_u32(text, at + 4) end

--- The header at AT, and where its block would end; TIME_BYTES is the size of a moment.
local function read_header(text, at, time_bytes)
  if #text < at + HEADER_BYTES - 1 or sub(text, at, at + 3) ~= "TZif" then return nil end
  local header = { version = byte(text, at + 4) }
  for i, name in ipairs { "utc_flags", "std_flags", "leaps", "times", "types", "chars" } do
    header[name] = read_u32(text, at + 16 + i * 4)
  end
  local block_bytes = header.times * (time_bytes + 1) + header.types * TYPE_BYTES + header.chars
    + header.leaps * (time_bytes + 4) + header.std_flags + header.utc_flags
  header.data = at + HEADER_BYTES
  header.after = header.data + block_bytes
  return header
end

--- The local time types: how far ahead of UTC, and under which name.
local function read_types(text, header, at)
  local names_at = at + header.types * TYPE_BYTES
  local names = sub(text, names_at, names_at + header.chars - 1)
  local types = {}
  for i = 1, header.types do
    local entry = at + (i - 1) * TYPE_BYTES
    local offset, name_at = read_i32(text, entry), byte(text, entry + 5) + 1
    local name = match(names, "^([^%z]*)%z", name_at)
    if not name or math.abs(offset) > OFFSET_SECONDS_MAX then return nil, "a local time is out of bounds" end
    types[i] = { offset = offset, name = name }
  end
  return types
end

local function read_changes(text, header, types)
  local times, kinds = {}, {}
  local indexes_at = header.data + header.times * 8
  for i = 1, header.times do
    times[i] = read_i64(text, header.data + (i - 1) * 8)
    kinds[i] = types[byte(text, indexes_at + i - 1) + 1]
    if not kinds[i] then return nil, "a change to a local time that is not there" end
    if i > 1 and times[i] <= times[i - 1] then return nil, "its changes are not in order" end
  end
  return times, kinds
end

--- The rule after the last change; false if there is something else.
local function read_footer(text, at)
  local line = match(text, "^\n([^\n]*)\n$", at)
  if not line then return false end
  if line == "" then return nil end
  return zone_rule.parse(line) or false
end

--- The header of the second part, or why it cannot be read.
local function find_block(text)
  local first = read_header(text, 1, 4)
  if not first then return nil, "no TZif file" end
  if first.version < 50 then return nil, "TZif version 1, which ends in 2038" end -- "2"
  local header = read_header(text, first.after, 8)
  if not header or header.after > #text then return nil, "it is cut off" end
  if header.types == 0 or header.types > 256 then return nil, "it has no local time" end
  if header.leaps > 0 then return nil, "it counts leap seconds, which seconds since 1970 do not" end
  return header
end

---@param text string  a whole file
---@return srv.ZoneFile?
---@return string? message
function zone_file.parse(text)
  local header, message = find_block(text)
  if not header then return nil, message end
  local types, type_message = read_types(text, header, header.data + header.times * 9)
  if not types then return nil, type_message end
  local times, kinds = read_changes(text, header, types)
  if not times then return nil, kinds end
  local rule = read_footer(text, header.after)
  if rule == false then return nil, "its last line is no rule" end
  return { times = times, types = kinds, first = types[1], rule = rule }
end

--- The index of the last change up to T; 0: none.
local function index_at(times, t)
  local low, high = 0, #times
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if times[middle] <= t then low = middle else high = middle - 1 end
  end
  return low
end

--- What FILE says of the moment T.
---@param file srv.ZoneFile
---@param t number          seconds since 1970
---@return integer offset   seconds ahead of UTC
---@return string name      "CEST"
function zone_file.at(file, t)
  local index = index_at(file.times, t)
  if index == #file.times and file.rule then return zone_rule.at(file.rule, t) end
  local kind = file.types[index] or file.first
  return kind.offset, kind.name
end

--- Whether NAME can be one of the database: no way out of its folder.
---@param name string
---@return boolean
function zone_file.is_name(name)
  return #name <= 64 and find(name, "^%a") ~= nil and not find(name, "[^%w_+/-]")
    and not find(name, "//", 1, true) and sub(name, -1) ~= "/"
end

return zone_file
