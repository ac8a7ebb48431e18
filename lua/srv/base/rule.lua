--- Rules (API, section 6): a string, `{ field = rule }`, `{ rule }`, a function or a schema becomes
--- a tree of nodes, and a tree becomes a function that checks.
---
---   rule_parse   strings to nodes          rule_code    nodes to Lua code
---   types        what the types are        rule_values  what that code calls
---   formats      email, url, date, ...     rule_text    messages
---   pattern      Lua patterns, read        rule_faults  lists of faults
local json = require "srv.core.json"
local rule_code = require "srv.base.rule_code"
local rule_parse = require "srv.base.rule_parse"
local suggest = require "srv.base.suggest"

local rule = {}

-- Of tables in a rule. Deeper is a table that holds itself.
local DEPTH_MAX = 100

---@class srv.RuleNode
---@field kind "scalar"|"literal"|"array"|"object"|"union"|"call"|"lazy"
---@field type? string            scalar: a name from types.lua
---@field values? any[]           literal
---@field item? srv.RuleNode      array
---@field alts? srv.RuleNode[]    union
---@field fields? { name: string, node: srv.RuleNode }[]  object, in order
---@field others? srv.RuleNode|"drop"  object: what "*" says
---@field fn? function            call
---@field resolve? fun(): srv.RuleNode  lazy
---@field min? number|string      bound of the value, its length or its count
---@field max? number|string
---@field min_open? boolean       is the bound itself outside
---@field max_open? boolean
---@field unique? boolean         array
---@field pattern? { text: string, whole: string, regex: string? }
---@field optional? boolean       as a field it may be missing
---@field default? any            what a missing field becomes
---@field description? string
---@field check? function         runs last
---@field coerce? boolean         convert text in JSON too
---@field partial? boolean        object: all fields optional, no defaults
---@field order? string[]         object
---@field name? string            component of OpenAPI

-- A schema (srv.web.schema) is a table with this metatable, and keeps its tree in `node`.
local Schema = { __name = "srv.Schema" }
Schema.__index = Schema
rule.Schema = Schema

---@param v any
---@return boolean
function rule.is_schema(v) return getmetatable(v) == Schema end

local function fail(message, ...) error({ message = message:format(...) }, 0) end

-- ---- defaults -----------------------------------------------------------------------------------

--- VALUE as NODE's default, converted, and the faults if it does not fit. A schema's own check is
--- not asked: it may wait, and nothing waits here.
local function fitting(node, value)
  if node.kind == "call" or node.kind == "lazy" or node.check then return value end
  return rule_code.compile(node, rule_code.MODES.json)(value)
end

local function no_fit(shown, faults) fail("the default %s does not fit: it %s", shown, faults[1].message) end

--- Defaults are JSON if that fits, else text.
local function default_from_text(node, text)
  local decoded = json.decode(text)
  local as_json, as_json_faults
  if decoded ~= nil then
    as_json, as_json_faults = fitting(node, decoded)
    if not as_json_faults then return as_json end
  end
  local as_text, as_text_faults = fitting(node, text)
  if as_text_faults then no_fit(text, as_json_faults or as_text_faults) end
  return as_text
end

--- Gives NODE the default VALUE, of Lua.
---@param node srv.RuleNode
---@param value any
function rule.set_default(node, value)
  local fitted, faults = fitting(node, value)
  if faults then no_fit(tostring(value), faults) end
  node.default = fitted
end

-- ---- trees --------------------------------------------------------------------------------------

local tree

local function from_string(text)
  local node, message = rule_parse.parse(text)
  if not node then fail("%s", message) end
  if node.default_text then node.default, node.default_text = default_from_text(node, node.default_text), nil end
  return node
end

local function sorted_names(given)
  local names = {}
  for name in pairs(given) do
    if type(name) ~= "string" then fail("a field's name must be a string, not %s", tostring(name)) end
    if name ~= "*" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

--- The tree of GIVEN, faults in it told with the field they are in.
local function tree_of_field(name, given, depth)
  local ok, node = pcall(tree, given, depth)
  if ok then return node end
  if type(node) ~= "table" or node.whole then error(node, 0) end
  fail("field %q: %s", name, node.message)
end

local function from_fields(given, depth)
  local node = { kind = "object", fields = {} }
  for i, name in ipairs(sorted_names(given)) do
    node.fields[i] = { name = name, node = tree_of_field(name, given[name], depth + 1) }
  end
  local others = given["*"]
  node.others = others ~= nil and others ~= "drop" and tree_of_field("*", others, depth + 1) or others
  return node
end

local function from_table(given, depth)
  if depth > DEPTH_MAX then
    error({ whole = true, message = "a rule holds itself (srv.schema.lazy names what comes later), or is nested too deeply" }, 0)
  end
  if given[1] == nil then return from_fields(given, depth) end
  if next(given, next(given)) ~= nil then fail("a table is { rule } for an array or { field = rule }, not both") end
  return { kind = "array", item = tree(given[1], depth + 1) }
end

--- The tree of any rule. Raises { message = ... } where it is wrong; with `whole` the message is not to be added to.
function tree(given, depth)
  if rule.is_schema(given) then return given.node end
  if type(given) == "string" then return from_string(given) end
  if type(given) == "table" then return from_table(given, depth) end
  if type(given) == "function" then return { kind = "call", fn = given } end
  fail("a rule is a string, a table, a function or a schema, not %s", tostring(given))
end

--- The tree of a rule.
---@param given any
---@return srv.RuleNode? node
---@return string? message  what is wrong with the rule
function rule.tree(given)
  local ok, node = pcall(tree, given, 1)
  if ok then return node end
  if type(node) == "table" and node.message then return nil, node.message end
  error(node, 0)
end

rule.compile = rule_code.compile
rule.MODES = rule_code.MODES

---@param fields { name: string }[]
---@return string[]
function rule.names_of(fields)
  local names = {}
  for i, field in ipairs(fields) do names[i] = field.name end
  return names
end

--- Does WANTED(node) hold for NODE or one beneath it? What is lazy is not entered.
---@param node srv.RuleNode
---@param wanted fun(node: srv.RuleNode): boolean
---@return boolean
function rule.any_node(node, wanted)
  if wanted(node) then return true end
  if node.item and rule.any_node(node.item, wanted) then return true end
  for _, alt in ipairs(node.alts or {}) do
    if rule.any_node(alt, wanted) then return true end
  end
  for _, field in ipairs(node.fields or {}) do
    if rule.any_node(field.node, wanted) then return true end
  end
  return type(node.others) == "table" and rule.any_node(node.others, wanted)
end

-- ---- options by rules ---------------------------------------------------------------------------

local function read_rules(where, rules, level)
  local copy = {}
  for name, given in pairs(rules) do copy[name] = given == true and "any?" or given end
  local node, message = rule.tree(copy)
  if not node then error(where .. ": " .. message, level) end
  return node
end

--- srv.options(): what a plugin was given, checked by rules of section 6, defaults filled in.
---
---     opts = rule.options("stamp", opts, { header = "string = X-Stamp", ttl = "duration?", fn = true })
---
--- `true` stands for anything. Raises, blamed on the caller of the function that calls this.
---@param where string            begins messages: "stamp"
---@param given table?
---@param rules table<string, any>
---@param level integer?          as error()'s, seen from here; 3 blames the caller's caller
---@return table
function rule.options(where, given, rules, level)
  level = level or 3
  local node = read_rules(where, rules, level + 1)
  if given ~= nil and type(given) ~= "table" then
    error(("%s: options are a table, not %s"):format(where, tostring(given)), level)
  end
  local value, faults = rule.compile(node, rule.MODES.json)(given or {})
  if not faults then return value end
  local first = faults[1]
  local name = first.path:sub(2)
  if first.code == "unknown" and not name:find("/", 1, true) then
    error(('%s: unknown option "%s"%s'):format(where, name, suggest.hint(name, rule.names_of(node.fields))), level)
  end
  error(('%s: option "%s" %s'):format(where, name, first.message), level)
end

return rule
