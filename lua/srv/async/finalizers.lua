--- Finalizers that cannot raise. LuaJIT lets an error in a finalizer pass on into whatever code the
--- collector interrupted, and where that is the exit of a compiled loop, the process crashes. So each
--- finalizer that Lua code can set runs inside a pcall, and its error is logged.
-- luacheck: globals newproxy
local script = require "srv.core.script"

local pcall, rawset, type = pcall, rawset, type

--- Finalizer -> the same, guarded: made once for each.
local guarded_of = setmetatable({}, { __mode = "k" })

local function guard(finalizer)
  if type(finalizer) ~= "function" then return finalizer end -- a C function through FFI raises nothing
  local guarded = guarded_of[finalizer]
  if not guarded then
    guarded = function(object)
      local ok, e = pcall(finalizer, object)
      if not ok then script.warn("error in a finalizer", tostring(e), "__gc") end
    end
    guarded_of[finalizer] = guarded
  end
  return guarded
end

local function set_guarded(metatable, name, value)
  rawset(metatable, name, name == "__gc" and guard(value) or value)
end

local make_proxy = newproxy

function newproxy(like)
  local proxy = make_proxy(like)
  if like == true then setmetatable(getmetatable(proxy), { __newindex = set_guarded }) end
  return proxy
end

local open_ffi = package.preload.ffi

package.preload.ffi = open_ffi and function(...)
  local ffi = open_ffi(...)
  local set_finalizer, make_metatype = ffi.gc, ffi.metatype
  function ffi.gc(object, finalizer) return set_finalizer(object, guard(finalizer)) end
  function ffi.metatype(ctype, metatable)
    if metatable.__gc then
      local copy = {}
      for name, value in pairs(metatable) do copy[name] = value end
      copy.__gc = guard(metatable.__gc)
      metatable = copy
    end
    return make_metatype(ctype, metatable)
  end
  return ffi
end
