--- Lua patterns, read before they run: is one well formed, and has it an equal in ECMA-262 (the
--- regular expressions of JSON Schema)?
local pattern = {}

-- What a class letter holds, as the inside of a regular expression's set. C locale.
local CLASSES = {
  a = "A-Za-z", d = "0-9", l = "a-z", u = "A-Z", w = "A-Za-z0-9", x = "A-Fa-f0-9",
  z = "\\x00", s = " \\t\\n\\v\\f\\r", p = "!-\\/:-@\\[-`{-~", c = "\\x00-\\x1f\\x7f", g = "!-~",
}

local CAPTURES_MAX = 32 -- LUA_MAXCAPTURES

---@class srv.PatternReader
---@field text string
---@field at integer      the next byte to read
---@field out string[]    the regular expression, piece by piece
---@field equal boolean   false once something was met that regular expressions lack
---@field closed boolean[] for each capture: has its ")" been read
---@field open integer[]   numbers of the captures that are open, innermost last
---@field items srv.PatternItem[]

--- What a pattern is made of, captures and frontiers aside.
---@class srv.PatternItem
---@field text? string   what matches one character: "%d", "[a-z]"; nil: a balance or a back reference
---@field mark string    "*" "+" "-" "?" or ""

local function fail(reader, why)
  error({ message = ("malformed pattern %q: %s"):format(reader.text, why) }, 0)
end

--- CHAR for a regular expression, also one with the `u` flag, which forbids idle escapes.
local function escape(char, in_set)
  if char:byte() > 127 then return nil end
  if char:find("%c") then return ("\\x%02x"):format(char:byte()) end
  local special = in_set and "[%^%]%[\\%-]" or "[%^%$\\%.%*%+%?%(%)%[%]{}|/]"
  return char:find(special) and "\\" .. char or char
end

local function push(reader, piece)
  if piece then
    reader.out[#reader.out + 1] = piece
  else
    reader.equal = false
  end
end

--- `%a`, `%D`, `%.`: as the inside of a set, or nil; and whether it is a negated class.
local function class(letter, in_set)
  local inside = CLASSES[letter:lower()]
  if not inside then return escape(letter, in_set), false end
  return inside, letter:find("%u") ~= nil
end

--- One member of a set at reader.at: a class, a range or a byte.
local function set_member(reader)
  local text, at = reader.text, reader.at
  local char = text:sub(at, at)
  if char == "%" then
    if at == #text then fail(reader, "it ends with %") end
    local inside, negated = class(text:sub(at + 1, at + 1), true)
    reader.at = at + 2
    return not negated and inside or nil -- a negated class inside a set has no short equal
  end
  local high = text:match("^%-([^%]])", at + 1)
  if high then
    reader.at = at + 3
    local from, to = escape(char, true), escape(high, true)
    return from and to and from .. "-" .. to
  end
  reader.at = at + 1
  return escape(char, true)
end

local function set(reader)
  local text = reader.text
  local members, equal = {}, true
  reader.at = reader.at + 1
  local negated = text:sub(reader.at, reader.at) == "^"
  if negated then reader.at = reader.at + 1 end
  repeat -- a "]" that comes first is a member
    if reader.at > #text then fail(reader, "a [ has no ]") end
    local member = set_member(reader)
    if member then members[#members + 1] = member else equal = false end
  until text:sub(reader.at, reader.at) == "]"
  reader.at = reader.at + 1
  return equal and ("[%s%s]"):format(negated and "^" or "", table.concat(members)) or nil
end

local function add_item(reader, text, mark) table.insert(reader.items, { text = text, mark = mark }) end

--- `%...` outside a set. Returns the piece (nil: no equal) and whether it may be repeated.
local function escaped(reader)
  local text = reader.text
  local letter = text:sub(reader.at + 1, reader.at + 1)
  if letter == "" then fail(reader, "it ends with %") end
  if letter == "b" then
    if reader.at + 3 > #text then fail(reader, "%b wants two characters") end
    reader.at = reader.at + 4
    add_item(reader, nil, "")
    return nil, false
  end
  if letter == "f" then
    if text:sub(reader.at + 2, reader.at + 2) ~= "[" then fail(reader, "%f wants a set") end
    reader.at = reader.at + 2
    set(reader)
    return nil, false
  end
  reader.at = reader.at + 2
  if letter:find("%d") then
    local number = tonumber(letter)
    if not reader.closed[number] then fail(reader, "%" .. letter .. " names no capture") end
    add_item(reader, nil, "")
    return "\\" .. letter, false
  end
  local inside, negated = class(letter)
  if not CLASSES[letter:lower()] then return inside, true end
  return ("[%s%s]"):format(negated and "^" or "", inside), true
end

local REPEATS = { ["*"] = "*", ["+"] = "+", ["?"] = "?", ["-"] = "*?" }

--- What follows the character that TEXT (as the pattern has it) matches.
local function repetition(reader, text)
  local mark = reader.text:sub(reader.at, reader.at)
  if not REPEATS[mark] then return add_item(reader, text, "") end
  reader.at = reader.at + 1
  push(reader, REPEATS[mark])
  add_item(reader, text, mark)
end

local function open_capture(reader)
  local number = #reader.closed + 1
  if number > CAPTURES_MAX then fail(reader, "more than 32 captures") end
  if reader.text:sub(reader.at + 1, reader.at + 1) == ")" then -- a position: no group has its number
    reader.at, reader.closed[number], reader.equal = reader.at + 2, true, false
    return
  end
  reader.at, reader.closed[number] = reader.at + 1, false
  table.insert(reader.open, number)
  push(reader, "(")
end

local function close_capture(reader)
  local number = table.remove(reader.open)
  if not number then fail(reader, "a ) has no (") end
  reader.at, reader.closed[number] = reader.at + 1, true
  push(reader, ")")
end

local function item(reader)
  local char = reader.text:sub(reader.at, reader.at)
  if char == "(" then return open_capture(reader) end
  if char == ")" then return close_capture(reader) end
  local from = reader.at
  local piece, repeatable
  if char == "%" then
    piece, repeatable = escaped(reader)
  elseif char == "[" then
    piece, repeatable = set(reader), true
  else
    reader.at = reader.at + 1
    piece, repeatable = char == "." and "[\\s\\S]" or escape(char), true
  end
  push(reader, piece)
  if repeatable then repetition(reader, reader.text:sub(from, reader.at - 1)) end
end

local function read(text, last)
  local first = text:sub(1, 1) == "^" and 2 or 1
  local reader = { text = text, at = first, out = {}, equal = true, open = {}, closed = {}, items = {} }
  if text:find("%z") then fail(reader, "a zero byte would end it: write %z") end
  while reader.at <= last do item(reader) end
  if #reader.open > 0 then fail(reader, "a ( has no )") end
  return reader
end

--- Does TEXT end with a `$` that is an anchor, not an escaped dollar?
local function ends_anchored(text)
  local percents = text:match("(%%*)%$$")
  return percents ~= nil and #percents % 2 == 0
end

--- Makes TEXT match the whole subject. nil and a message if it is malformed, which string.find
--- would tell only once a subject leads it there.
---@param text string  a Lua pattern, with or without anchors
---@return string? anchored
---@return string? regex_or_message  the same in ECMA-262, nil where that has no equal; or what is wrong
function pattern.whole(text)
  local anchored_end = ends_anchored(text)
  local ok, reader = pcall(read, text, anchored_end and #text - 1 or #text)
  if not ok then return nil, type(reader) == "table" and reader.message or tostring(reader) end
  local whole = (text:sub(1, 1) == "^" and "" or "^") .. text .. (anchored_end and "" or "$")
  return whole, reader.equal and "^" .. table.concat(reader.out) .. "$" or nil
end

-- How long it may take -----------------------------------------------------------------------------------
-- A pattern that fails tries all ways to share the text out between its repetitions. There is more than one way only
-- where a repetition's characters are also those of what follows it.

local REPEATED = { ["*"] = true, ["+"] = true, ["-"] = true }
local MAY_MISS = { ["*"] = true, ["-"] = true, ["?"] = true }
local UTF8_BYTES_MAX = 4

--- The bytes that an item matches.
local function bytes_of(one)
  local bytes = { count = 0 }
  for byte = 0, 255 do
    if string.char(byte):find("^" .. one.text .. "$") then bytes[byte], bytes.count = true, bytes.count + 1 end
  end
  return bytes
end

local function overlap(a, b)
  for byte = 0, 255 do
    if a[byte] and b[byte] then return true end
  end
  return false
end

--- Can what item AT matches also be matched by what comes next?
local function is_ambiguous(items, sets, at)
  for next_at = at + 1, #items do
    if not sets[next_at] or overlap(sets[at], sets[next_at]) then return true end
    if not MAY_MISS[items[next_at].mark] then return false end
  end
  return false
end

---@class srv.PatternCost
---@field degree integer  of the polynomial in the length of the text
---@field factor number
---@field width integer   bytes of a character that repetitions match

--- The worst that a text can do to TEXT, a pattern that is well formed.
---@param text string
---@return srv.PatternCost
function pattern.cost(text)
  local items, sets = read(text, ends_anchored(text) and #text - 1 or #text).items, {}
  for i, one in ipairs(items) do sets[i] = one.text and bytes_of(one) end
  local cost, runs_on = { degree = 0, factor = 1, width = 1 }, false
  local function add_degree() cost.degree, cost.factor = cost.degree + 1, cost.factor / (cost.degree + 1) end
  for i, one in ipairs(items) do
    if not sets[i] then
      add_degree() -- it looks at all that follows
    elseif REPEATED[one.mark] then
      if sets[i][255] then cost.width = UTF8_BYTES_MAX end
      if is_ambiguous(items, sets, i) then
        add_degree()
      elseif sets[i].count < 256 then
        runs_on = true -- once more over the text, for each way to come here
      end
    elseif one.mark == "?" and is_ambiguous(items, sets, i) then
      cost.factor = cost.factor * 2
    end
  end
  if runs_on then add_degree() end
  return cost
end

-- What one text may cost a pattern at the worst: some 50 ms, in which the worker does nothing else.
local STEPS_MAX = 1e7

--- The longest text that may be held against a pattern of COST.
---@param cost srv.PatternCost
---@return integer bytes
---@return integer chars
function pattern.longest(cost)
  local bytes
  if cost.degree == 0 then
    bytes = cost.factor <= STEPS_MAX and math.huge or 0
  else
    bytes = math.floor((STEPS_MAX / cost.factor) ^ (1 / cost.degree))
  end
  return bytes, math.floor(bytes / cost.width)
end

return pattern
