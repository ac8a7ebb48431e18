--- Who may call an operation, as OpenAPI says it: by the plugins basic_auth, bearer and jwt that stand before it.
local auth = require "srv.plugins.auth"
local json = require "srv.core.json"

local openapi_security = {}

---@class srv.OpenapiSecurity
---@field schemes table<string, table>  that are asked for

local OF_PLUGIN = {
  basic_auth = { type = "http", scheme = "basic" },
  bearer = { type = "http", scheme = "bearer" },
  jwt = { type = "http", scheme = "bearer", bearerFormat = "JWT" },
}

---@return srv.OpenapiSecurity
function openapi_security.new() return { schemes = {} } end

--- The names of the schemes of which one is enough for what ASKED describes; "" where none is, too.
local function choices_of(security, asked)
  local names = { asked.name }
  security.schemes[asked.name] = OF_PLUGIN[asked.name]
  if asked.cookie then
    names[2] = "cookie_" .. asked.cookie:gsub("[^%w._-]", "_")
    security.schemes[names[2]] = { type = "apiKey", ["in"] = "cookie", name = asked.cookie }
  end
  if asked.is_optional then names[#names + 1] = "" end
  return names
end

--- Each of LIST with each of NAMES beside it.
local function combine(list, names)
  local out = {}
  for _, one in ipairs(list) do
    for _, name in ipairs(names) do
      local both = {}
      for known in pairs(one) do both[known] = json.array {} end
      if name ~= "" then both[name] = json.array {} end
      out[#out + 1] = both
    end
  end
  return out
end

--- What ROUTE asks for, as a list of alternatives; nil: nothing.
---@param security srv.OpenapiSecurity
---@param route srv.CompiledRoute
---@return table?
function openapi_security.of_route(security, route)
  local list, asks = { {} }, false
  for _, entries in ipairs { route.uses, route.functions } do
    for _, entry in ipairs(entries) do
      local asked = auth.asked_by(entry.fn)
      if asked then list, asks = combine(list, choices_of(security, asked)), true end
    end
  end
  if not asks then return nil end
  for i, one in ipairs(list) do list[i] = json.object(one) end
  return json.array(list)
end

---@param security srv.OpenapiSecurity
---@return table?
function openapi_security.finish(security)
  if not next(security.schemes) then return nil end
  local schemes = {}
  for name, scheme in pairs(security.schemes) do
    local copy = {}
    for key, value in pairs(scheme) do copy[key] = value end
    schemes[name] = json.object(copy)
  end
  return json.object(schemes)
end

return openapi_security
