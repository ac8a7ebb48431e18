--- srv.health (API, section 14): is the process alive, and should it get requests?
local env = require "srv.core.env"
local factory = require "srv.base.factory"
local log = require "srv.core.log"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local task = require "srv.async.task"

local OPTIONS = { live = "string", ready = "string", checks = "table", timeout = "duration" }

local AT_ONCE = 16
local NO_STORE = { ["Cache-Control"] = "no-store" }

local function names_of(checks)
  local names = {}
  for name, fn in pairs(checks) do
    if type(name) ~= "string" then misuse 'srv.health: checks have names: { db = function() ... end }' end
    if type(fn) ~= "function" then misuse(("srv.health: check %q must be a function"):format(name)) end
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

--- "ok", or "failed" and why for the log. A check fails by false or nil, by an error, or when it takes too long.
local function outcome_of(name, check, limit)
  local ran, passed, err = pcall(task.timeout, limit, check)
  if ran and passed then return "ok" end
  log.warn("health check failed", { check = name, err = tostring(not ran and passed or err or "it gave " .. tostring(passed)) })
  return "failed"
end

local function run_checks(names, checks, limit)
  local outcomes = assert(task.map(names, function(name) return outcome_of(name, checks[name], limit) end, { limit = AT_ONCE }))
  local answer = { status = "ok", checks = {} }
  for i, name in ipairs(names) do
    answer.checks[name] = outcomes[i]
    if outcomes[i] ~= "ok" then answer.status = "failed" end
  end
  return answer
end

local function live() return { status = "ok" }, 200, NO_STORE end

--- While the process drains it still answers what it has, but should get no more.
local function ready_for(checks, limit)
  local names = names_of(checks)
  return function()
    if env.is_draining() then return { status = "draining" }, 503, NO_STORE end
    if #names == 0 then return live() end
    local answer = run_checks(names, checks, limit)
    return answer, answer.status == "ok" and 200 or 503, NO_STORE
  end
end

--- Routes for whoever starts, watches and feeds the process.
---@param opts { live?: string, ready?: string, checks?: table<string, fun(): any>, timeout?: number|string }?
---@return table plugin
return factory.name("srv.health", function(opts)
  opts = options.check("srv.health", opts, OPTIONS)
  local ready = ready_for(opts.checks or {}, opts.timeout or 2)
  return {
    name = "health",
    setup = function(router)
      router:get(opts.live or "/livez", { hidden = true }, live)
      router:get(opts.ready or "/readyz", { hidden = true }, ready)
    end,
  }
end)
