--- Rules as Lua code: each object, array and union becomes a function of its own, made once by
--- loadstring and kept. Scalars are written out where they stand, so a body of ten fields costs one
--- call, and a value that is right allocates nothing but its own copy.
---
--- A generated function is `fn(v) -> value, faults`. The value is always built, as far as it goes,
--- so that an answer can be sent in spite of its faults; FAULTS is nil where there are none.
local formats = require "srv.base.formats"
local json = require "srv.core.json"
local rule_faults = require "srv.base.rule_faults"
local rule_text = require "srv.base.rule_text"
local rule_values = require "srv.base.rule_values"
local units = require "srv.base.units"
local utf8 = require "srv.base.utf8"

local rule_code = {}

---@class srv.RuleMode
---@field text boolean    values are text: convert them, one value may stand for an array
---@field strict boolean  unknown fields are faults; else they are not copied
---@field folded? boolean  the value's names are in lower case, whatever the rule's
---@field listed? boolean  commas part the items of an array
---@field owned? boolean   the value is ours alone: it is changed in place instead of copied
---@field whole? boolean   the value is built to its end in spite of its faults: it is an answer
---@field numbered? boolean  names said which fields are items of an array (`rows[0]`), and no type did
---@field as_text? srv.RuleMode  what `coerce` makes of it

local function answer_mode(strict)
  return { text = false, strict = strict, whole = true, as_text = { text = true, strict = strict, whole = true } }
end

local JSON_TEXT = { text = true, strict = true }

---@type table<string, srv.RuleMode>
rule_code.MODES = {
  json = { text = false, strict = true, as_text = JSON_TEXT },
  body = { text = false, strict = true, as_text = JSON_TEXT, owned = true },        -- a JSON body, just decoded
  form = { text = true, strict = true, numbered = true },                           -- a body of text
  text = { text = true, strict = false },                                           -- query, cookies
  params = { text = true, strict = false, listed = true },
  headers = { text = true, strict = false, listed = true, folded = true },
  answer = answer_mode(false),                                                      -- a response
  noted_answer = answer_mode(true),                         -- one whose undeclared fields are told of
}

local MODES = rule_code.MODES

--- For what is looked at in vain perhaps, and then as something else.
local function copying(mode) return mode.owned and MODES.json or mode end

-- ---- the writer ---------------------------------------------------------------------------------

-- What generated code may name. Upvalues of a function are limited to 60, so everything that
-- belongs to one rule goes through the table K.
local PRELUDE = [[
local K, H = ...
local null, length, trim, find = H.null, H.length, H.trim, H.find
local add, nest, step, call = H.add, H.nest, H.step, H.call
local type, next, lower, upper = H.type, H.next, H.lower, H.upper
local setmetatable, array_mark, object_mark = H.setmetatable, H.array_mark, H.object_mark
local new_table = H.new_table
]]

local HELPERS = {
  null = json.null, length = utf8.length, trim = rule_values.trim,
  find = string.find, lower = string.lower, upper = string.upper, type = type, next = next,
  add = rule_faults.add, nest = rule_faults.nest, step = rule_faults.step,
  unknown = rule_faults.unknown, sort = rule_faults.sort,
  call = rule_values.call, copy = rule_values.copy, count = rule_values.count,
  first_of = rule_values.first_of, check_unique = rule_values.check_unique,
  is_object = rule_values.is_object, is_array = rule_values.is_array,
  rows = rule_values.rows, keyed = rule_values.keyed, list = rule_values.list,
  to_integer = rule_values.to_integer, to_number = rule_values.to_number,
  to_boolean = rule_values.to_boolean, to_digits = rule_values.to_digits,
  digits_less = rule_values.digits_less, media_fits = rule_values.media_fits,
  setmetatable = setmetatable, array_mark = json.array_mark, object_mark = json.object_mark,
  object = json.object, new_table = require "table.new",
  duration = units.duration, bytes = units.bytes, formats = formats,
}

---@class srv.RuleWriter
---@field mode srv.RuleMode
---@field lines string[]
---@field constants any[]
---@field open boolean   is a chain of `if ... elseif ...` open
---@field union? table    the union whose only other alternative is null, while that is written
local Writer = {}
Writer.__index = Writer

local function new_writer(mode)
  return setmetatable({ mode = mode, lines = { PRELUDE }, constants = {}, open = false }, Writer)
end

function Writer:line(text, ...)
  self.lines[#self.lines + 1] = select("#", ...) > 0 and text:format(...) or text
end

--- An expression for VALUE, which has no literal form.
function Writer:constant(value)
  table.insert(self.constants, value)
  return ("K[%d]"):format(#self.constants)
end

local function quote(text)
  return (("%q"):format(text):gsub("\\\n", "\\n"):gsub("\r", "\\r"):gsub("%z", "\\000"))
end

--- An expression for any value.
function Writer:value(value)
  if type(value) == "string" then return quote(value) end
  if type(value) == "number" then return ("%.17g"):format(value) end
  if type(value) == "boolean" then return tostring(value) end
  if value == json.null then return "null" end
  return self:constant(value)
end

--- The statement that notes a fault. PATH is an expression.
function Writer:fault(path, code, message)
  self:line("faults = add(faults, %s, %s, %s)", path, quote(code), quote(message))
end

--- "must be ...", for a value that NODE does not take.
function Writer:expected(node) return rule_text.expected(self.union or node) end

--- One more link of a chain of tests: the first condition that holds notes its fault.
function Writer:test(condition, path, code, message)
  self:line("%s %s then", self.open and "elseif" or "if", condition)
  self:fault(path, code, message)
  self.open = true
end

--- Ends the chain. OTHERWISE is the statement for a value that passed all tests.
function Writer:done(otherwise)
  if self.open then
    self:line(otherwise and "else " .. otherwise .. " end" or "end")
  elseif otherwise then
    self:line(otherwise)
  end
  self.open = false
end

function Writer:load(label)
  local chunk = assert(loadstring(table.concat(self.lines, "\n"), "=(rule " .. label .. ")"))
  return chunk(self.constants, HELPERS)
end

-- ---- scalars: a chain of tests on the local v ---------------------------------------------------

local compile

--- Tests of QUANTITY (an expression) against the bounds of NODE. KIND is what it counts.
local function bounds(w, node, quantity, path, kind)
  if node.min ~= nil then
    local operator = node.min_open and "<=" or "<"
    w:test(("%s %s %s"):format(quantity, operator, w:value(node.min)), path, rule_text.too_little(node, kind))
  end
  if node.max ~= nil then
    local operator = node.max_open and ">=" or ">"
    w:test(("%s %s %s"):format(quantity, operator, w:value(node.max)), path, rule_text.too_much(node, kind))
  end
end

local function emit_changes(w, node)
  for _, name in ipairs { "trim", "lower", "upper" } do
    if node[name] then w:line('if type(v) == "string" then v = %s(v) end', name) end
  end
end

local function emit_pattern(w, node, path)
  if not node.pattern then return end
  w:test(("not find(v, %s)"):format(quote(node.pattern.whole)), path, "pattern", rule_text.pattern(node))
end

local function emit_string(w, node, path)
  emit_changes(w, node)
  w:line('local n = type(v) == "string" and length(v)')
  w:test('type(v) ~= "string"', path, "type", w:expected(node))
  w:test("not n", path, "format", "must be UTF-8 text without NUL")
  bounds(w, node, "n", path, "character")
  emit_pattern(w, node, path)
  w:done()
end

--- Text with a format. All of them are ASCII, so bytes are characters.
local function emit_format(w, node, path)
  emit_changes(w, node)
  w:test('type(v) ~= "string"', path, "type", w:expected(node))
  w:test(("not H.formats.%s(v)"):format(node.type), path, "format", w:expected(node))
  bounds(w, node, "#v", path, "character")
  emit_pattern(w, node, path)
  w:done()
end

local function emit_integer(w, node, path)
  if w.mode.text then w:line("v = H.to_integer(v)") end
  w:test('type(v) ~= "number" or v % 1 ~= 0', path, "type", w:expected(node))
  w:test("v < -9007199254740992", path, "too_small", "must be at least -9007199254740992")
  w:test("v > 9007199254740992", path, "too_big", "must be at most 9007199254740992")
  bounds(w, node, "v", path, "value")
  w:done()
end

local function emit_number(w, node, path)
  if w.mode.text then w:line("v = H.to_number(v)") end
  -- v - v is 0 unless v is infinite or not a number.
  w:test('type(v) ~= "number" or v - v ~= 0', path, "type", w:expected(node))
  bounds(w, node, "v", path, "value")
  w:done()
end

--- Does `digits` lie beyond the bound LIMIT? `below`: is it the lower one; OPEN: is LIMIT itself out.
local function digits_beyond(limit, below, open)
  if below == open then return ("%sH.digits_less(%s, digits)"):format(open and "not " or "", limit) end
  return ("%sH.digits_less(digits, %s)"):format(open and "not " or "", limit)
end

local function emit_bigint(w, node, path)
  w:line("local digits = H.to_digits(v)")
  w:test("not digits", path, "type", w:expected(node))
  if node.min then
    local beyond = digits_beyond(quote(node.min), true, node.min_open == true)
    w:test(beyond, path, rule_text.too_little(node, "value"))
  end
  if node.max then
    local beyond = digits_beyond(quote(node.max), false, node.max_open == true)
    w:test(beyond, path, rule_text.too_much(node, "value"))
  end
  w:done("v = digits")
end

--- duration and bytes: a number, or text with a unit.
local function emit_measure(w, node, path)
  w:line("local n = H.%s(v)", node.type)
  w:test('type(v) ~= "string" and type(v) ~= "number"', path, "type", w:expected(node))
  w:test("not n", path, "format", w:expected(node))
  bounds(w, node, "n", path, "value")
  w:done("v = n")
end

local function emit_boolean(w, node, path)
  if w.mode.text then w:line("v = H.to_boolean(v)") end
  w:test('type(v) ~= "boolean"', path, "type", w:expected(node))
  w:done()
end

local function emit_file(w, node, path)
  w:test('type(v) ~= "table" or type(v.size) ~= "number"', path, "type", w:expected(node))
  if node.media then
    local fits = ("not H.media_fits(v.type, %s)"):format(w:constant(node.media))
    w:test(fits, path, "format", rule_text.media(node))
  end
  bounds(w, node, "v.size", path, "byte")
  w:done()
end

local function emit_unless(condition)
  return function(w, node, path)
    w:test(condition, path, "type", w:expected(node))
    w:done()
  end
end

local SCALARS = {
  string = emit_string,
  integer = emit_integer, number = emit_number, bigint = emit_bigint,
  duration = emit_measure, bytes = emit_measure,
  boolean = emit_boolean, file = emit_file,
  object = emit_unless("not H.is_object(v)"),
  null = emit_unless("v ~= null"),
  any = function() end,
}

local function emit_scalar(w, node, path) return (SCALARS[node.type] or emit_format)(w, node, path) end

--- Values that are allowed, by what stands for them in this mode.
local function literal_set(node, mode)
  local set = {}
  for _, value in ipairs(node.values) do
    set[value] = value
    if mode.text and type(value) == "number" then set[tostring(value)] = value end
  end
  return set
end

local function emit_literal(w, node, path)
  w:line("local known = %s[v]", w:constant(literal_set(node, w.mode)))
  w:test("known == nil", path, "one_of", w:expected(node))
  w:done("v = known")
end

-- ---- what a value may be ------------------------------------------------------------------------

--- May the value be null by its own rule?
local function takes_null(node)
  if node.kind == "scalar" then return node.type == "null" or node.type == "any" end
  if node.kind ~= "union" then return false end
  for _, alt in ipairs(node.alts) do
    if takes_null(alt) then return true end
  end
  return false
end

--- May it be an empty string? Else an empty text for an optional field is a field left empty.
local function takes_empty(node)
  if node.kind == "scalar" then return node.type == "string" or node.type == "any" end
  if node.kind == "call" or node.kind == "lazy" then return true end
  if node.kind ~= "union" then return false end
  for _, alt in ipairs(node.alts) do
    if takes_empty(alt) then return true end
  end
  return false
end

--- The alternatives beside null, and whether null is one.
local function without_null(node)
  local rest, null_too = {}, false
  for _, alt in ipairs(node.alts) do
    if alt.kind == "scalar" and alt.type == "null" then
      null_too = true
    else
      rest[#rest + 1] = alt
    end
  end
  return rest, null_too
end

local function emit_call(w, node, path)
  w:line("local value, inner = %s(v)", w:constant(compile(node, w.mode)))
  w:line("v = value")
  w:line("if inner then faults = nest(faults, inner, %s) end", path)
end

local function is_inline(node)
  return (node.kind == "scalar" or node.kind == "literal") and not node.check and not node.coerce
end

local emit

--- `T|null` is T behind a look at null; others are tried in turn by a function of their own.
local function emit_union(w, node, path)
  local rest, null_too = without_null(node)
  if #rest ~= 1 or not is_inline(rest[1]) then return emit_call(w, node, path) end
  if not null_too then return emit(w, rest[1], path) end
  w:line("if v ~= null then")
  w.union = node
  emit(w, rest[1], path)
  w.union = nil
  w:line("end")
end

--- Statements that check and convert the local v in place.
function emit(w, node, path)
  w:line("do")
  if node.check or node.coerce then
    emit_call(w, node, path)
  elseif node.kind == "scalar" then
    emit_scalar(w, node, path)
  elseif node.kind == "literal" then
    emit_literal(w, node, path)
  elseif node.kind == "union" then
    emit_union(w, node, path)
  else
    emit_call(w, node, path)
  end
  w:line("end")
end

-- ---- objects ------------------------------------------------------------------------------------

local function emit_missing(w, field, path, partial)
  local node = field.node
  if partial then return end
  if node.default ~= nil then
    local default = w:value(node.default)
    w:line(type(node.default) == "table" and "v = H.copy(%s)" or "v = %s", default)
  elseif not node.optional then
    w:fault(path, "required", "is required")
  end
end

--- Where a field's value is changed in place, one that is not there must not be set to nil: that makes room for it.
local function emit_field(w, field, partial)
  local node, name = field.node, quote(field.name)
  local path = quote(rule_faults.step(field.name))
  local optional = partial or node.optional or node.default ~= nil
  w:line("do local v = t[%s]", w.mode.folded and quote(field.name:lower()) or name)
  if w.mode.owned then w:line("local was = v") end
  if optional and not takes_null(node) then w:line("if v == null then v = nil end") end
  if optional and w.mode.text and not takes_empty(node) then w:line('if v == "" then v = nil end') end
  w:line("if v == nil then")
  emit_missing(w, field, path, partial)
  w:line("else")
  emit(w, node, path)
  w:line(w.mode.owned and "end if v ~= was then out[%s] = v end end" or "end out[%s] = v end", name)
end

local function names_of(fields)
  local names, set = {}, {}
  for i, field in ipairs(fields) do
    names[i], set[field.name] = field.name, true
  end
  return names, set
end

--- Fields that the rule does not name: refused, checked by the rule "*", or left behind.
local function emit_others(w, node)
  local names, set = names_of(node.fields)
  local known = w:constant(set)
  if node.others == "drop" or (node.others == nil and not w.mode.strict) then
    if w.mode.owned then w:line("for k in next, t do if not %s[k] then t[k] = nil end end", known) end
    return
  end
  if node.others == nil then
    w:line("local strange")
    w:line("for k in next, t do if not %s[k] then strange = strange or {} strange[#strange + 1] = k end end", known)
    w:line("if strange then faults = H.unknown(faults, strange, %s) end", w:constant(names))
    return
  end
  w:line("do local before = faults faults = nil")
  w:line("for k, v in next, t do if not %s[k] then", known)
  emit(w, node.others, "step(k)")
  w:line("out[k] = v end end")
  w:line("if faults then H.sort(faults) if before then faults = nest(before, faults, '') end")
  w:line("else faults = before end end")
end

local function emit_count(w, node)
  if node.min == nil and node.max == nil then return end
  local uncounted = w.mode.owned and node.others == nil -- the unknown are still there
  w:line("local n = H.count(out)%s", uncounted and " - (strange and #strange or 0)" or "")
  bounds(w, node, "n", '""', "field")
  w:done()
end

local function emit_object(w, node)
  w:line("return function(t)")
  if w.mode.numbered then w:line("t = H.keyed(t)") end
  w:line('if not H.is_object(t) then return t, add(nil, "", "type", %s) end', quote(rule_text.expected(node)))
  local places = {}
  for i, field in ipairs(node.fields) do places[i] = ("[%s] = nil"):format(quote(field.name)) end
  w:line("local faults, out = nil, %s", w.mode.owned and "t" or "{ " .. table.concat(places, ", ") .. " }")
  for _, field in ipairs(node.fields) do emit_field(w, field, node.partial) end
  emit_others(w, node)
  emit_count(w, node)
  if node.order then
    w:line("return H.object(out, %s), faults end", w:constant(node.order))
  else
    w:line("return setmetatable(out, object_mark), faults end")
  end
end

-- ---- arrays -------------------------------------------------------------------------------------

--- Are the items any values at all, so that nobody need look at them?
local function is_any(node) return node.kind == "scalar" and node.type == "any" and not node.check end

local function emit_items(w, node)
  w:line("local out = setmetatable(%s, array_mark)", w.mode.owned and "t" or "new_table(n, 0)")
  w:line("for i = 1, n do local v = t[i]")
  emit(w, node.item, '"/" .. i - 1')
  w:line("out[i] = v")
  w:line(w.mode.whole and "end" or "if faults and #faults >= %d then break end end", rule_faults.COUNT_MAX)
end

local function emit_array(w, node)
  w:line("return function(t)")
  if w.mode.listed then w:line('if type(t) == "string" then t = H.list(t) end') end
  if w.mode.text then
    local alone = node.item.type == "file" and 'type(t) ~= "table" or type(t.size) == "number"' or 'type(t) ~= "table"'
    w:line("if %s then t = { t } end", alone)
    if w.mode.numbered then w:line("t = H.rows(t)") end
  end
  w:line('if not H.is_array(t) then return t, add(nil, "", "type", %s) end', quote(rule_text.expected(node)))
  w:line("local faults, n = nil, #t")
  bounds(w, node, "n", '""', "item")
  w:done()
  -- Too many are not looked at one by one: the bound is there to save that work.
  if node.max and not w.mode.whole then w:line("if n > %s then return t, faults end", w:value(node.max)) end
  if is_any(node.item) then w:line("local out = t") else emit_items(w, node) end
  if node.unique then w:line("faults = H.check_unique(faults, out)") end
  w:line("return out, faults end")
end

-- ---- the rest -----------------------------------------------------------------------------------

local function emit_inline(w, node)
  w:line("return function(v)")
  w:line("local faults")
  emit(w, node, '""')
  w:line("return v, faults end")
end

--- A union of several: the first alternative that finds no fault.
local function union_checker(node, mode)
  local rest, null_too = without_null(node)
  local checks = {}
  for i, alt in ipairs(rest) do checks[i] = compile(alt, copying(mode)) end
  local mismatch = rule_text.mismatch(node)
  return function(v)
    if null_too and v == json.null then return v end
    return rule_values.first_of(v, checks, mismatch, mode.whole)
  end
end

--- What stands behind a lazy rule is asked for at the first value.
local function lazy_checker(node, mode)
  local check
  return function(v)
    check = check or compile(node.resolve(), mode)
    return check(v)
  end
end

local function call_checker(node)
  local fn = node.fn
  return function(v) return rule_values.call(fn, v) end
end

--- Runs a schema's own `check` once the value is right by all else.
local function with_check(inner, check)
  return function(v)
    local value, faults = inner(v)
    if faults then return value, faults end
    return rule_values.call(check, value)
  end
end

local CHECKERS = { union = union_checker, lazy = lazy_checker, call = call_checker }
local EMITTERS = { object = emit_object, array = emit_array, scalar = emit_inline, literal = emit_inline }

local function build(node, mode)
  if CHECKERS[node.kind] then return CHECKERS[node.kind](node, mode) end
  local w = new_writer(mode)
  EMITTERS[node.kind](w, node)
  return w:load(node.name or node.kind)
end

--- NODE without what wraps it: its own check, the order to convert.
local function bare(node)
  local copy = {}
  for key, value in pairs(node) do copy[key] = value end
  copy.check, copy.coerce = nil, nil
  return copy
end

local function wrap(node, mode)
  if not node.check and not node.coerce then return build(node, mode) end
  local inner = build(bare(node), node.coerce and mode.as_text or mode)
  return node.check and with_check(inner, node.check) or inner
end

local memo = setmetatable({}, { __mode = "k" })

--- The function that checks by NODE. Made once for each node and mode.
---@param node table
---@param mode srv.RuleMode
---@return fun(v: any): any, srv.Fault[]?
function compile(node, mode)
  local of_node = memo[node]
  if not of_node then
    of_node = {}
    memo[node] = of_node
  end
  of_node[mode] = of_node[mode] or wrap(node, mode)
  return of_node[mode]
end

rule_code.compile = compile

return rule_code
