--- A route's pattern (API, section 2) as OpenAPI writes paths: "/n/:id<int>?" is "/n" and "/n/{id}".
local json = require "srv.core.json"
local pattern = require "srv.base.pattern"

local openapi_path = {}

---@class srv.OpenapiPath
---@field template string                "/n/{id}"
---@field shape string                   the same without names: paths of one shape are one path to OpenAPI
---@field params srv.OpenapiPathParam[]

---@class srv.OpenapiPathParam
---@field name string     as the template has it
---@field own_name string as the route has it
---@field schema table
---@field is_rest boolean it may hold slashes

--- As route_value.c reads them.
local TYPES = {
  int = { type = "integer" }, number = { type = "number" }, uuid = { type = "string", format = "uuid" },
  slug = { type = "string", pattern = "^[a-z0-9-]+$" }, hex = { type = "string", pattern = "^[0-9A-Fa-f]+$" },
  date = { type = "string", format = "date" },
}

local function copy(t)
  local out = {}
  for key, value in pairs(t) do out[key] = value end
  return out
end

--- What stands between < and >: a type, words, or a Lua pattern for the whole value.
local function schema_of(rule)
  if not rule then return json.object { type = "string" } end
  if TYPES[rule] then return json.object(copy(TYPES[rule])) end
  if not rule:find "[^%w_|-]" then
    local words = {}
    for word in rule:gmatch "[^|]+" do words[#words + 1] = word end
    return json.object { type = "string", enum = json.array(words) }
  end
  local _, regex = pattern.whole(rule)
  return json.object { type = "string", pattern = regex }
end

---@class srv.OpenapiPathReader
---@field text string
---@field at integer
---@field pieces (string|srv.OpenapiPathParam)[]
---@field cut integer?  pieces that an optional end leaves

local function take(reader, lua_pattern)
  local from, to, captured = reader.text:find("^" .. lua_pattern, reader.at)
  if not from then return nil end
  reader.at = to + 1
  return captured or reader.text:sub(from, to)
end

local function add(reader, piece) reader.pieces[#reader.pieces + 1] = piece end

local function read_param(reader)
  local name = take(reader, "([%a_][%w_]*)")
  local rule = take(reader, "<([^>]*)>")
  add(reader, { name = name, own_name = name, schema = schema_of(rule), is_rest = false })
  if take(reader, "%?") then reader.cut = #reader.pieces - 2 end
end

local function read_piece(reader)
  if take(reader, "::") then return add(reader, ":") end
  if take(reader, "%*%*") then return add(reader, "*") end
  if take(reader, ":") then return read_param(reader) end
  if take(reader, "%*") then
    local name = take(reader, "([%a_][%w_]*)")
    return add(reader, { name = name or "rest", own_name = name or "*", schema = schema_of(nil), is_rest = true })
  end
  -- Braces would be a parameter to OpenAPI.
  local char = take(reader, ".")
  add(reader, (char:gsub("[{}]", { ["{"] = "%7B", ["}"] = "%7D" })))
end

--- OpenAPI knows a name once in a path; of equal ones srv takes the last.
local function make_unique(params)
  local seen = {}
  for i = #params, 1, -1 do
    local name, number = params[i].name, 2
    while seen[params[i].name] do params[i].name, number = name .. number, number + 1 end
    seen[params[i].name] = true
  end
end

local function path_of(pieces, count)
  local params = {}
  for i = 1, count do
    if type(pieces[i]) == "table" then params[#params + 1] = copy(pieces[i]) end
  end
  make_unique(params)
  local template, shape, at = {}, {}, 0
  for i = 1, count do
    local piece = pieces[i]
    if type(piece) == "table" then
      at = at + 1
      template[i], shape[i] = "{" .. params[at].name .. "}", "{}"
    else
      template[i], shape[i] = piece, piece
    end
  end
  if count == 0 then template[1], shape[1] = "/", "/" end
  return { template = table.concat(template), shape = table.concat(shape), params = params }
end

--- The paths that TEXT stands for: two where its end may be missing.
---@param text string  a route's full pattern
---@return srv.OpenapiPath[]
function openapi_path.paths(text)
  local reader = { text = text, at = 1, pieces = {} }
  while reader.at <= #text do read_piece(reader) end
  local paths = { path_of(reader.pieces, #reader.pieces) }
  if reader.cut then table.insert(paths, 1, path_of(reader.pieces, math.max(reader.cut, 0))) end
  return paths
end

--- A host's pattern as a server: ":tenant.example.com" is "//{tenant}.example.com".
---@param host string
---@return table server
function openapi_path.server(host)
  local paths, variables = openapi_path.paths(host), {}
  local path = paths[#paths]
  for _, param in ipairs(path.params) do variables[param.name] = json.object { default = param.name } end
  return json.object { url = "//" .. path.template, variables = next(variables) and json.object(variables) or nil }
end

return openapi_path
