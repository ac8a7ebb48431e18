--- The description of an app in OpenAPI 3.1: made of its compiled routes.
local json = require "srv.core.json"
local openapi_path = require "srv.plugins.openapi_path"
local openapi_responses = require "srv.plugins.openapi_responses"
local openapi_security = require "srv.plugins.openapi_security"
local schema = require "srv.web.schema"
local schema_openapi = require "srv.web.schema_openapi"

local openapi_document = {}

--- OpenAPI has no place for other methods. HEAD and OPTIONS are answered everywhere, so only those that a route
--- names are told of; `all` stands for the five that clients use.
local METHODS = {
  GET = "get", PUT = "put", POST = "post", DELETE = "delete", OPTIONS = "options", HEAD = "head", PATCH = "patch",
  TRACE = "trace",
}
local ALL = { "GET", "PUT", "POST", "DELETE", "PATCH" }

local MEDIA = {
  json = "application/json", form = "application/x-www-form-urlencoded", multipart = "multipart/form-data",
}

---@class srv.OpenapiDraft
---@field paths table<string, table>      path items by template
---@field shapes table<string, srv.OpenapiPath>  the path that a shape was first told of as
---@field collection srv.OpenapiContext
---@field responses srv.OpenapiResponses
---@field security srv.OpenapiSecurity
---@field tags string[]                   in the order of the routes
---@field ids table<string, boolean>      operationIds that are taken

-- Parameters ----------------------------------------------------------------------------------------------

--- A description stands with the parameter rather than in its schema.
local function parameter(place, name, given, required)
  local out = { name = name, ["in"] = place, schema = given, required = required or nil }
  if type(given.description) == "string" and not given["$ref"] then
    local bare = {}
    for key, value in pairs(given) do
      if key ~= "description" then bare[key] = value end
    end
    out.description, out.schema = given.description, json.object(bare)
  end
  return out
end

local function fields_of(part, collection)
  return part and schema.of(part, 0):openapi_part(collection, true)
end

local function find_field(part, name)
  for _, field in ipairs(part and part.fields or {}) do
    if field.name == name then return field end
  end
end

local function add_path_params(list, path, names, given)
  for i, param in ipairs(path.params) do
    local field = find_field(given, param.own_name)
    local out = parameter("path", names[i].name, field and field.schema or param.schema, true)
    if param.is_rest then
      out.description = out.description or "The rest of the path; it may hold slashes."
      out["x-srv-rest"] = true
    end
    list[#list + 1] = json.object(out)
  end
end

--- OpenAPI says these by other means, and ignores parameters of their names.
local NOT_A_PARAMETER = { accept = true, ["content-type"] = true, authorization = true }

--- Fields of a query that have no names beforehand, or come in alternatives: one parameter that is spread.
local function add_map(list, given)
  local spread = given.schema or given.others and json.object { type = "object", additionalProperties = given.others }
  if not spread then return end
  list[#list + 1] = json.object {
    name = given.schema and "query" or "others", ["in"] = "query", style = "form", explode = true, schema = spread,
    description = given.others and "Fields of other names." or nil, ["x-srv-map"] = true,
  }
end

local function add_params(list, place, part, collection)
  local given = fields_of(part, collection)
  if not given then return end
  for _, field in ipairs(given.fields or {}) do
    local name = place == "header" and field.name:lower() or field.name
    if not (place == "header" and NOT_A_PARAMETER[name]) then
      list[#list + 1] = json.object(parameter(place, name, field.schema, field.required))
    end
  end
  if place == "query" then add_map(list, given) end
end

local function parameters_of(opts, path, names, collection)
  local list = {}
  add_path_params(list, path, names, fields_of(opts.params, collection))
  add_params(list, "query", opts.query, collection)
  add_params(list, "header", opts.headers, collection)
  add_params(list, "cookie", opts.cookies, collection)
  return #list > 0 and json.array(list) or nil
end

-- Bodies --------------------------------------------------------------------------------------------------

local REF = "^#/components/schemas/(.+)$"

local function resolved(given, collection)
  local name = given["$ref"] and given["$ref"]:match(REF)
  return name and collection.components[name] or given
end

--- How a form writes fields that are tables: `author[name]`. Without a word OpenAPI takes them for JSON.
local function encoding_of(given, collection)
  local encoding = {}
  for name, property in pairs(resolved(given, collection).properties or {}) do
    if resolved(property, collection).type == "object" then
      encoding[name] = json.object { style = "deepObject", explode = true }
    end
  end
  return next(encoding) and json.object(encoding) or nil
end

local function body_of(opts, collection)
  if not opts.body then return nil end
  local made = schema.of(opts.body, 0)
  local part, content = made:openapi_part(collection), {}
  for _, kind in ipairs(opts.consumes or made:wants_file() and { "multipart" } or { "json", "form" }) do
    local encoding = kind ~= "json" and encoding_of(part.schema, collection) or nil
    if MEDIA[kind] then content[MEDIA[kind]] = json.object { schema = part.schema, encoding = encoding } end
  end
  return json.object { content = json.object(content), required = part.required or nil }
end

-- Operations ----------------------------------------------------------------------------------------------

local function free_id(draft, wanted)
  local id, number = wanted, 2
  while draft.ids[id] do id, number = wanted .. number, number + 1 end
  draft.ids[id] = true
  return id
end

--- The route's name, or "get_news_id".
local function id_of(draft, route, method, path)
  local name = route.options.name
  if not name then name = method .. path.template:gsub("%%%x%x", ""):gsub("[^%w]+", "_"):gsub("_$", "") end
  return free_id(draft, name)
end

local function tags_of(draft, tags)
  if not tags or #tags == 0 then return nil end
  local list = {}
  for i, tag in ipairs(tags) do
    list[i] = tostring(tag)
    if not draft.tags[list[i]] then
      draft.tags[#draft.tags + 1], draft.tags[list[i]] = list[i], true
    end
  end
  return json.array(list)
end

local function has_own_errors(scope)
  while scope do
    if #scope.router.declared.error_handlers > 0 then return true end
    scope = scope.parent
  end
  return false
end

--- Which errors a client should expect besides those that the route declares.
local function errors_of(opts, path, needs_user)
  local checks = opts.params or opts.query or opts.headers or opts.cookies or opts.body
  local list = {}
  if checks then list[#list + 1] = 400 end
  if needs_user then list[#list + 1] = 401 end
  if #path.params > 0 then list[#list + 1] = 404 end
  if opts.body then
    list[#list + 1] = 413
    list[#list + 1] = 415
  end
  return list
end

local function operation_of(draft, route, method, path, names)
  local opts = route.options
  local security = openapi_security.of_route(draft.security, route)
  local operation = {
    operationId = id_of(draft, route, method, path), summary = opts.summary, description = opts.description,
    tags = tags_of(draft, opts.tags), deprecated = opts.deprecated or nil,
    parameters = parameters_of(opts, path, names, draft.collection),
    requestBody = body_of(opts, draft.collection),
    security = security,
    responses = openapi_responses.of_route(draft.responses, opts.response, errors_of(opts, path, security),
      has_own_errors(route.scope)),
  }
  local host = route.settings.host
  if host then operation.servers = json.array { openapi_path.server(host) } end
  return json.object(operation)
end

--- A second operation that OpenAPI has no place for: the same method and path, told apart by types or hosts, which
--- OpenAPI does not look at. The first tells of it.
local function note_another(operation, route, method)
  local host = route.settings.host
  local line = ("Also `%s %s%s`"):format(method:upper(), host and host .. " " or "", route.path)
  local summary = route.options.summary
  line = line .. (summary and ": " .. summary or ".")
  operation.description = operation.description and operation.description .. "\n\n" .. line or line
end

local function add_operation(draft, route, method, path)
  local known = draft.shapes[path.shape]
  if not known then
    known, draft.shapes[path.shape] = path, path
    draft.paths[path.template] = json.object {}
  end
  local item = draft.paths[known.template]
  if not item[method] then
    item[method] = operation_of(draft, route, method, path, known.params)
  elseif not route.options.fallback then
    note_another(item[method], route, method)
  end
end

local function methods_of(route)
  if route.methods[1] == "*" then return ALL end
  return route.methods
end

local function add_route(draft, route)
  local methods, paths = methods_of(route), openapi_path.paths(route.path)
  for _, path in ipairs(paths) do
    for _, name in ipairs(methods) do
      if METHODS[name] then add_operation(draft, route, METHODS[name], path) end
    end
  end
end

-- The document --------------------------------------------------------------------------------------------

local function is_beneath(scope, router)
  while scope and scope.router ~= router do scope = scope.parent end
  return scope ~= nil
end

local function tag_objects(tags)
  local list = {}
  for i, name in ipairs(tags) do list[i] = json.object { name = name } end
  return #list > 0 and json.array(list) or nil
end

local function new_draft()
  local collection = schema_openapi.collection()
  return {
    paths = {}, shapes = {}, collection = collection, responses = openapi_responses.new(collection),
    security = openapi_security.new(), tags = {}, ids = {},
  }
end

local function components_of(draft)
  local components = {
    responses = openapi_responses.finish(draft.responses), schemas = next(draft.collection.components) and
      json.object(draft.collection.components), securitySchemes = openapi_security.finish(draft.security),
  }
  return next(components) and json.object(components) or nil
end

---@class srv.OpenapiInfo
---@field title string
---@field version string
---@field servers table[]?

--- The document of the routes beneath ROUTER.
---@param made srv.CompiledApp
---@param router srv.Router
---@param info srv.OpenapiInfo
---@return table
function openapi_document.make(made, router, info)
  local draft = new_draft()
  for _, route in ipairs(made.routes) do
    if not route.options.hidden and is_beneath(route.scope, router) then add_route(draft, route) end
  end
  return json.object({
    openapi = "3.1.0", info = json.object({ title = info.title, version = info.version }, { "title", "version" }),
    servers = info.servers, tags = tag_objects(draft.tags), paths = json.object(draft.paths),
    components = components_of(draft),
  })
end

return openapi_document
