--- Paths that no route takes: static files, OPTIONS, 405, a slash too many, 404 by the innermost
--- app:not_found. Middleware and hooks of the mounts around run here too.
local answer = require "srv.web.answer"
local compile = require "srv.web.compile"
local errors = require "srv.base.errors"
local http = require "srv.core.http"
local objects = require "srv.web.objects"
local plan = require "srv.web.plan"
local static = require "srv.web.static"

local missing = {}

--- What an answer of app:not_found is worth without a status of its own.
local NOT_FOUND = 404

--- The mount that PATH lies in: the one with the longest prefix.
local function scope_of(app, req)
  local deepest = app.root
  for _, scope in ipairs(app.scopes) do
    if scope.segments > deepest.segments and http.is_host(req, scope.host_index) and http.under(req, scope.pattern) then
      deepest = scope
    end
  end
  return deepest
end

--- Which of the entries with a prefix cover the path: one character each. Few of these texts exist,
--- so the chain made for one is kept.
local function coverage(list, req)
  local flags = {}
  for _, entry in ipairs(list) do
    if entry.pattern then flags[#flags + 1] = http.under(req, entry.pattern) and "1" or "0" end
  end
  return table.concat(flags)
end

-- Answers -----------------------------------------------------------------------------------------------

local function options(r, allow)
  http.record(r, false, http.EMPTY, nil, 204, { Allow = allow })
end

--- The path with the slash at its end the other way.
local function move(q, r)
  local path, query = q.path, q.original_url:match("%?.*$") or ""
  local other = path:sub(-1) == "/" and path:gsub("/+$", "") or path .. "/"
  local status = (q.method == "GET" or q.method == "HEAD") and 301 or 308
  r:redirect(other .. query, status)
end

local function ask_not_found(q, r, scope)
  while scope do
    for _, show in ipairs(scope.router.declared.not_found_handlers) do
      if answer.replace(r, NOT_FOUND, show(q, r)) then return true end
    end
    scope = scope.parent
  end
  return false
end

local function not_found(q, r, scope)
  if not ask_not_found(q, r, scope) then errors.raise(404, "nothing is at this path") end
end

local function no_method(q, r, allow)
  if q.method == "OPTIONS" then return options(r, allow) end
  errors.raise(405, q.method .. " is not allowed at this path", { headers = { Allow = allow } })
end

--- `OPTIONS *` asks about the server as a whole (RFC 9110, 9.3.7).
local function is_about_server(q)
  return q.method == "OPTIONS" and q.original_url == "*"
end

local function finish(app, q, r, scope)
  local kind, allow = http.miss(q)
  if kind == "bad_escape" then errors.raise(400, "the path has a broken percent-escape") end
  if kind == "moved" then return move(q, r) end
  if static.serve(app.statics, q, r) then return end
  if kind == "no_method" then return no_method(q, r, allow) end
  if is_about_server(q) then return options(r, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS") end
  not_found(q, r, scope)
end

-- --------------------------------------------------------------------------------------------------------

--- The function that C calls for such a path, and the one that a route's last next() ends in.
---@param app srv.CompiledApp
---@return fun(p: number) unmatched, fun(q: srv.Request, r: srv.Response) passed
function missing.handlers(app)
  local chains = {}

  local function chain_for(scope, req)
    local key = scope.index .. ":" .. coverage(scope.uses, req) .. ":" .. coverage(scope.hooks, req)
    local made = chains[key]
    if not made then
      local uses, hooks = compile.for_path(scope, req)
      local run, own_plan = plan.of_path(scope, uses, hooks, function(q, r) finish(app, q, r, scope) end)
      made = { run = run, plan = own_plan }
      chains[key] = made
    end
    return made
  end

  local function unmatched(p)
    local req = objects.request(p)
    local made = chain_for(scope_of(app, req), req)
    http.set_plan(p, made.plan, made.plan.hooks.sent, made.plan.hooks.abort)
    return made.run(p)
  end

  local function passed(q, r)
    if not static.serve(app.statics, q, r) then not_found(q, r, http.plan(q).inner) end
  end

  return unmatched, passed
end

return missing
