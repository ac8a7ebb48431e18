--- What a VM is before the first line of an app runs: the server's coroutines, require, globals.
-- luacheck: globals os.exit os.setlocale dofile setfenv
local globals = require "srv.async.globals"
require "srv.async.coroutine"
require "srv.async.finalizers"
require "srv.async.require"
local misuse = require "srv.core.task".misuse

--- Stands in the place of a function that would act on the whole process.
local function refuse(name, instead)
  return function() misuse(name .. " would act on the whole server: " .. instead) end
end

os.exit = refuse("os.exit", "app:stop() drains and ends the process")

local set_locale = os.setlocale

--- The locale is the process's, and another decimal point would break every other worker.
function os.setlocale(locale, category)
  if locale == nil or locale == "C" or locale == "POSIX" then return set_locale(nil, category) end
  return nil
end

--- A file may wait while it runs, which the native dofile cannot.
function dofile(path)
  local chunk, why = loadfile(path)
  if not chunk then error(why, 2) end
  return chunk()
end

local set_environment = setfenv

--- Level 0 is the coroutine's, and coroutines serve one request after the other.
function setfenv(target, environment)
  if target == 0 then misuse "setfenv(0, ...) would change the globals of later requests" end
  if type(target) == "number" then target = target + 1 end
  local changed = set_environment(target, environment)
  return changed
end

globals.guard()
