--- Rules as JSON Schema 2020-12, the dialect of OpenAPI 3.1.
local json = require "srv.core.json"
local types = require "srv.base.types"

local schema_openapi = {}

---@class srv.OpenapiContext
---@field components table<string, table>  named schemas
---@field prefix string                    of a reference to them
---@field names table<table, string>       nodes that have a component
---@field keep boolean                     do named nodes go there (else only recursive ones)
---@field owners table<string, table>      the node that a component was made of
---@field busy table<table, boolean>       nodes on the way from the root, to see recursion

local convert

local function copy(t)
  local out = {}
  for key, value in pairs(t) do out[key] = value end
  return out
end

local BOUNDS = {
  number = { min = "minimum", max = "maximum", min_open = "exclusiveMinimum", max_open = "exclusiveMaximum" },
  text = { min = "minLength", max = "maxLength" },
  array = { min = "minItems", max = "maxItems" },
  object = { min = "minProperties", max = "maxProperties" },
}

local function add_bounds(out, node, names)
  if not names then return end
  for _, bound in ipairs { "min", "max" } do
    local name = node[bound .. "_open"] and names[bound .. "_open"] or names[bound]
    -- A bigint's bounds are digits; JSON Schema compares numbers only.
    if type(node[bound]) == "number" then out[name] = node[bound] end
  end
end

--- A rule's own pattern, beside that of its type.
local function add_pattern(out, regex)
  if not regex then return end
  if out.pattern then
    out.allOf = json.array { json.object { pattern = regex } }
  else
    out.pattern = regex
  end
end

local function from_scalar(node)
  local kind = types.get(node.type)
  local out = copy(kind.openapi)
  add_bounds(out, node, BOUNDS[kind.family])
  add_pattern(out, node.pattern and node.pattern.regex)
  if node.media then out.contentMediaType = node.media[1] end
  return out
end

local function type_of(value)
  if value == json.null then return "null" end
  return type(value) == "number" and (value % 1 == 0 and "integer" or "number") or type(value)
end

local function from_literal(node)
  local kind
  for _, value in ipairs(node.values) do
    if kind and kind ~= type_of(value) then return { enum = json.array(copy(node.values)) } end
    kind = type_of(value)
  end
  return { type = kind, enum = json.array(copy(node.values)) }
end

local function from_array(node, context)
  local out = { type = "array", items = json.object(convert(node.item, context)) }
  add_bounds(out, node, BOUNDS.array)
  out.uniqueItems = node.unique or nil
  return out
end

local function from_object(node, context)
  local out = { type = "object", additionalProperties = false }
  local properties, required, names = {}, {}, {}
  for i, field in ipairs(node.fields) do
    properties[field.name], names[i] = json.object(convert(field.node, context)), field.name
    local may_miss = node.partial or field.node.optional or field.node.default ~= nil
    if not may_miss then required[#required + 1] = field.name end
    if node.partial then properties[field.name].default = nil end
  end
  if #names > 0 then out.properties = json.object(properties, names) end
  if #required > 0 then out.required = json.array(required) end
  if node.others == "drop" then
    out.additionalProperties = nil
  elseif node.others then
    out.additionalProperties = json.object(convert(node.others, context))
  end
  add_bounds(out, node, BOUNDS.object)
  return out
end

--- `T|null` is a list of types where T has one; with an enum null must be among its values too.
local function nullable(out)
  if type(out.type) ~= "string" or out["$ref"] or out.anyOf then return nil end
  out.type = json.array({ out.type, "null" })
  if out.enum then table.insert(out.enum, json.null) end
  return out
end

local function from_union(node, context)
  local rest, null_too, converted = {}, false, {}
  for _, alt in ipairs(node.alts) do
    if alt.type == "null" then null_too = true else rest[#rest + 1] = alt end
  end
  for i, alt in ipairs(rest) do converted[i] = json.object(convert(alt, context)) end
  if null_too and #rest == 1 then
    local out = nullable(converted[1])
    if out then return out end
  end
  if null_too then table.insert(converted, { type = "null" }) end
  return { anyOf = json.array(converted) }
end

local CONVERT = {
  scalar = from_scalar, literal = from_literal, array = from_array, object = from_object,
  union = from_union, call = function() return {} end,
}

--- "Article", "Article2" ...; what has no name begins with "Schema1".
local function numbered(node, number)
  if number == 1 and node.name then return node.name end
  return (node.name or "Schema") .. number
end

--- A name that no other node has.
local function claim_name(node, context)
  local number = 1
  while context.owners[numbered(node, number)] do number = number + 1 end
  local name = numbered(node, number)
  context.owners[name] = node
  return name
end

--- A schema that was made twice is one component: its earlier name, if OUT says the same.
local function earlier_name(node, context, name, out)
  if not node.name then return name end
  local number = 1
  while numbered(node, number) ~= name do
    local earlier = numbered(node, number)
    local there = context.components[earlier]
    if there and json.encode(there) == json.encode(out) then return earlier end
    number = number + 1
  end
  return name
end

local function describe(out, node)
  out.description = node.description or out.description
  if node.default ~= nil and not out["$ref"] then out.default = node.default end
  return out
end

--- NODE as it stands, into a component if it has or gets a name.
local function expand(node, context)
  if context.keep and node.name then context.names[node] = claim_name(node, context) end
  context.busy[node] = true
  local out = CONVERT[node.kind](node, context)
  context.busy[node] = nil
  local name = context.names[node]
  if not name then return out end
  out = json.object(out)
  local chosen = earlier_name(node, context, name, out)
  if chosen ~= name then context.owners[name], context.names[node] = nil, chosen end
  context.components[chosen] = out
  return { ["$ref"] = context.prefix .. chosen }
end

function convert(node, context)
  if node.kind == "lazy" then return describe(convert(node.resolve(), context), node) end
  if context.busy[node] and not context.names[node] then context.names[node] = claim_name(node, context) end
  local name = context.names[node]
  if name and (context.busy[node] or context.components[name]) then
    return describe({ ["$ref"] = context.prefix .. name }, node)
  end
  return describe(expand(node, context), node)
end

--- What several schemas have in common: their components, each under a name of its own.
---@param components table<string, table>?
---@return srv.OpenapiContext
function schema_openapi.collection(components)
  return {
    components = components or {}, keep = true, prefix = "#/components/schemas/", names = {}, owners = {}, busy = {},
  }
end

local function of_one_schema()
  return { components = {}, keep = false, prefix = "#/$defs/", names = {}, owners = {}, busy = {} }
end

--- NODE as JSON Schema. With COMPONENTS its named parts are put there and referred to as OpenAPI
--- does; without, only what refers to itself is, under `$defs`.
---@param node srv.RuleNode
---@param components table<string, table>?
---@return table
function schema_openapi.convert(node, components)
  local context = components and schema_openapi.collection(components) or of_one_schema()
  local out = convert(node, context)
  if not components and next(context.components) then out["$defs"] = json.object(context.components) end
  return json.object(out)
end

---@class srv.OpenapiPart
---@field schema table
---@field required boolean
---@field fields { name: string, schema: table, required: boolean }[]?  an object's
---@field others table?   an object's: what fields of other names are

local function is_required(node) return not node.optional and node.default == nil end

--- NODE as a part of a request: as a whole, or an object's fields one by one, for parameters.
---@param node srv.RuleNode
---@param collection srv.OpenapiContext
---@param by_field boolean?
---@return srv.OpenapiPart
function schema_openapi.part(node, collection, by_field)
  if node.kind == "lazy" then return schema_openapi.part(node.resolve(), collection, by_field) end
  if not by_field or node.kind ~= "object" then
    return { schema = json.object(convert(node, collection)), required = is_required(node) }
  end
  local part = { fields = {}, required = is_required(node) }
  for i, field in ipairs(node.fields) do
    part.fields[i] = {
      name = field.name, schema = json.object(convert(field.node, collection)),
      required = not node.partial and is_required(node) and is_required(field.node),
    }
  end
  if type(node.others) == "table" then part.others = json.object(convert(node.others, collection)) end
  return part
end

return schema_openapi
