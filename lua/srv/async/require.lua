--- require() for modules that may wait while they load.
---
--- A module loads in a task of its own, so that a cancelled request does not take a half loaded
--- module with it: whoever requires it waits for the same load. Where nothing can wait (a C function
--- calls back, or no task runs) it loads on the spot. package.loaders, package.preload and
--- package.loaded mean what they always did.
-- luacheck: globals require package
local script = require "srv.core.script"
local sync = require "srv.core.sync"
local task = require "srv.core.task"
local can_wait = require "srv.core.coroutine".can_wait

local loaded, xpcall, type, ipairs, gsub = package.loaded, xpcall, type, ipairs, string.gsub

---@class srv.ModuleLoad
---@field name string
---@field event userdata          set when it is over
---@field waits table<srv.ModuleLoad, integer>  what its code waits for now, how many times
---@field failed boolean?
---@field error any
---@field trace string?

local loading = {} ---@type table<string, srv.ModuleLoad>
local by_scope = {} ---@type table<any, srv.ModuleLoad>  the module whose load a task belongs to

-- Searching ------------------------------------------------------------------------------------------

local function search(name)
  local tried = {}
  for _, loader in ipairs(package.loaders) do
    local found = loader(name)
    if type(found) == "function" then return found end
    if type(found) == "string" then tried[#tried + 1] = found end
  end
  task.misuse(("module '%s' not found:%s"):format(name, table.concat(tried)))
end

local function find_file(name, path)
  local file, tried = package.searchpath(name, path)
  return file, tried
end

local function broken(name, file, why)
  error(("error loading module '%s' from file '%s':\n\t%s"):format(name, file, why), 0)
end

--- package.path: a/b.lua, a/b/init.lua.
local function lua_loader(name)
  local file, tried = find_file(name, package.path)
  if not file then return tried end
  local chunk, why = script.load(file)
  return chunk or broken(name, file, why)
end

local function open_symbol(name)
  return "luaopen_" .. gsub(gsub(name, "^.*%-", ""), "%.", "_")
end

--- package.cpath: a/b.so with luaopen_a_b.
local function c_loader(name)
  local file, tried = find_file(name, package.cpath)
  if not file then return tried end
  local open, why = script.native(file, open_symbol(name))
  return open or broken(name, file, why)
end

--- a.so with luaopen_a_b: several modules in one file.
local function c_root_loader(name)
  local root = name:match("^([^.]+)%.")
  if not root then return nil end
  local file, tried = find_file(root, package.cpath)
  if not file then return tried end
  local open, why, only_missing = script.native(file, open_symbol(name))
  if open then return open end
  if only_missing then return ("\n\tno module '%s' in file '%s'"):format(name, file) end
  broken(name, file, why)
end

local function under(folders, patterns)
  local paths = {}
  for folder in folders:gmatch("[^:]+") do
    for pattern in patterns:gmatch("[^;]+") do paths[#paths + 1] = folder .. "/" .. pattern end
  end
  return table.concat(paths, ";")
end

local own = script.root .. ":" .. script.root .. "/lua_modules:" .. script.root .. "/lua_modules/"
package.path = under(own .. "share/lua/5.1:" .. script.lua_folders, "?.lua;?/init.lua")
package.cpath = under(own .. "lib/lua/5.1:" .. script.c_folders, "?.so")

-- Loading --------------------------------------------------------------------------------------------

local function keep(loader, name)
  local result = loader(name)
  if result ~= nil then loaded[name] = result end
  if loaded[name] == nil then loaded[name] = true end
end

--- Whoever waits for the load goes on.
local function finish(load, ok, e)
  loading[load.name] = nil
  if not ok then load.failed, load.error = true, e end
  load.event:set()
end

--- A task that is cancelled amid a load (slice_limit) comes back to no line of run().
local function finish_at_end(load, scope)
  task.defer(function(err)
    if loading[load.name] ~= load then return end
    by_scope[scope] = nil
    finish(load, false, ("error loading module '%s':\n\t%s"):format(load.name, err.message))
  end)
end

--- Runs the module's code, in its own task or on the spot.
local function run(load, loader)
  local scope = task.scope()
  if scope then finish_at_end(load, scope) else scope = "no task" end
  local outer = by_scope[scope]
  by_scope[scope] = load
  local ok, e = xpcall(keep, function(e)
    load.trace = task.traceback(e)
    return e
  end, loader, load.name)
  by_scope[scope] = outer
  finish(load, ok, e)
end

local function outcome(load)
  if load.failed then task.raise(load.error, load.trace) end
  return loaded[load.name]
end

-- Waiting --------------------------------------------------------------------------------------------

--- The modules from LOAD on that wait for each other up to GOAL, or nil.
local function way_to(goal, load, seen)
  if load == goal then return load.name end
  if seen[load] then return nil end
  seen[load] = true
  for next_load in pairs(load.waits) do
    local way = way_to(goal, next_load, seen)
    if way then return load.name .. " -> " .. way end
  end
end

local function wait_for(load)
  local me = by_scope[task.scope() or "no task"]
  local circle = me and way_to(me, load, {})
  if circle then
    task.misuse(("modules require each other in a circle: %s -> %s"):format(me.name, circle))
  end
  if not can_wait() then
    task.misuse(("module '%s' is being loaded by another task, and nothing can wait here"):format(load.name))
  end
  if me then me.waits[load] = (me.waits[load] or 0) + 1 end
  load.event:wait()
  if me then me.waits[load] = me.waits[load] > 1 and me.waits[load] - 1 or nil end
  return outcome(load)
end

local function begin(name)
  local loader = search(name)
  local load = { name = name, event = sync.event(), waits = {} }
  loading[name] = load
  if not can_wait() then
    run(load, loader)
    return outcome(load)
  end
  task.background("require", run, load, loader)
  return wait_for(load)
end

local function load_module(name)
  if type(name) == "number" then name = tostring(name) end
  if type(name) ~= "string" then
    task.misuse(("bad argument #1 to 'require' (string expected, got %s)"):format(type(name)))
  end
  local load = loading[name]
  if load then return wait_for(load) end
  return begin(name)
end

package.loaders = { package.loaders[1], package.loaders[2], lua_loader, c_loader, c_root_loader }

function require(name)
  local module = loaded[name]
  if module then return module end
  return load_module(name)
end
