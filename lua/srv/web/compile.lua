--- From what an app declares to flat lists: every route with its full path, its middleware from the
--- outside in, its hooks, its limits. Done once, at start; nothing here runs for a request.
local hooks = require "srv.web.hooks"
local http = require "srv.core.http"

local compile = {}

--- One mount of a router. A router that is mounted twice has two scopes.
---@class srv.Scope
---@field parent srv.Scope?
---@field depth integer
---@field router srv.Router
---@field prefix string         full: "/orgs/:org"; "" for the app
---@field pattern userdata      of the full prefix, for paths that no route takes
---@field segments integer      of the full prefix
---@field settings table        inherited, the inner one wins
---@field hidden integer        parameters of the prefix that the router does not see
---@field uses table[]          { fn, name, pattern?, scope }, outer ones first
---@field hooks table[]         { name, fn, pattern? }, outer ones first

---@class srv.CompiledRoute
---@field id integer            the router's in C
---@field scope srv.Scope
---@field methods string[]
---@field path string           full pattern
---@field pattern userdata
---@field settings table        timeout, body_limit, slash, host, abort
---@field options table         as the route gave them
---@field uses table[]          { fn, name, scope, depends? }: depends = pattern to ask for each request
---@field functions table[]     guards and the handler
---@field hooks table<string, function|false>
---@field place string
---@field is_socket true?       of app:ws

---@class srv.CompiledApp
---@field root srv.Scope
---@field scopes srv.Scope[]
---@field routers table<srv.Router, true>
---@field routes srv.CompiledRoute[]
---@field statics table[]       { scope, pattern, folder, options, segments }
---@field start table[]         hooks: { fn, once }, outer ones first
---@field stop table[]          the same, the other way round
---@field timers table[]

--- "/news" and "/:id" -> "/news/:id"; the inner "/" is the prefix itself.
local function join(prefix, path)
  if path == "" or path == "/" then return prefix == "" and "/" or prefix end
  return prefix .. path
end

local function trim_slash(text) return (text:gsub("/+$", "")) end

local function pattern_of(text, place)
  local pattern, message = http.pattern(text)
  return pattern or error(("%s: %s"):format(place, message), 0)
end

-- Scopes ----------------------------------------------------------------------------------------

local INHERITED = { "timeout", "body_limit", "slash", "host" }

local function inherit(parent, own)
  local settings = {}
  for _, name in ipairs(INHERITED) do
    local value = own[name]
    if value == nil and parent then value = parent[name] end
    settings[name] = value
  end
  return settings
end

--- The list of an outer scope and what this one adds, each entry with its full prefix.
local function extend(outer, own, scope)
  local list = {}
  for _, entry in ipairs(outer or {}) do list[#list + 1] = entry end
  for _, entry in ipairs(own) do
    local copy = { scope = scope }
    for key, value in pairs(entry) do copy[key] = value end
    copy.prefix = nil
    if entry.prefix then copy.pattern = pattern_of(join(scope.prefix, entry.prefix:text()), scope.place) end
    list[#list + 1] = copy
  end
  return list
end

local function refuse_circle(parent, router, place)
  local scope = parent
  while scope do
    if scope.router == router then error(place .. ": this router is mounted inside itself", 0) end
    scope = scope.parent
  end
end

local function new_scope(parent, router, prefix, place)
  refuse_circle(parent, router, place)
  local declared = router.declared
  local scope = {
    parent = parent, depth = parent and parent.depth + 1 or 0, router = router, prefix = trim_slash(prefix),
    place = place, settings = inherit(parent and parent.settings, declared.settings),
  }
  scope.pattern = pattern_of(scope.prefix == "" and "/" or scope.prefix, place)
  scope.segments = scope.pattern:segments()
  scope.hidden = parent and parent.hidden or 0
  if declared.settings.merge_params == false then scope.hidden = #scope.pattern:params() end
  scope.uses = extend(parent and parent.uses, declared.uses, scope)
  scope.hooks = extend(parent and parent.hooks, declared.hooks, scope)
  return scope
end

-- Hooks and middleware of one route ---------------------------------------------------------------

--- How a hook with a prefix is asked for each request: `error` has its request second.
local function hook_under(name, fn, pattern)
  if name == "error" then
    return function(err, req, res) if http.under(req, pattern) then fn(err, req, res) end end
  end
  return function(req, res) if http.under(req, pattern) then return fn(req, res) end end
end

--- The hooks of LIST for what COVERS says: name -> one function or false.
---@param list table[]
---@param covers fun(pattern: userdata): "always"|"maybe"|"never"
---@return table<string, function|false>
local function hooks_for(list, covers)
  local found = {}
  for _, hook in ipairs(list) do
    local how = hook.pattern and covers(hook.pattern) or "always"
    if how ~= "never" and not hooks.is_of_app(hook.name) then
      local own = found[hook.name] or {}
      found[hook.name] = own
      own[#own + 1] = how == "always" and hook.fn or hook_under(hook.name, hook.fn, hook.pattern)
    end
  end
  for name, own in pairs(found) do found[name] = hooks.joined(name, own) end
  return found
end

--- The middleware of LIST for what COVERS says.
local function uses_for(list, covers)
  local found = {}
  for _, use in ipairs(list) do
    local how = use.pattern and covers(use.pattern) or "always"
    if how ~= "never" then
      found[#found + 1] = { fn = use.fn, name = use.name, scope = use.scope, entry = use,
        depends = how == "maybe" and use.pattern or nil }
    end
  end
  return found
end

--- Middleware and hooks for a path that no route takes.
---@param scope srv.Scope
---@param req table  what http.under() takes
---@return table[] uses, table<string, function|false> hooks
function compile.for_path(scope, req)
  local function covers(pattern) return http.under(req, pattern) and "always" or "never" end
  return uses_for(scope.uses, covers), hooks_for(scope.hooks, covers)
end

-- Routes ------------------------------------------------------------------------------------------

local function route_settings(scope, opts)
  local settings = inherit(scope.settings, opts)
  settings.abort = opts.abort or "cancel"
  return settings
end

local function add_route(app, scope, route, path)
  local full = join(scope.prefix, path)
  local pattern = pattern_of(full, route.place)
  local function covers(prefix) return prefix:covers(pattern) end
  local all_hooks = extend(scope.hooks, route.hooks, scope)
  app.routes[#app.routes + 1] = {
    scope = scope, methods = route.methods, path = full, pattern = pattern, options = route.options,
    settings = route_settings(scope, route.options), functions = route.functions, place = route.place,
    is_socket = route.is_socket,
    uses = uses_for(scope.uses, covers), hooks = hooks_for(all_hooks, covers),
  }
end

local function add_statics(app, scope)
  for _, static in ipairs(scope.router.declared.statics) do
    local pattern = pattern_of(trim_slash(join(scope.prefix, static.prefix:text())), static.place)
    app.statics[#app.statics + 1] = {
      scope = scope, pattern = pattern, segments = pattern:segments(), folder = static.folder,
      options = static.options, place = static.place,
    }
  end
end

--- Hooks `start` in their order, and `stop` the other way round.
local function add_app_hooks(app, list)
  for _, hook in ipairs(list) do
    if hook.name == "start" then table.insert(app.start, hook) end
    if hook.name == "stop" then table.insert(app.stop, 1, hook) end
  end
end

--- What a router has once, however often it is mounted.
local function add_own(app, router)
  if app.routers[router] then return end
  app.routers[router] = true
  local declared = router.declared
  add_app_hooks(app, declared.hooks)
  for _, route in ipairs(declared.routes) do add_app_hooks(app, route.hooks) end
  for _, timer in ipairs(declared.timers) do table.insert(app.timers, timer) end
end

local function add_scope(app, parent, router, prefix, place)
  local scope = new_scope(parent, router, prefix, place)
  app.scopes[#app.scopes + 1] = scope
  add_own(app, router)
  for _, route in ipairs(router.declared.routes) do
    for _, path in ipairs(route.paths) do add_route(app, scope, route, path) end
  end
  for _, mount in ipairs(router.declared.mounts) do
    add_scope(app, scope, mount.router, join(scope.prefix, mount.prefix:text()), mount.place)
  end
  add_statics(app, scope)
  return scope
end

local function index_names(app)
  app.names = {}
  for _, route in ipairs(app.routes) do
    local name = route.options.name
    local earlier = name and app.names[name]
    if earlier and earlier.place ~= route.place then
      error(("%s: the route name %q is taken at %s"):format(route.place, name, earlier.place), 0)
    end
    if name and not earlier then app.names[name] = route end
  end
end

--- Everything beneath ROUTER; raises what is wrong, with file and line.
---@param router srv.Router
---@return srv.CompiledApp
function compile.app(router)
  local app = { scopes = {}, routers = {}, routes = {}, statics = {}, start = {}, stop = {}, timers = {} }
  app.root = add_scope(app, nil, router, "", router.declared.place)
  -- The deepest prefix first; of equals the earlier.
  for i, static in ipairs(app.statics) do static.order = i end
  table.sort(app.statics, function(a, b)
    if a.segments ~= b.segments then return a.segments > b.segments end
    return a.order < b.order
  end)
  index_names(app)
  return app
end

return compile
