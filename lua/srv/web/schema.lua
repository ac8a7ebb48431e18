--- srv.schema (API, section 6): rules as values that check, convert and describe themselves.
---
--- The rules' language and the code made of it are in srv.base.rule; here is what an app and the
--- router hold in their hands.
local errors = require "srv.base.errors"
local json = require "srv.core.json"
local options = require "srv.base.options"
local rule = require "srv.base.rule"
local rule_faults = require "srv.base.rule_faults"
local rule_values = require "srv.base.rule_values"
local openapi = require "srv.web.schema_openapi"

---@class srv.Schema
---@field package node srv.RuleNode
local Schema = rule.Schema

local schema = {}

local function new(node) return setmetatable({ node = node }, Schema) end

--- A mistake of the app. LEVELs here are error()'s, seen from the function that gets one; 0 tells
--- no place.
local function misuse(level, message, ...)
  error("srv.schema: " .. message:format(...), level > 0 and level + 1 or 0)
end

-- ---- options of a schema ------------------------------------------------------------------------

local OPTIONS = {
  optional = "boolean", default = "any", min = "number", max = "number", unique = "boolean",
  check = "function", coerce = "boolean", partial = "boolean", order = "table",
  name = "string", description = "string",
}

local function shallow_copy(node)
  local copy = {}
  for key, value in pairs(node) do copy[key] = value end
  return copy
end

--- NODE's fields, those that ORDER names first.
local function fields_in_order(fields, order, level)
  local by_name, sorted = {}, {}
  for _, field in ipairs(fields) do by_name[field.name] = field end
  for _, name in ipairs(order) do
    if not by_name[name] then misuse(level, "order names %q, which is no field", tostring(name)) end
    sorted[#sorted + 1], by_name[name] = by_name[name], nil
  end
  for _, field in ipairs(fields) do
    if by_name[field.name] then sorted[#sorted + 1] = field end
  end
  return sorted
end

local function require_kind(node, option, kinds, level)
  if not kinds[node.kind] then
    misuse(level, "%q is for %s", option, kinds.object and kinds.array and "objects and arrays"
      or kinds.object and "objects" or "arrays")
  end
end

local function check_counts(given, level)
  for _, bound in ipairs { "min", "max" } do
    local count = given[bound]
    if count and (count < 0 or count % 1 ~= 0) then misuse(level, "%q is a whole number from 0 on, not %.17g", bound, count) end
  end
  if given.min and given.max and given.min > given.max then misuse(level, '"min" is more than "max"') end
end

local OBJECT, ARRAY, EITHER = { object = true }, { array = true }, { object = true, array = true }
local KINDS_OF = { min = EITHER, max = EITHER, unique = ARRAY, partial = OBJECT, order = OBJECT }

local function apply_default(node, value, level)
  local ok, raised = pcall(rule.set_default, node, value)
  if ok then return end
  misuse(level, "%s", type(raised) == "table" and raised.message or tostring(raised))
end

--- A copy of NODE with OPTS laid over it. The name stays behind: it belongs to the original.
local function changed(node, opts, level)
  local given = options.check("srv.schema", opts, OPTIONS, level + 1)
  local copy = shallow_copy(node)
  copy.name = nil
  check_counts(given, level + 1)
  for option, value in pairs(given) do
    if KINDS_OF[option] then require_kind(node, option, KINDS_OF[option], level + 1) end
    if option ~= "default" then copy[option] = value end
  end
  if given.order then
    copy.fields = fields_in_order(node.fields, given.order, level + 1)
    copy.order = rule.names_of(copy.fields)
  end
  if given.name and not given.name:find("^[%w._-]+$") then
    misuse(level, "a name is made of letters, digits, . _ and -, not %q", given.name)
  end
  if given.default ~= nil then apply_default(copy, given.default, level + 1) end
  return copy
end

local function create(given, opts, level)
  local node, message = rule.tree(given)
  if not node then misuse(level, "%s", message) end
  if opts ~= nil then node = changed(node, opts, level + 1) end
  return new(node)
end

--- A schema of a rule: string, `{ field = rule }`, `{ rule }`, function, or a schema, of which it
--- makes a changed copy. Mistakes in the rule are raised here, at start, on the caller's line.
---@param given any
---@param opts table?
---@return srv.Schema
function schema.new(given, opts) return (create(given, opts, 3)) end -- no tail call: levels count frames

--- The first of the rules that fits counts.
---@param ... any  rules
---@return srv.Schema
function schema.any_of(...)
  local alts = {}
  for i = 1, select("#", ...) do alts[i] = create((select(i, ...)), nil, 3).node end
  if #alts == 0 then misuse(2, "any_of wants rules") end
  return new({ kind = "union", alts = alts })
end

--- A rule that names itself or what comes later: FN gives it when the first value is checked.
---@param fn fun(): any
---@return srv.Schema
function schema.lazy(fn)
  if type(fn) ~= "function" then misuse(2, "lazy wants a function that returns a rule") end
  local node
  local function resolve()
    if node then return node end
    node = create(fn(), nil, 2).node
    local behind = node
    while behind.kind == "lazy" do
      if behind.resolve == resolve then
        node = nil
        misuse(0, "a lazy rule stands for itself: it must lead to another")
      end
      behind = behind.resolve()
    end
    return node
  end
  return new({ kind = "lazy", resolve = resolve })
end

--- Any rule as a schema; for the router.
---@param given any
---@param level integer  as error()'s, seen from here; 0: messages tell no place
---@return srv.Schema
function schema.of(given, level)
  if rule.is_schema(given) then return given end
  return (create(given, nil, level > 0 and level + 1 or 0))
end

schema.options = rule.options

-- ---- checking -----------------------------------------------------------------------------------

--- The error for FAULTS: 400 `invalid`, all of them in `errors`.
---@param faults srv.Fault[]
---@return srv.Error
function schema.invalid(faults)
  local part = faults[1]["in"] or "value"
  local message = rule_faults.summary(faults, "the " .. part)
  if faults[1].path ~= "" then
    message = ("the %s %s not valid: %s"):format(part, part:sub(-1) == "s" and "are" or "is", message)
  end
  return errors.coded("invalid", message, { errors = json.array(faults) })
end

local function check_as(self, mode, value)
  local checked, faults = rule.compile(self.node, mode)(value)
  if faults then return nil, schema.invalid(faults) end
  return checked
end

--- A missing value becomes the default, is fine if optional, else `required`.
local function missing(node)
  if node.default ~= nil then return rule_values.copy(node.default) end
  if node.optional then return nil end
  return nil, rule_faults.add(nil, "", "required", "is required")
end

local SOURCES = { json = rule.MODES.json, text = rule.MODES.text }

--- Checks and converts V. With source "text" its strings become what the rules want, and fields
--- that are unknown are left behind instead of refused.
---@param v any
---@param opts { source?: "json"|"text" }?
---@return any value
---@return srv.Error? err  400 `invalid`
function Schema:check(v, opts)
  local source = opts and options.check("schema:check", opts, { source = "json|text" }).source or "json"
  if v == nil then
    local value, faults = missing(self.node)
    return value, faults and schema.invalid(faults)
  end
  return check_as(self, SOURCES[source], v)
end

--- Parses TEXT as JSON and checks it.
---@param text string
---@return any value
---@return srv.Error? err  400 `bad_json` or `invalid`
function Schema:decode(text)
  local value, err = json.decode(text)
  if value == nil then return nil, err end
  return check_as(self, rule.MODES.body, value)
end

local PART_MODES = {
  body = rule.MODES.body, form = rule.MODES.form,
  params = rule.MODES.params, query = rule.MODES.text, headers = rule.MODES.headers, cookies = rule.MODES.text,
}

--- For the router: a function that checks one part of a request, made at start. Faults name the
--- part; schema.invalid() makes an error of those of all parts.
---@param part "body"|"form"|"params"|"query"|"headers"|"cookies"  "form": a body of text
---@return fun(v: any): any, srv.Fault[]?
function Schema:checker(part)
  local node = self.node
  local check = rule.compile(node, PART_MODES[part])
  local named = part == "form" and "body" or part
  return function(v)
    local value, faults
    if v == nil then
      value, faults = missing(node)
    else
      value, faults = check(v)
    end
    if faults then
      for _, fault in ipairs(faults) do fault["in"] = named end
    end
    return value, faults
  end
end

--- For the router: a function that brings an answer into the schema's form. It always gives the
--- value, built as far as it goes, without fields that are not declared; FAULTS tell what is
--- missing or wrong, and with NOTE_DROPPED also the fields that were left out (`unknown`).
---@param note_dropped boolean
---@return fun(v: any): any, srv.Fault[]?
function Schema:answerer(note_dropped)
  return rule.compile(self.node, note_dropped and rule.MODES.noted_answer or rule.MODES.answer)
end

--- Has it a `file` somewhere, so that only multipart can bring it?
---@return boolean
function Schema:wants_file() return rule.any_node(self.node, function(node) return node.type == "file" end) end

--- As JSON Schema 2020-12, which OpenAPI 3.1 uses. Named schemas go to COMPONENTS, if it is given,
--- and are referred to; else they stand where they are used.
---@param components table<string, table>?
---@return table
function Schema:openapi(components) return openapi.convert(self.node, components) end

--- For a page of the whole app: this schema as a part of a request, its named parts in COLLECTION.
---@param collection srv.OpenapiContext
---@param by_field boolean?  an object's fields one by one
---@return srv.OpenapiPart
function Schema:openapi_part(collection, by_field) return openapi.part(self.node, collection, by_field) end

return setmetatable(schema, { __call = function(_, given, opts) return (create(given, opts, 3)) end })
