--- Guarded globals (API, section 15). The metatable is asked for new names only, so existing ones
--- cost what they always did.
local script = require "srv.core.script"

local globals = {}

local getinfo, rawset, find = debug.getinfo, rawset, string.find

--- Of the app, since its files are named relative to its folder; libraries have absolute paths, and
--- code made from strings belongs to whoever made it.
local function is_apps_own(source)
  return find(source, "^@[^/]") ~= nil or find(source, "^=srv/") ~= nil
end

local function on_new_name(env, name, value)
  local caller = getinfo(2, "Sl")
  if caller and is_apps_own(caller.source) then
    error(("assignment to the undeclared global %q: write `local %s`, or declare it with srv.global(%q, value)")
      :format(tostring(name), tostring(name), tostring(name)), 2)
  end
  rawset(env, name, value)
  if caller and caller.currentline > 0 then
    script.warn("a module set a global", tostring(name), ("%s:%d"):format(caller.short_src, caller.currentline))
  end
end

--- srv.global(name, value): a global of the app, declared once and for all.
---@param name string
---@param value any
function globals.declare(name, value)
  if type(name) ~= "string" then
    error(("srv.global: a name is a string, not a %s"):format(type(name)), 2)
  end
  rawset(_G, name, value)
end

function globals.guard()
  setmetatable(_G, { __newindex = on_new_name })
end

return globals
