--- The points of a request's life that an app may listen to (API, section 2, Order).
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"

local hooks = {}

--- Those of a request get (req, res); error gets (err, req, res); abort and timeout get (req).
local OF_REQUEST = {
  request = true, validated = true, send = true, sent = true, error = true, abort = true, timeout = true,
}
--- Once in each worker and generation; no arguments.
local OF_APP = { start = true, stop = true }

hooks.names = {}
for name in pairs(OF_REQUEST) do hooks.names[name] = true end
for name in pairs(OF_APP) do hooks.names[name] = true end

---@param name string
---@return boolean
function hooks.is_of_app(name) return OF_APP[name] == true end

--- Raises unless NAME is a hook and FN a function.
---@param where string
---@param name any
---@param fn any
function hooks.check(where, name, fn)
  if not hooks.names[name] then misuse(where .. ": " .. options.unknown("hook", name, hooks.names)) end
  if type(fn) ~= "function" then misuse(("%s: hook %q must be a function"):format(where, name)) end
end

--- All of LIST in order, with the same arguments; false stands for none, so that callers can test it.
---@param list function[]
---@return function|false
function hooks.sequence(list)
  if #list <= 1 then return list[1] or false end
  return function(...)
    for i = 1, #list do list[i](...) end
  end
end

--- The hooks `request` of LIST as one: all of them run, and it returns the answer if one of them has. So what
--- stands furthest inside has the last word.
---@param list (fun(req: srv.Request, res: srv.Response): srv.Response?)[]
---@return function|false
function hooks.opening(list)
  if #list <= 1 then return list[1] or false end
  return function(req, res)
    local answered
    for i = 1, #list do
      if list[i](req, res) == res then answered = res end
    end
    return answered
  end
end

return hooks
