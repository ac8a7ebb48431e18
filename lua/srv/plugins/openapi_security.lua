--- Who may call an operation, as OpenAPI says it: by the plugins basic_auth, bearer and jwt that stand before it.
local json = require "srv.core.json"

local openapi_security = {}

---@class srv.OpenapiSecurity
---@field used table<string, boolean>

--- By the names that the plugins have in a route's chain.
local SCHEMES = {
  basic_auth = { type = "http", scheme = "basic" },
  bearer = { type = "http", scheme = "bearer" },
  jwt = { type = "http", scheme = "bearer", bearerFormat = "JWT" },
}

---@return srv.OpenapiSecurity
function openapi_security.new() return { used = {} } end

--- What ROUTE asks for: all of it; nil: nothing.
---@param security srv.OpenapiSecurity
---@param route srv.CompiledRoute
---@return table?
function openapi_security.of_route(security, route)
  local asked = {}
  for _, list in ipairs { route.uses, route.functions } do
    for _, entry in ipairs(list) do
      if SCHEMES[entry.name] then asked[entry.name], security.used[entry.name] = json.array {}, true end
    end
  end
  return next(asked) and json.array { json.object(asked) } or nil
end

---@param security srv.OpenapiSecurity
---@return table?
function openapi_security.finish(security)
  if not next(security.used) then return nil end
  local schemes = {}
  for name in pairs(security.used) do
    local scheme = {}
    for key, value in pairs(SCHEMES[name]) do scheme[key] = value end
    schemes[name] = json.object(scheme)
  end
  return json.object(schemes)
end

return openapi_security
