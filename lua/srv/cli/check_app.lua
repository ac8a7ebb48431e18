--- What an app tells when it is loaded: what raises, routes that no request reaches, routers that nobody mounts, views and
--- migrations that are wrong.
local app_load = require "srv.cli.app_load"
local env = require "srv.core.env"
local folder = require "srv.core.folder"
local migrations = require "srv.core.migrations"
local web = require "srv.web.app"

local check = {}

local MIGRATIONS = "migrations"
local DIALECTS = { "sqlite", "postgres" }

-- Routers ------------------------------------------------------------------------------------------------------

--- Every router that is made from now on.
local function watch_routers()
  local made, router = {}, web.router
  function web.router(...)
    local new = router(...)
    made[#made + 1] = new
    return new
  end
  return made
end

local function check_unmounted(routers, made, findings)
  for _, router in ipairs(routers) do
    local declared = router.declared
    if not made.routers[router] and #declared.routes + #declared.mounts > 0 then
      local file, line = declared.place:match "^(.*):(%d+)$"
      findings:add { file = file, line = tonumber(line), code = "unmounted",
        message = "nobody mounts this router, so nothing of it is served",
        fix = 'app:mount("/prefix", router)' }
    end
  end
end

-- Routes -------------------------------------------------------------------------------------------------------

--- Whether a function may call next(), its third argument, so that the next route is asked.
local function may_pass(fn)
  if type(fn) ~= "function" then return true end
  local info = debug.getinfo(fn, "u")
  return info.nparams >= 3 or info.isvararg
end

local function handler_of(route) return route.functions[#route.functions].fn end

local function methods_meet(a, b)
  for _, one in ipairs(a) do
    for _, other in ipairs(b) do
      if one == other or one == "*" or other == "*" then return true end
    end
  end
  return false
end

local function same_host(a, b) return a.settings.host == b.settings.host end

local function unreachable(findings, place, message, fix)
  local file, line = place:match "^(.*):(%d+)$"
  findings:add { file = file, line = tonumber(line), code = "unreachable", message = message, fix = fix }
end

--- A fallback runs when the route before it passes; one whose handler has no `next` never does.
local function check_fallbacks(made, findings)
  for i, route in ipairs(made.routes) do
    for at = 1, route.options.fallback and i - 1 or 0 do
      local earlier = made.routes[at]
      if earlier.path == route.path and methods_meet(earlier.methods, route.methods) and same_host(earlier, route)
        and not may_pass(handler_of(earlier)) then
        unreachable(findings, route.place, ("%s at %s answers first, and never calls next()"):format(route.path, earlier.place),
          "let that handler take (req, res, next), or remove this route")
      end
    end
  end
end

local GET = { "GET" }

--- Files are behind all routes: one that takes every path beneath their prefix hides them.
local function check_statics(made, findings)
  for _, static in ipairs(made.statics) do
    for _, route in ipairs(made.routes) do
      local prefix = route.path:match "^(.-)/%*[%w_]*$"
      local hides = prefix and (static.pattern:text() .. "/"):sub(1, #prefix + 1) == prefix .. "/"
      if hides and methods_meet(route.methods, GET) and route.settings.host == static.scope.settings.host
        and not may_pass(handler_of(route)) then
        unreachable(findings, static.place, ("the route %s at %s answers before the files of %q"):format(
          route.path, route.place, static.folder), "let that handler take (req, res, next), or give it another path")
      end
    end
  end
end

-- Views and migrations ---------------------------------------------------------------------------------------------

local function check_views(findings)
  if not folder.files(env.root .. "/views") then return end
  local template = require "srv.web.template"
  template.use { url = function() return "" end } -- nothing is rendered
  for _, message in ipairs(template.check()) do findings:add_error(message, "view", "views") end
end

local function check_migrations(findings)
  for _, dialect in ipairs(folder.files(env.root .. "/" .. MIGRATIONS) and DIALECTS or {}) do
    local list, err = migrations.read(MIGRATIONS, dialect)
    if not list then
      local name = tostring(err.message):match "([%w_.-]+%.sql)"
      findings:add { file = name and MIGRATIONS .. "/" .. name or MIGRATIONS, code = "migration", message = err.message }
    end
  end
end

--- Notes what is wrong with the app at APP_FILE.
---@param app_file string
---@param findings srv.cli.Findings
function check.app(app_file, findings)
  check_migrations(findings)
  check_views(findings)
  local routers = watch_routers()
  local app, problem = app_load.app(app_file)
  if not app then return findings:add_error(problem, "load", "app.lua") end
  local made
  made, problem = app_load.made(app)
  if not made then return findings:add_error(problem, "load", "app.lua") end
  check_unmounted(routers, made, findings)
  check_fallbacks(made, findings)
  check_statics(made, findings)
end

return check
