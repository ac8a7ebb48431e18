--- The points of a request's life that an app may listen to (API, section 2, Order).
local answer = require "srv.web.answer"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"

local hooks = {}

--- Those of a request get (req, res); error gets (err, req, res); abort and timeout get (req).
local OF_REQUEST = {
  request = true, validated = true, send = true, sent = true, error = true, abort = true, timeout = true,
}
--- They come when nothing waits for them: what one raises is logged, and the others run.
local QUIET = { sent = true, error = true, abort = true, timeout = true }
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

-- LuaJIT allows 60 upvalues a function.
local UNROLLED_MAX = 50

--- All of LIST in order, with the same arguments. A line for each, for a loop that calls another function in
--- every turn is not compiled as one.
local function sequence(list)
  if #list == 1 then return list[1] end
  if #list > UNROLLED_MAX then
    return function(a, b, c)
      for i = 1, #list do list[i](a, b, c) end
    end
  end
  local names, calls = {}, {}
  for i = 1, #list do names[i], calls[i] = "f" .. i, ("f%d(a, b, c)"):format(i) end
  local code = "local %s = ...\nreturn function(a, b, c)\n%s\nend"
  return assert(loadstring(code:format(table.concat(names, ", "), table.concat(calls, "\n")), "=srv/(hooks)"))(unpack(list))
end

local function quiet_sequence(name, list)
  local what = "hook " .. name
  return function(...)
    for i = 1, #list do answer.guarded(what, list[i], ...) end
  end
end

--- The hooks `request` of LIST as one: all of them run, and it returns the answer if one of them has. So what
--- stands furthest inside has the last word.
local function opening(list)
  if #list == 1 then return list[1] end
  return function(req, res)
    local answered
    for i = 1, #list do
      if list[i](req, res) == res then answered = res end
    end
    return answered
  end
end

--- The hooks NAME of LIST as one function.
---@param name string
---@param list function[]  one at least
---@return function
function hooks.joined(name, list)
  if name == "request" then return opening(list) end
  return QUIET[name] and quiet_sequence(name, list) or sequence(list)
end

return hooks
