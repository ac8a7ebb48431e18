--- The app that a generation serves: what app.lua returned becomes routes in C and the functions
--- that C calls for them.
local answer = require "srv.web.answer"
local compile = require "srv.web.compile"
local env = require "srv.core.env"
local errors = require "srv.base.errors"
local generation = require "srv.async.generation"
local http = require "srv.core.http"
local log = require "srv.core.log"
local missing = require "srv.web.missing"
local objects = require "srv.web.objects"
local plan = require "srv.web.plan"
local router = require "srv.web.router"
local static = require "srv.web.static"
local sync = require "srv.async.sync"
local task = require "srv.core.task"
local text = require "srv.base.text"
local timer = require "srv.web.timer"

local misuse = task.misuse

local app = {}

local Router = router.class

--- What is declared, in its compiled form; while the app loads that changes with every line.
local function compiled(self)
  return self.serving or compile.app(self)
end

-- Asking an app -----------------------------------------------------------------------------------------

local function middleware_names(route)
  local names = {}
  for _, use in ipairs(route.uses) do names[#names + 1] = use.name end
  for i = 1, #route.functions - 1 do names[#names + 1] = route.functions[i].name end
  return names
end

--- { method, path, name, file, line, middleware } for each method of each route.
---@return table[]
function Router:routes()
  local list = {}
  for _, route in ipairs(compiled(self).routes) do
    local file, line = route.place:match("^(.*):(%d+)$")
    for _, method in ipairs(route.methods) do
      list[#list + 1] = {
        method = method, path = route.path, name = route.options.name, file = file, line = tonumber(line),
        middleware = middleware_names(route),
      }
    end
  end
  return list
end

local function query_of(values)
  local names, parts = {}, {}
  for name in pairs(values) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local value = values[name]
    for _, one in ipairs(type(value) == "table" and value or { value }) do
      parts[#parts + 1] = text.percent_encode(name) .. "=" .. text.percent_encode(tostring(one))
    end
  end
  return #parts > 0 and "?" .. table.concat(parts, "&") or ""
end

--- The app that this router serves in: itself, unless it was mounted.
local function root_of(self) return self.served_by or self end

--- A route's URL by its name.
---@param name string
---@param params table?
---@param query table?
---@return string
function Router:url(name, params, query)
  local route = compiled(root_of(self)).names[name]
  if not route then misuse(('app:url: no route has the name "%s"'):format(tostring(name))) end
  local path, message = route.pattern:build(params or {})
  if not path then misuse(("app:url: %s: %s"):format(name, message)) end
  return path .. query_of(query or {})
end

-- Work besides requests ------------------------------------------------------------------------------------

--- Starts FN beside all requests, until it ends or the app's generation does.
local function start_background(root, fn, ...)
  local started = task.background("background", fn, ...)
  root.background[started] = true
  return started
end

--- A task that is there while the app loads, and begins when the app serves.
local function spawn_waiting(spawned, fn, ...)
  local noted = { fn = fn, n = select("#", ...), serves = sync.event(), has_begun = false, ... }
  local function begin(...)
    noted.serves:wait()
    noted.has_begun = true
    return fn(...)
  end
  noted.task = task.background("background", begin, ...)
  spawned[#spawned + 1] = noted
  return noted.task
end

--- A task of this worker that outlives the request; its errors are logged. While the app loads it
--- waits until the app serves.
---@param fn function
---@param ... any
---@return srv.Task
function Router:spawn(fn, ...)
  if type(fn) ~= "function" then misuse("app:spawn: a function is missing") end
  local root = root_of(self)
  if root.background then return start_background(root, fn, ...) end
  return spawn_waiting(self.declared.spawned, fn, ...)
end

--- Lets what was spawned at load begin. An app that serves once more (in a test) starts it anew,
--- unless it was cancelled before it began.
local function start_spawned(root, noted)
  if noted.has_begun then return start_background(root, noted.fn, unpack(noted, 1, noted.n)) end
  root.background[noted.task] = true
  noted.serves:set()
end

local function start_timer(root, made)
  if made:runs_here() then made.task = start_background(root, made.run, made) end
end

--- FN again and again: "5m", a number of seconds, or "cron: 0 4 * * *".
---@param when string|number
---@param opts table|function
---@param fn function?
---@return srv.Timer
function Router:every(when, opts, fn)
  if fn == nil then opts, fn = {}, opts end
  local made, root = timer.new(when, opts, fn, 3), root_of(self)
  if root.background then start_timer(root, made) else table.insert(self.declared.timers, made) end
  return made
end

--- Drains and ends the process, as SIGTERM does.
---@param why string?
function Router.stop(_, why)
  log.info("app:stop", { why = why })
  env.stop()
end

-- Making a site --------------------------------------------------------------------------------------------

--- Fewer parameters first: a fixed host beats one with a parameter, that a star.
local function host_rank(host)
  return (host:find("*", 1, true) and 100 or 0) + select(2, host:gsub(":", ""))
end

local function add_hosts(made, site)
  local hosts, index = {}, {}
  for _, scope in ipairs(made.scopes) do
    local host = scope.settings.host
    if host and not index[host] then
      hosts[#hosts + 1], index[host] = host, true
    end
  end
  table.sort(hosts, function(a, b)
    if host_rank(a) ~= host_rank(b) then return host_rank(a) < host_rank(b) end
    return a < b
  end)
  for _, host in ipairs(hosts) do index[host] = site:host(host) end
  for i, scope in ipairs(made.scopes) do
    scope.index, scope.host_index = i, scope.settings.host and index[scope.settings.host] or 0
  end
end

local function refuse_duplicate(route, earlier)
  error(("%s: the route %s is declared already, at %s; with `fallback = true` it runs when that one passes")
    :format(route.place, plan.label_of(route), earlier.place), 0)
end

local function add_route(made, site, route)
  local host = route.scope.host_index
  local id, earlier = site:add(host, {
    path = route.path, label = plan.label_of(route), methods = route.methods, slash = route.settings.slash,
    fallback = route.options.fallback, name = route.options.name, timeout = route.settings.timeout,
    body_limit = route.settings.body_limit, finishes = route.settings.abort == "finish",
    wants_sent = route.hooks.sent, wants_abort = route.hooks.abort,
  })
  local by_host = made.by_host[host] or {}
  made.by_host[host] = by_host
  if not id then refuse_duplicate(route, by_host[earlier]) end
  route.id, by_host[id] = id, route
end

--- What `next()` in a route's last function does: the next matching route, or not-found.
local function passer(made, not_found)
  local inner = {}

  local function pass(q, r)
    local from = http.plan(q).route
    local id, host = http.next_route(q)
    if not id then return not_found(q, r) end
    local ran = rawget(q, "ran_middleware") or {}
    for _, use in ipairs(from.uses) do ran[use.entry] = true end
    rawset(q, "ran_middleware", ran)
    local trail = (rawget(q, "passed_by") or "") .. from.scope.host_index .. "." .. from.id .. ">"
    rawset(q, "passed_by", trail)
    local route = made.by_host[host][id]
    local key = trail .. host .. "." .. id
    inner[key] = inner[key] or plan.of_passed(route, ran, pass)
    rawset(q, "params", http.params(q))
    return inner[key](q, r)
  end

  return pass
end

local function add_runners(made, site, pass)
  for _, route in ipairs(made.routes) do
    local host_params = site:host_params(route.scope.host_index)
    site:run(route.scope.host_index, route.id, plan.of_route(route, host_params, pass))
  end
end

--- The app serves: what was noted while it loaded starts now.
---@param self srv.Router
function app.start(self)
  local made = self.serving
  self.background = setmetatable({}, { __mode = "k" })
  for _, scope in ipairs(made.scopes) do
    for _, noted in ipairs(scope.router.declared.spawned) do start_spawned(self, noted) end
  end
  for _, declared in ipairs(made.timers) do start_timer(self, declared) end
end

local function runs_here(hook) return not hook.once or env.worker.id == 0 end

--- Ends what app.start() began, and runs the hooks.
---@param self srv.Router
function app.stop(self)
  for running in pairs(self.background or {}) do running:cancel() end
  self.background = nil
  generation.stop()
  for _, hook in ipairs(self.serving.stop) do
    if runs_here(hook) then answer.guarded("hook stop", hook.fn) end
  end
end

--- The functions that C calls besides runners (bind/lsite.h).
local function entries(self, made, unmatched)
  local function late(p, code, message)
    local q, r = objects.request(p), objects.response(p)
    local own_plan = http.plan(q) or { inner = made.root, scope = made.root, hooks = {} }
    http.drop_answer(r)
    if code == "deadline" and own_plan.hooks.timeout then own_plan.hooks.timeout(q) end
    answer.fail(q, r, own_plan, errors.coded(code, message), own_plan.inner)
    answer.complete(q, r, own_plan, true)
  end

  local function sent(p)
    local own_plan = http.plan(p)
    if own_plan and own_plan.hooks.sent then own_plan.hooks.sent(objects.request(p), objects.response(p)) end
  end

  local function aborted(p)
    local own_plan = http.plan(p)
    if own_plan and own_plan.hooks.abort then own_plan.hooks.abort(objects.request(p)) end
  end

  return {
    unmatched = unmatched, late = late, aborted = aborted, sent = sent,
    fail = function(p, code, message)
      local own_plan = http.plan(p)
      answer.fail_bare(p, own_plan, errors.coded(code, message))
    end,
    resolve = function(p, value) answer.resolve(p, http.plan(p), value) end,
    start = function() app.start(self) end,
    stop = function() app.stop(self) end,
  }
end

local function run_start_hooks(made)
  for _, hook in ipairs(made.start) do
    if runs_here(hook) then hook.fn() end
  end
end

--- All that serves SELF, made and held against itself; nothing of it runs. Raises what is wrong with its routes.
---@param self srv.Router
---@return srv.CompiledApp made
---@return userdata site
function app.assemble(self)
  local made, site = compile.app(self), http.site()
  made.by_host = {}
  for _, scope in ipairs(made.scopes) do scope.router.served_by = self end
  add_hosts(made, site)
  for _, route in ipairs(made.routes) do add_route(made, site, route) end
  static.prepare(made.statics)
  local unmatched, not_found = missing.handlers(made)
  add_runners(made, site, passer(made, not_found))
  site:seal(entries(self, made, unmatched))
  return made, site
end

--- Builds the site that serves SELF, and runs its hooks `start`.
---@param self srv.Router
---@return userdata site
function app.build(self)
  local made, site = app.assemble(self)
  self.serving = made
  run_start_hooks(made)
  return site
end

--- For bind/script: the site of what app.lua returned.
---@param value any
---@param where string  "app.lua"
---@return userdata site
function app.install(value, where)
  if not router.is(value) then
    error(("%s returned %s; it must return the app: `local app = srv.app() ... return app`"):format(where,
      type(value) == "nil" and "nothing" or "a " .. type(value)), 0)
  end
  return app.build(value)
end

app.new, app.router = router.new_app, router.new

return app
