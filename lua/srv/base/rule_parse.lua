--- Rule strings (API, section 6): from "string 1..200 trim = x -- shown" to a tree of nodes.
---
---   rule  = alt { "|" alt } [ "=" default ] [ "--" description ]
---   alt   = ( type | word | 'text' | number | "(" rule ")" ) [ "[]" ] { "?" | limit }
---   limit = [n] ".." [n] | ( ">=" | ">" | "<=" | "<" ) n | "/" pattern "/" | media
---         | "trim" | "lower" | "upper" | "unique"
local pattern = require "srv.base.pattern"
local suggest = require "srv.base.suggest"
local types = require "srv.base.types"
local units = require "srv.base.units"

local rule_parse = {}

---@class srv.RuleReader
---@field text string
---@field at integer  the next byte to read

local function fail(reader, message, ...)
  error({ message = ("%s (in the rule %q)"):format(message:format(...), reader.text) }, 0)
end

--- The text that PATTERN matches here, blanks before it skipped; nil leaves the reader as it was.
local function take(reader, lua_pattern)
  local from, to, captured = reader.text:find("^%s*(" .. lua_pattern .. ")", reader.at)
  if not from then return nil end
  reader.at = to + 1
  return captured
end

local function sees(reader, lua_pattern)
  return reader.text:find("^%s*" .. lua_pattern, reader.at) ~= nil
end

-- ---- limits -------------------------------------------------------------------------------------

local NUMBER = "%-?%d+"

--- A number with its unit as { value, text, unit }, or nil.
local function take_number(reader)
  local whole = take(reader, NUMBER)
  if not whole then return nil end
  local rest = reader.text:match("^%.%d+", reader.at) or ""
  reader.at = reader.at + #rest
  local exponent = reader.text:match("^[eE][+-]?%d+", reader.at) or ""
  reader.at = reader.at + #exponent
  local unit = reader.text:match("^%a+", reader.at)
  reader.at = reader.at + #(unit or "")
  local text = whole .. rest .. exponent
  local value = tonumber(text) or fail(reader, "the exponent of %s is too large", text)
  return { value = value, text = text, unit = unit }
end

local FACTOR_OF = {
  duration = units.seconds_in,
  bytes = units.bytes_in,
  file = units.bytes_in,
}

--- What NUMBER bounds in NODE, its unit applied.
local function bound_value(reader, node, number)
  if not number.unit then return node.type == "bigint" and number.text or number.value end
  local factor_of = node.kind == "scalar" and FACTOR_OF[node.type]
  if not factor_of then fail(reader, "a unit (%s) makes no sense here", number.unit) end
  local factor = factor_of(number.unit)
  if not factor then fail(reader, "unknown unit %q", number.unit) end
  return number.value * factor
end

--- A count cannot lie between two whole numbers: `> 3` is `>= 4`.
local function next_whole(value, step) return step > 0 and math.floor(value) + 1 or math.ceil(value) - 1 end

local function is_counted(node) return node.kind == "array" or types.family(node.type) == "text" or node.type == "file" end

local function check_bounded(reader, node)
  if node.kind == "array" or types.is_bounded(node.type) then return end
  fail(reader, "%s takes no bounds", node.kind == "scalar" and node.type or "this")
end

local function check_count(reader, node, value)
  if not is_counted(node) or (value >= 0 and value % 1 == 0) then return end
  fail(reader, "a count is a whole number from 0 on, not %.17g", value)
end

local function set_min(reader, node, value, open)
  if node.min ~= nil then fail(reader, "two lower bounds") end
  if is_counted(node) and open then value, open = next_whole(value, 1), false end
  check_count(reader, node, value)
  node.min, node.min_open = value, open
end

local function set_max(reader, node, value, open)
  if node.max ~= nil then fail(reader, "two upper bounds") end
  if is_counted(node) and open then value, open = next_whole(value, -1), false end
  check_count(reader, node, value)
  node.max, node.max_open = value, open
end

local function compare(reader, node)
  local sign = take(reader, "[<>]=?")
  local number = take_number(reader) or fail(reader, "a number belongs after %s", sign)
  local value = bound_value(reader, node, number)
  if sign:sub(1, 1) == ">" then
    set_min(reader, node, value, sign == ">")
  else
    set_max(reader, node, value, sign == "<")
  end
end

local function range(reader, node)
  local from = take_number(reader)
  if not take(reader, "%.%.") then fail(reader, "a bound is written 1.. or ..9 or 1..9") end
  -- "1.. 9" reads as one range, for blanks mean nothing elsewhere either.
  local to = take_number(reader)
  if not from and not to then fail(reader, ".. has no number on either side") end
  if from then set_min(reader, node, bound_value(reader, node, from), false) end
  if to then set_max(reader, node, bound_value(reader, node, to), false) end
end

--- `/pattern/`; a slash inside it is written `%/`.
local function match_limit(reader, node)
  local at = reader.text:find("/", reader.at, true) + 1
  local close = at
  while close <= #reader.text and reader.text:sub(close, close) ~= "/" do
    close = close + (reader.text:sub(close, close) == "%" and 2 or 1)
  end
  if close > #reader.text then fail(reader, "a pattern has no closing /") end
  if types.family(node.type) ~= "text" then fail(reader, "only text takes a pattern") end
  if node.pattern then fail(reader, "two patterns") end
  local text = reader.text:sub(at, close - 1)
  local whole, regex = pattern.whole(text)
  if not whole then fail(reader, "%s", regex) end
  node.pattern = { text = text, whole = whole, regex = regex }
  reader.at = close + 1
end

local function media_limit(reader, node)
  if node.type ~= "file" then fail(reader, "only a file takes a media type") end
  node.media = node.media or {}
  table.insert(node.media, take(reader, "[%w.+-]+/[%w.+*-]+"):lower())
end

local MARKS = { "trim", "lower", "upper", "unique" }

local function mark_limit(reader, node)
  local at = reader.at
  local word = take(reader, "[%a_][%w_]*")
  if word == "unique" then
    if node.kind ~= "array" then fail(reader, "only an array can be unique") end
    node.unique = true
  elseif word == "trim" or word == "lower" or word == "upper" then
    if types.family(node.type) ~= "text" then fail(reader, "only text can be changed by %q", word) end
    node[word] = true
  else
    reader.at = at
    fail(reader, "unknown limit %q%s", word, suggest.hint(word, MARKS))
  end
end

--- Reads one limit into NODE; false: none stands here.
local function limit(reader, node)
  if sees(reader, "[<>]") or sees(reader, NUMBER) or sees(reader, "%.%.") then
    check_bounded(reader, node)
    if sees(reader, "[<>]") then compare(reader, node) else range(reader, node) end
  elseif sees(reader, "/") then
    match_limit(reader, node)
  elseif sees(reader, "[%w.+-]+/[%w.+*-]+") then
    media_limit(reader, node)
  elseif sees(reader, "[%a_]") then
    mark_limit(reader, node)
  else
    return false
  end
  return true
end

local function as_number(value) return tonumber(value) end

local function check_order(reader, node)
  if node.min == nil or node.max == nil then return end
  local from, to = as_number(node.min), as_number(node.max)
  if from > to or (from == to and (node.min_open or node.max_open)) then
    fail(reader, "nothing lies within these bounds")
  end
end

-- A pattern without a length of its own sees no more than this.
local PATTERN_CHARS_MAX = 1000

local function bound_pattern(reader, node)
  if not node.pattern then return end
  node.max = node.max or PATTERN_CHARS_MAX
  local _, chars_max = pattern.longest(pattern.cost(node.pattern.text))
  if node.max <= chars_max then return end
  fail(reader, "the pattern %s may try too many ways to share out %d characters: allow at most ..%d of them, or let no two "
    .. "neighbours in it match the same characters", node.pattern.text, node.max, chars_max)
end

-- ---- alternatives -------------------------------------------------------------------------------

local parse_rule

--- `draft`, `in-progress`: hyphens lie inside, so that "--" stays the description's.
local function take_word(reader)
  local word = take(reader, "[%a_][%w_]*")
  if not word then return nil end
  local from = reader.at - #word
  while reader.text:find("^%-[%w_]", reader.at) do
    reader.at = reader.text:match("^%-[%w_]+()", reader.at)
  end
  return reader.text:sub(from, reader.at - 1)
end

--- A base without its "[]" and limits: a node, or a word that may turn out a literal.
local function base(reader)
  if take(reader, "%(") then
    local inner = parse_rule(reader, true)
    if not take(reader, "%)") then fail(reader, "a ( has no )") end
    return inner
  end
  local quoted = take(reader, "'[^']*'")
  if quoted then return { kind = "literal", values = { quoted:sub(2, -2) } } end
  if sees(reader, "'") then fail(reader, "a ' has no second one") end
  if sees(reader, "%-?%d") then
    local number = take_number(reader)
    if number.unit then fail(reader, "a number alone takes no unit") end
    return { kind = "literal", values = { number.value } }
  end
  local word = take_word(reader)
  if not word then
    local rest = reader.text:sub(reader.at):match("^%s*(%S+)")
    fail(reader, rest and "a type or value belongs before %q" or "a type or value is missing", rest)
  end
  return { kind = "word", word = word }
end

local function array_of(reader, item)
  if item.optional then fail(reader, "items of an array cannot be optional") end
  if item.default_text then fail(reader, "items of an array have no default") end
  return { kind = "array", item = item }
end

--- A word that names a type becomes that scalar; others stay words until all alternatives are read.
local function resolve_type(node)
  if node.kind ~= "word" or not types.is_type(node.word) then return node end
  if node.word == "array" then return { kind = "array", item = { kind = "scalar", type = "any" } } end
  return { kind = "scalar", type = node.word }
end

--- "int" and "bool" of other languages are too short to be near to anything.
local function type_beginning_with(word)
  for _, name in ipairs(#word >= 3 and types.names() or {}) do
    if name:sub(1, #word) == word then return (', did you mean "%s"?'):format(name) end
  end
  return ""
end

local function no_such_type(reader, word)
  local hint = suggest.hint(word, types.names())
  if hint == "" then hint = type_beginning_with(word) end
  local quote = hint == "" and (", or quote it if it is a value: '%s'"):format(word) or ""
  fail(reader, "unknown type %q%s%s", word, hint, quote)
end

--- Reads what follows a base; false: nothing does. The "?" stands best before the limits, but
--- "string 1..80?" can mean nothing else.
local function flag_or_limit(reader, node)
  if sees(reader, "[|=)]") or sees(reader, "%-%-") then return false end
  if take(reader, "%?") then
    node.optional = true
    return true
  end
  if node.kind == "word" and sees(reader, "%S") then no_such_type(reader, node.word) end
  return limit(reader, node)
end

local function alternative(reader)
  local node = resolve_type(base(reader))
  if take(reader, "%[%]") then
    if node.kind == "word" then no_such_type(reader, node.word) end
    node = array_of(reader, node)
    if sees(reader, "%[%]") then fail(reader, "an array of arrays is written (x[])[]") end
  end
  local more
  repeat more = flag_or_limit(reader, node) until not more
  check_order(reader, node)
  bound_pattern(reader, node)
  return node
end

--- The words among ALTS: bare ones, which are literals if there are two and no type beside them.
local function settle_words(reader, alts)
  local words, types_beside = {}, false
  for _, alt in ipairs(alts) do
    if alt.kind == "word" then
      words[#words + 1] = alt.word
    elseif alt.kind ~= "literal" and alt.type ~= "null" then
      types_beside = true
    end
  end
  if #words == 0 then return end
  if #words == 1 or types_beside then no_such_type(reader, words[1]) end
  for _, alt in ipairs(alts) do
    if alt.kind == "word" then alt.kind, alt.values, alt.word = "literal", { alt.word }, nil end
  end
end

--- Neighbouring literals become one node, which is one look-up.
local function join_literals(alts)
  local joined = {}
  for _, alt in ipairs(alts) do
    local last = joined[#joined]
    if alt.kind == "literal" and last and last.kind == "literal" then
      for _, value in ipairs(alt.values) do table.insert(last.values, value) end
    else
      joined[#joined + 1] = alt
    end
  end
  return joined
end

--- What alternatives say of the whole field: one `?` makes it optional, a group may bring a default.
local function take_flags(alts)
  local flags = {}
  for _, alt in ipairs(alts) do
    flags.optional = flags.optional or alt.optional
    flags.default_text = flags.default_text or alt.default_text
    alt.optional, alt.default_text = nil, nil
  end
  return flags
end

local function union_of(alts)
  local flags = take_flags(alts)
  alts = join_literals(alts)
  local node = #alts == 1 and alts[1] or { kind = "union", alts = alts }
  node.optional, node.default_text = flags.optional, flags.default_text
  return node
end

-- ---- default and description --------------------------------------------------------------------

--- Where the default ends: before a blank and "--", or the ")" of its group; JSON strings may hold either.
local function default_end(reader, nested)
  local text, at = reader.text, reader.at
  local is_json, quoted, depth = text:find('^%s*["%[{]', at) ~= nil, false, 0
  while at <= #text do
    local char = text:sub(at, at)
    if quoted then
      if char == "\\" then at = at + 1 elseif char == '"' then quoted = false end
    elseif is_json and char == '"' then
      quoted = true
    elseif text:find("^%s%-%-", at) then
      break
    elseif nested and char == "(" then
      depth = depth + 1
    elseif nested and char == ")" then
      if depth == 0 then break end
      depth = depth - 1
    end
    at = at + 1
  end
  return at - 1
end

local function default_text(reader, nested)
  local last = default_end(reader, nested)
  local text = reader.text:sub(reader.at, last):match("^%s*(.*%S)") or ""
  reader.at = last + 1
  if text == "" then fail(reader, '= has no default after it (an empty text is = "")') end
  return text
end

function parse_rule(reader, nested)
  local alts = {}
  repeat alts[#alts + 1] = alternative(reader) until not take(reader, "|")
  settle_words(reader, alts)
  local node = union_of(alts)
  if take(reader, "=") then node.default_text = default_text(reader, nested) end
  if not nested and take(reader, "%-%-") then
    node.description = reader.text:sub(reader.at):match("^%s*(.-)%s*$")
    reader.at = #reader.text + 1
  end
  return node
end

--- The tree of a rule string. Defaults are still text (`default_text`): what they mean follows
--- from the whole rule.
---@param text string
---@return table? node
---@return string? message  what is wrong with the rule
function rule_parse.parse(text)
  local reader = { text = text, at = 1 }
  local ok, node = pcall(parse_rule, reader, false)
  if ok and sees(reader, "%S") then
    local rest = text:sub(reader.at):match("^%s*(%S+)")
    ok, node = pcall(fail, reader, "%q is not understood", rest)
  end
  if ok then return node end
  return nil, type(node) == "table" and node.message or error(node, 0)
end

return rule_parse
