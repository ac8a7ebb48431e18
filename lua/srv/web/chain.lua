--- The runner of each route: one generated function that makes req and res, calls middleware and
--- handler, and hands what they returned to C.
---
--- Why code is generated (docs/internals/requests.md): a runner of its own prototype keeps its trace
--- when another route cannot be compiled; `{ p }` tables that do not escape it cost nothing, since
--- the JIT sinks them; a closure made for each request would end every trace, a callable table
--- with the pair in it does not.
---
--- A chain is a list of steps from the outside in. Each becomes `s<k>(q, r)`, which ends with the
--- answer recorded in r; `next` of step k is a table that calls `s<k+1>`.
local answer = require "srv.web.answer"
local http = require "srv.core.http"
local json = require "srv.core.json"
local request = require "srv.web.request"
local response = require "srv.web.response"

local chain = {}

-- LuaJIT allows 200 locals a function; a step takes up to three.
local STEPS_MAX = 60

---@class srv.Step
---@field kind "call"|"guard"|"opening"|"check"|"params"|"catch"|"shape"
---@field fn function          call, guard: (q, r, next); opening, check, shape: (q, r); catch: (q, r, err)
---@field depends userdata?    guard: only where this prefix covers the path
---@field last boolean?        guard: its next() leaves the route
---@field params string[]?     params: what the inner router sees

---@class srv.ChainSpec
---@field name string          chunk name: "GET /users/:id"
---@field params string[]      names in the order of the runner's arguments; "" for one that is not shown
---@field optional boolean     all of them may be missing
---@field steps srv.Step[]
---@field plan srv.Plan
---@field pass fun(q: table, r: table)  runs the next matching route

--- Whether FN looks at a third argument, its `next`.
local function wants_next(fn)
  if type(fn) ~= "function" then return true end
  local info = debug.getinfo(fn, "u")
  return info.isvararg or info.nparams > 2 or debug.getinfo(fn, "S").what == "C"
end

-- Source of the steps ------------------------------------------------------------------------------

--- What comes after step k: the following step, or for the last one the next matching route.
local function following(k, count)
  return k < count and ("s%d(q, r)"):format(k + 1) or "pass(q, r)"
end

local source = {}

function source.call(k)
  return ("local f%d = steps[%d].fn\nlocal function s%d(q, r) settle(r, f%d(q, r)) end\n"):format(k, k, k, k)
end

local GUARD = [[
local f%d, N%d = steps[%d].fn, {}
function N%d.__call(n, what, more)
  local q, r = n[1], n[2]
  if not q then again() end
  if what ~= nil or more ~= nil then check_next(f%d, q, r, what, more) end
  n[1] = false
  if what == "route" then pass(q, r) else %s end
  return r
end
local function s%d(q, r)
  local n = setmetatable({ q, r }, N%d)
  resettle(n, r, f%d(q, r, n))
end
]]

local DEPENDS = [[
local d%d, g%d = steps[%d].depends, s%d
local function s%d(q, r)
  if under(q, d%d) then return g%d(q, r) end
  return %s
end
]]

function source.guard(k, step, count)
  local code = GUARD:format(k, k, k, k, k, following(k, count), k, k, k)
  if not step.depends then return code end
  return code .. DEPENDS:format(k, k, k, k, k, k, k, following(k, count))
end

function source.check(k, _, count)
  return ("local f%d = steps[%d].fn\nlocal function s%d(q, r) f%d(q, r) return %s end\n")
    :format(k, k, k, k, following(k, count))
end

--- A hook `request` that returns r has answered.
function source.opening(k, _, count)
  return ("local f%d = steps[%d].fn\nlocal function s%d(q, r) if f%d(q, r) == r then return end return %s end\n")
    :format(k, k, k, k, following(k, count))
end

function source.shape(k, _, count)
  return ("local f%d = steps[%d].fn\nlocal function s%d(q, r) %s f%d(q, r) end\n")
    :format(k, k, k, following(k, count), k)
end

local CATCH = [[
local f%d = steps[%d].fn
local function s%d(q, r)
  local ok, err = xpcall(s%d, trace, q, r)
  if not ok then f%d(q, r, err) end
end
]]

function source.catch(k) return CATCH:format(k, k, k, k + 1, k) end

local PARAMS = [[
local function s%d(q, r)
  local outer = q.params
  q.params = setmetatable({ %s }, Object)
  %s
  q.params = outer
end
]]

function source.params(k, step, count)
  local fields = {}
  for i, name in ipairs(step.params) do fields[i] = ("[%q] = outer[%q]"):format(name, name) end
  return PARAMS:format(k, table.concat(fields, ", "), following(k, count))
end

-- Source of the runner ---------------------------------------------------------------------------

local HEAD = [[
local steps, env = ...
local setmetatable, xpcall, type, getmetatable = setmetatable, xpcall, type, getmetatable
local Req, Res, Object, Array, trace = env.Req, env.Res, env.Object, env.Array, env.trace
local settle, resettle, again, under, pass = env.settle, env.resettle, env.again, env.under, env.pass
local check_next = env.check_next
local slow, fail, complete, is_ready, plan = env.slow, env.fail, env.complete, env.is_ready, env.plan
]]

local function arguments(count)
  local list = { "p" }
  for i = 1, count do list[i + 1] = "a" .. i end
  return table.concat(list, ", ")
end

--- Room for what schemas fill in.
local function room_for_valid(spec)
  for _, step in ipairs(spec.steps) do
    if step.kind == "check" then return ", valid = nil" end
  end
  return ""
end

--- `{ p, params = { id = a1 } }`; of equal names the last (the inner one) counts.
local function request_table(spec)
  local at, fields, room = {}, {}, room_for_valid(spec)
  for i, name in ipairs(spec.params) do if name ~= "" then at[name] = i end end
  for i, name in ipairs(spec.params) do
    if at[name] == i then fields[#fields + 1] = ("[%q] = a%d"):format(name, i) end
  end
  if #fields == 0 then return ("{ p%s }"):format(room) end
  local params = "{ " .. table.concat(fields, ", ") .. " }"
  return ("{ p, params = %s%s }"):format(spec.optional and ("setmetatable(%s, Object)"):format(params) or params, room)
end

-- A handler alone: what it returns goes to C at once if it is text or a table of plain data.
-- (`return xpcall(...)` would be a tail call, which never becomes a root trace.)
local BARE = [[
local handler = steps[1].fn
return function(%s)
  local ok, body, status, headers = xpcall(handler, trace, setmetatable(%s, Req), setmetatable({ p }, Res))
  if ok then
    local kind = type(body)
    if kind == "string" then return body, status, headers end
    if kind == "table" then
      local mark = getmetatable(body)
      if not mark or mark == Object or mark == Array then return body, status, headers end
    end
    if kind == "nil" and status == nil and is_ready(p) then return end
    return slow(p, plan, body, status, headers)
  end
  return fail(p, plan, body)
end
]]

local ONION = [[
return function(%s)
  local q, r = setmetatable(%s, Req), setmetatable({ p }, Res)
  local ok, err = xpcall(s1, trace, q, r)
  if %s then return end
  return complete(q, r, plan, ok, err)
end
]]

local function is_bare(spec)
  return #spec.steps == 1 and spec.steps[1].kind == "call" and not spec.plan.hooks.send
end

local function generate(spec)
  local arguments_text, request_text = arguments(#spec.params), request_table(spec)
  if is_bare(spec) then return HEAD .. BARE:format(arguments_text, request_text) end
  local parts, count = { HEAD }, #spec.steps
  for k = count, 1, -1 do parts[#parts + 1] = source[spec.steps[k].kind](k, spec.steps[k], count) end
  local is_over = spec.plan.hooks.send and "false" or "ok and is_ready(p)"
  parts[#parts + 1] = ONION:format(arguments_text, request_text, is_over)
  return table.concat(parts)
end

--- The steps alone, without a runner: for routes that another route passes to.
local function generate_inner(spec)
  local parts, count = { HEAD }, #spec.steps
  for k = count, 1, -1 do parts[#parts + 1] = source[spec.steps[k].kind](k, spec.steps[k], count) end
  parts[#parts + 1] = "return s1\n"
  return table.concat(parts)
end

local function compile(spec, code)
  if #spec.steps > STEPS_MAX then
    error(("%s: more than %d functions stand in one chain"):format(spec.name, STEPS_MAX), 0)
  end
  local chunk = assert(loadstring(code, "=srv/(runner of " .. spec.name .. ")"))
  return chunk(spec.steps, {
    Req = request.class, Res = response.class, Object = json.object_mark, Array = json.array_mark,
    trace = answer.trace, settle = answer.settle, resettle = answer.resettle,
    again = answer.again, check_next = answer.check_next,
    under = answer.under, slow = answer.slow, fail = answer.fail_bare, complete = answer.complete,
    is_ready = http.is_ready, pass = spec.pass, plan = spec.plan,
  })
end

--- A function as a step: a guard gets `next`, the last one only if it looks at it.
---@param fn function
---@param is_last boolean
---@param depends userdata?
---@return srv.Step
function chain.step(fn, is_last, depends)
  if is_last and not depends and not wants_next(fn) then return { kind = "call", fn = fn } end
  return { kind = "guard", fn = fn, depends = depends }
end

---@param spec srv.ChainSpec
---@return fun(p: number, ...): any, integer?, table?
function chain.runner(spec) return compile(spec, generate(spec)) end

---@param spec srv.ChainSpec
---@return fun(q: table, r: table)
function chain.inner(spec) return compile(spec, generate_inner(spec)) end

return chain
