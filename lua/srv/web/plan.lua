--- From a compiled route to the steps of its chain: which middleware, catches and checks stand in
--- which order, and the runner made of them.
local answer = require "srv.web.answer"
local chain = require "srv.web.chain"
local validate = require "srv.web.validate"

local plan = {}

--- From the app (first) down to SCOPE.
local function scopes_to(scope)
  local list = {}
  while scope do
    table.insert(list, 1, scope)
    scope = scope.parent
  end
  return list
end

local function has_error_handlers(scope)
  return #scope.router.declared.error_handlers > 0
end

--- The mounts whose errors must be caught on their way out, because middleware stands around them:
--- outermost first. Those without middleware around are answered at the runner's end.
local function catching(scopes, uses)
  local caught, around = {}, false
  for _, scope in ipairs(scopes) do
    if around and has_error_handlers(scope) then caught[#caught + 1] = scope end
    for _, use in ipairs(uses) do around = around or use.scope == scope end
  end
  return caught
end

local function is_in(list, value)
  for i, entry in ipairs(list) do if entry == value then return i end end
end

--- What one mount adds: its catch, its view of the parameters, its middleware.
local function add_scope(steps, scope, uses, caught, own_plan, shown)
  local at = is_in(caught, scope)
  if at then
    local from = caught[at + 1] and caught[at + 1].parent or own_plan.inner
    steps[#steps + 1] = { kind = "catch", fn = answer.catch(from, scope, own_plan) }
  end
  if shown[scope] then steps[#steps + 1] = { kind = "params", params = shown[scope] } end
  for _, use in ipairs(uses) do
    if use.scope == scope then steps[#steps + 1] = chain.step(use.fn, false, use.depends) end
  end
end

local function add_check(steps, fn)
  if fn then steps[#steps + 1] = { kind = "check", fn = fn } end
end

local function add_functions(steps, functions)
  for i, entry in ipairs(functions) do
    steps[#steps + 1] = chain.step(entry.fn, i == #functions)
  end
end

local function steps_around(own_plan, uses, caught, shown)
  local steps = {}
  if own_plan.hooks.request then steps[#steps + 1] = { kind = "opening", fn = own_plan.hooks.request } end
  for _, scope in ipairs(scopes_to(own_plan.inner)) do
    add_scope(steps, scope, uses, caught, own_plan, shown)
  end
  return steps
end

local function new_plan(scope, uses, hooks)
  local caught = catching(scopes_to(scope), uses)
  return { inner = scope, scope = caught[1] and caught[1].parent or scope, hooks = hooks }, caught
end

-- Parameters ------------------------------------------------------------------------------------------

--- The parameters from index FIRST on, each name once.
local function names_from(params, first)
  local names, seen = {}, {}
  for i = first, #params do
    local name = params[i].name
    if not seen[name] then names[#names + 1] = name end
    seen[name] = true
  end
  return names
end

--- Where routers hide the outer parameters, and middleware around still sees them: scope -> names.
local function shown_params(route, uses, params, host_count)
  local shown, around = {}, false
  for _, scope in ipairs(scopes_to(route.scope)) do
    local outer = scope.parent and scope.parent.hidden or 0
    if around and scope.hidden > outer then shown[scope] = names_from(params, host_count + scope.hidden + 1) end
    for _, use in ipairs(uses) do around = around or use.scope == scope end
  end
  return shown
end

--- Names in the order of the runner's arguments, "" for those that nobody in the chain is to see.
local function argument_names(route, uses, params, host_count)
  local names, hidden = {}, #uses == 0 and route.scope.hidden or 0
  for i, param in ipairs(params) do
    names[i] = i > host_count and i - host_count <= hidden and "" or param.name
  end
  return names
end

local function all_optional(params)
  for _, param in ipairs(params) do if not param.optional then return false end end
  return true
end

-- Routes ----------------------------------------------------------------------------------------------

local function label_of(route)
  local method = route.methods[1] == "*" and "ALL" or route.methods[1]
  return method .. " " .. route.path
end

plan.label_of = label_of

local function route_steps(route, own_plan, uses, caught, shown)
  local steps = steps_around(own_plan, uses, caught, shown)
  add_check(steps, validate.step(route.options, route.place))
  add_check(steps, own_plan.hooks.validated)
  local shape = validate.shape(route.options, route.place)
  if shape then steps[#steps + 1] = { kind = "shape", fn = shape } end
  add_functions(steps, route.functions)
  return steps
end

--- The runner of ROUTE and its plan. HOST_PARAMS: those of its host's pattern.
---@param route srv.CompiledRoute
---@param host_params table[]
---@param pass fun(q: srv.Request, r: srv.Response)
---@return function runner, srv.Plan
function plan.of_route(route, host_params, pass)
  local params = {}
  for _, param in ipairs(host_params) do params[#params + 1] = param end
  for _, param in ipairs(route.pattern:params()) do params[#params + 1] = param end
  local own_plan, caught = new_plan(route.scope, route.uses, route.hooks)
  own_plan.route = route
  local shown = shown_params(route, route.uses, params, #host_params)
  return chain.runner {
    name = label_of(route), params = argument_names(route, route.uses, params, #host_params),
    optional = all_optional(params), steps = route_steps(route, own_plan, route.uses, caught, shown),
    plan = own_plan, pass = pass,
  }, own_plan
end

--- The rest of ROUTE for a request that another route has passed on: without the middleware that RAN, and
--- with the hooks that come on its way; those around it are the first route's.
---@param route srv.CompiledRoute
---@param ran table<table, boolean>
---@param pass fun(q: srv.Request, r: srv.Response)
---@return fun(q: srv.Request, r: srv.Response)
function plan.of_passed(route, ran, pass)
  local uses = {}
  for _, use in ipairs(route.uses) do if not ran[use.entry] then uses[#uses + 1] = use end end
  local own_hooks = { validated = route.hooks.validated, error = route.hooks.error }
  local own_plan, caught = new_plan(route.scope, uses, own_hooks)
  return chain.inner {
    name = label_of(route), params = {}, optional = true,
    steps = route_steps(route, own_plan, uses, caught, {}), plan = own_plan, pass = pass,
  }
end

--- The runner for a path that no route takes: middleware and hooks around FINAL.
---@param scope srv.Scope
---@param uses table[]
---@param hooks table<string, function|false>
---@param final fun(q: srv.Request, r: srv.Response)
---@return function runner, srv.Plan
function plan.of_path(scope, uses, hooks, final)
  local own_plan, caught = new_plan(scope, uses, hooks)
  local steps = steps_around(own_plan, uses, caught, {})
  steps[#steps + 1] = { kind = "call", fn = final }
  return chain.runner {
    name = "no route", params = {}, optional = true, steps = steps, plan = own_plan, pass = final,
  }, own_plan
end

return plan
