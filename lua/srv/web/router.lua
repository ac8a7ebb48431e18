--- What an app declares: routes, middleware, mounts, hooks (API, section 2).
---
--- An app and a router are the same object. Declaring only writes down; srv.web.compile makes
--- routes of it when everything has been said, so the order in a file does not matter.
local factory = require "srv.base.factory"
local handler = require "srv.web.handler"
local hooks = require "srv.web.hooks"
local http = require "srv.core.http"
local lua_pattern = require "srv.base.pattern"
local options = require "srv.base.options"
local suggest = require "srv.base.suggest"
local task = require "srv.core.task"
local text = require "srv.base.text"

local misuse = task.misuse
local is_callable, is_plugin, is_options = handler.is_callable, handler.is_plugin, handler.is_options

---@class srv.Declared
---@field settings table     timeout, body_limit, slash, host, merge_params as given
---@field place string       file:line where the router was made
---@field uses table[]       middleware in order: { fn, name, prefix? }
---@field routes table[]     { methods, paths, options, functions, hooks, place, is_socket? }
---@field mounts table[]     { prefix, router, place }
---@field statics table[]    { prefix, folder, options, place }
---@field hooks table[]      { name, fn, prefix?, once? }
---@field error_handlers function[]
---@field not_found_handlers function[]
---@field timers table[]     what app:every was given
---@field spawned table[]    what app:spawn was given before the app ran, and its waiting task

---@class srv.Router
---@field declared srv.Declared
local Router = { __name = "srv.Router" }
Router.__index = setmetatable(Router, { __index = suggest.foreign "app" })

local router = {}

---@param v any
---@return boolean
function router.is(v) return type(v) == "table" and getmetatable(v) == Router end

--- `app.get("/x", fn)` has the path where the app belongs.
local function check_self(self, method)
  if not router.is(self) then
    misuse(("app.%s: methods of an app stand behind a colon: app:%s(...)"):format(method, method))
  end
end

local ROUTER_OPTIONS = {
  timeout = "duration", body_limit = "bytes", slash = "ignore|strict|redirect", host = "string",
  merge_params = "boolean",
}
local ROUTE_OPTIONS = {
  params = "any", query = "any", headers = "any", cookies = "any", body = "any", response = "any",
  consumes = "table", timeout = "duration", body_limit = "bytes", abort = "cancel|finish",
  fallback = "boolean", name = "string", summary = "string", description = "string", tags = "table",
  deprecated = "boolean", hidden = "boolean",
}

--- "app.lua:12": the innermost line that is not srv's own.
local function place() return (http.where():gsub(":%s*$", "")) end

-- Longer values fit no Lua pattern: bind/lsite.c.
local PATTERN_VALUE_BYTES_MAX = 1000

--- `:id<%d+>`: Lua would tell that a pattern is malformed only once a request comes, and never that it may take for ever.
local function check_lua_patterns(where, path)
  for given in path:gsub("::", ""):gmatch ":[%a_][%w_]*<([^>]*)>" do
    if given:find "[^%w_|-]" then
      local whole, message = lua_pattern.whole(given)
      if not whole then misuse(where .. ": " .. message) end
      if lua_pattern.longest(lua_pattern.cost(given)) < PATTERN_VALUE_BYTES_MAX then
        misuse(("%s: the pattern %s may try too many ways to share out a value: let no two neighbours in it match the same "
          .. "characters"):format(where, given))
      end
    end
  end
end

--- `:id(%d+)` and `:id(\\d+)`: how other frameworks say what a value must look like.
local function refuse_parentheses(where, path)
  local name, inside = path:match ":([%a_][%w_]*)(%b())"
  if not inside or not inside:find "[\\%%]" then return end
  misuse(("%s: what a value must look like stands in angle brackets: :%s<int>, or a Lua pattern, :%s<%%d+>")
    :format(where, name, name))
end

local function check_pattern(where, path)
  if type(path) ~= "string" then misuse(where .. ": a path must be a string") end
  check_lua_patterns(where, path)
  refuse_parentheses(where, path)
  local pattern, message = http.pattern(path)
  return pattern or misuse(where .. ": " .. message)
end

local function check_prefix(where, path)
  local pattern = check_pattern(where, path)
  local message = pattern:prefix_fault()
  if message then misuse(where .. ": " .. message) end
  return pattern
end

-- Middleware ------------------------------------------------------------------------------------

--- How middleware is called in lists: its plugin's name, else where it was written.
local function name_of(fn)
  if type(fn) ~= "function" then return "callable" end
  local info = debug.getinfo(fn, "S")
  return info.what == "C" and "C function" or info.short_src .. ":" .. info.linedefined
end

-- (req, res, next)
local PARAMETERS_MAX = 3

--- Why ITEM cannot stand where middleware does, or nil.
local function fault_of(item)
  if router.is(item) then return "a router is mounted: app:mount(path, router)" end
  if type(item) == "function" and debug.getinfo(item, "u").nparams > PARAMETERS_MAX then
    return "a function here gets (req, res, next), and no error: app:error(function(err, req, res) ... end) answers errors"
  end
  return factory.fault(item)
end

local PLUGIN_FIELDS = { name = true, use = true, hooks = true, setup = true }

local function check_plugin(where, plugin)
  for field in pairs(plugin) do
    if not PLUGIN_FIELDS[field] then
      misuse(where .. ": " .. options.unknown("plugin field", field, PLUGIN_FIELDS))
    end
  end
  local fault = fault_of(plugin.use)
  if fault then misuse(where .. ": " .. fault) end
  for name, fn in pairs(plugin.hooks or {}) do hooks.check(where, name, fn) end
end

--- Splits ITEM into its middleware (returned) and its hooks (added to LIST); runs its setup.
local function unpack_item(self, where, item, list, prefix)
  local fault = fault_of(item)
  if fault then misuse(where .. ": " .. fault) end
  if is_callable(item) then return { fn = item, name = name_of(item), prefix = prefix } end
  if not is_plugin(item) then
    misuse(("%s: middleware must be a function or a plugin, not %s"):format(where, type(item)))
  end
  check_plugin(where, item)
  for name, fn in pairs(item.hooks or {}) do list[#list + 1] = { name = name, fn = fn, prefix = prefix } end
  if item.setup then item.setup(self) end
  return item.use and { fn = item.use, name = item.name or name_of(item.use), prefix = prefix }
end

--- Middleware for all beneath PREFIX, wherever it stands in the file.
---@param prefix string?
---@param ... function|table  functions or plugins
---@return srv.Router
function Router:use(prefix, ...)
  check_self(self, "use")
  if type(prefix) ~= "string" then return self:use("/", prefix, ...) end
  local pattern = prefix ~= "/" and check_prefix("app:use", prefix) or nil
  if select("#", ...) == 0 then misuse("app:use: no middleware was given") end
  for i = 1, select("#", ...) do
    local entry = unpack_item(self, "app:use", (select(i, ...)), self.declared.hooks, pattern)
    if entry then self.declared.uses[#self.declared.uses + 1] = entry end
  end
  return self
end

-- Routes ----------------------------------------------------------------------------------------

local function check_methods(methods)
  if type(methods) == "string" then methods = { methods } end
  if type(methods) == "table" and type(methods[1]) == "string" and methods[1]:find "^/" then
    misuse('app:route: methods come before the path: app:route({ "GET", "HEAD" }, path, fn); for one, app:get(path, fn)')
  end
  if type(methods) ~= "table" or #methods == 0 then
    misuse("app:route: the first argument is a method or a list of methods")
  end
  for _, name in ipairs(methods) do
    if name ~= "*" and not http.is_method(name) then
      misuse(("app:route: %q is no method that this server can parse"):format(tostring(name)))
    end
  end
  return methods
end

local function check_paths(paths)
  if type(paths) == "string" then paths = { paths } end
  if type(paths) ~= "table" or #paths == 0 then misuse("app:route: a path or a list of paths is missing") end
  for _, path in ipairs(paths) do check_pattern("app:route", path) end
  return paths
end

local function add_functions(self, route, ...)
  local count = select("#", ...)
  if count == 0 or count == 1 and (...) == nil then misuse("app:route: the handler is missing") end
  for i = 1, count do
    local entry = unpack_item(self, "app:route", (select(i, ...)), route.hooks, nil)
    if entry then route.functions[#route.functions + 1] = entry end
  end
  local last = select(count, ...)
  if not is_callable(last) then misuse("app:route: the handler must be a function") end
end

local function add_route(self, methods, paths, opts, ...)
  if not is_options(opts) then return add_route(self, methods, paths, {}, opts, ...) end
  if opts[1] ~= nil then misuse "app:route: guards are arguments, no list: app:get(path, guard, another, handler)" end
  local route = {
    methods = check_methods(methods), paths = check_paths(paths),
    options = options.check("app:route", opts, ROUTE_OPTIONS),
    functions = {}, hooks = {}, place = place(),
  }
  add_functions(self, route, ...)
  self.declared.routes[#self.declared.routes + 1] = route
  return self
end

--- Any methods the parser knows, "*" for all of them.
---@param methods string|string[]
---@param paths string|string[]
---@param ... any  [options], [middleware...], handler
---@return srv.Router
function Router:route(methods, paths, ...)
  check_self(self, "route")
  add_route(self, methods, paths, ...)
  return self
end

--- WebSockets (lua/srv/web/websocket.lua).
---@param paths string|string[]
---@param ... any  [options], [middleware...], a function(ws, req) or a table { open, message, close }
---@return srv.Router
function Router:ws(paths, ...)
  check_self(self, "ws")
  require("srv.web.websocket").declare(self, paths, ...)
  return self
end

local SHORT = {
  get = "GET", post = "POST", put = "PUT", patch = "PATCH", delete = "DELETE", head = "HEAD",
  options = "OPTIONS", all = "*",
}
for name, method in pairs(SHORT) do
  Router[name] = function(self, paths, ...)
    check_self(self, name)
    add_route(self, method, paths, ...)
    return self
  end
end

-- Mounts, folders, hooks ------------------------------------------------------------------------

---@param prefix string  may hold parameters
---@param inner srv.Router
---@return srv.Router
function Router:mount(prefix, inner)
  check_self(self, "mount")
  local pattern = check_prefix("app:mount", prefix)
  if not router.is(inner) then
    misuse(("app:mount: a router is missing (got %s); does its module return one?"):format(type(inner)))
  end
  self.declared.mounts[#self.declared.mounts + 1] = { prefix = pattern, router = inner, place = place() }
  return self
end

local STATIC_OPTIONS = {
  index = "any", max_age = "duration", immutable = "any", fallback = "string", dotfiles = "boolean", list = "boolean",
  precompressed = "boolean", etag = "boolean", download = "any", headers = "table",
}

--- Options of several types; `index = true` would name no file.
local STATIC_CHOICES = {
  index = function(v) return v == false or type(v) == "string", "a file's name or false" end,
  immutable = function(v) return type(v) == "boolean" or type(v) == "string", "true, false or a pattern" end,
}
STATIC_CHOICES.download = STATIC_CHOICES.immutable

local function check_static_headers(headers)
  for name, value in pairs(headers) do
    if type(name) ~= "string" or not text.is_token(name) then
      misuse(("app:static: %q is no name for a header"):format(tostring(name)))
    end
    if type(value) == "string" and not text.is_field_value(value) then
      misuse(("app:static: the value of %s has bytes that HTTP forbids"):format(name))
    end
  end
end

local function check_static_options(opts)
  local checked = options.check("app:static", opts, STATIC_OPTIONS)
  for name, allows in pairs(STATIC_CHOICES) do
    local fits, wanted = allows(checked[name])
    if checked[name] ~= nil and not fits then
      misuse(("app:static: option %q must be %s, not %s"):format(name, wanted, tostring(checked[name])))
    end
  end
  check_static_headers(checked.headers or {})
  return checked
end

--- Files of a folder, behind all routes.
---@param prefix string
---@param folder string  relative to the app's folder
---@param opts table?
---@return srv.Router
function Router:static(prefix, folder, opts)
  check_self(self, "static")
  local pattern = check_prefix("app:static", prefix)
  if type(folder) ~= "string" then misuse("app:static: the folder is missing") end
  self.declared.statics[#self.declared.statics + 1] = {
    prefix = pattern, folder = folder, options = check_static_options(opts), place = place(),
  }
  return self
end

---@param name string
---@param fn function
---@param opts { once?: boolean }?
---@return srv.Router
function Router:hook(name, fn, opts)
  check_self(self, "hook")
  hooks.check("app:hook", name, fn)
  opts = options.check("app:hook", opts, { once = "boolean" })
  if opts.once and not hooks.is_of_app(name) then misuse "app:hook: `once` is for hooks start and stop" end
  self.declared.hooks[#self.declared.hooks + 1] = { name = name, fn = fn, once = opts.once }
  return self
end

--- Makes answers of errors beneath this mount; nothing returned: the outer one is asked.
---@param format fun(err: srv.Error, req: srv.Request, res: srv.Response): any, integer?, table?
---@return srv.Router
function Router:error(format)
  check_self(self, "error")
  if not is_callable(format) then misuse("app:error: a function is missing") end
  self.declared.error_handlers[#self.declared.error_handlers + 1] = format
  return self
end

---@param show fun(req: srv.Request, res: srv.Response): any, integer?, table?
---@return srv.Router
function Router:not_found(show)
  check_self(self, "not_found")
  if not is_callable(show) then misuse("app:not_found: a function is missing") end
  self.declared.not_found_handlers[#self.declared.not_found_handlers + 1] = show
  return self
end

function Router.listen()
  misuse("app:listen is the server's: return the app from app.lua and run `srv .`")
end

-- Making ----------------------------------------------------------------------------------------

local function new(where, opts)
  local checked = options.check(where, opts, ROUTER_OPTIONS)
  if checked.host then
    local fault = http.host_fault(checked.host)
    if fault then misuse(where .. ": " .. fault) end
  end
  local declared = {
    settings = checked, place = place(), uses = {}, routes = {}, mounts = {}, statics = {}, hooks = {},
    error_handlers = {}, not_found_handlers = {}, timers = {}, spawned = {},
  }
  return setmetatable({ declared = declared }, Router)
end

---@param opts table?
---@return srv.Router
function router.new(opts) return new("srv.router", opts) end

---@param opts table?
---@return srv.Router
function router.new_app(opts) return new("srv.app", opts) end

router.class = Router

return router
