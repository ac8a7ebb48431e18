--- An app loaded to be looked at, not to serve: `srv routes`, `srv check`. No hook runs, no socket opens.
local app = require "srv.web.app"
local router = require "srv.web.router"
local script = require "srv.core.script"
local task = require "srv.async.task"

local load = {}

local function with_trace(err)
  return tostring(err) .. "\n" .. debug.traceback("", 2):gsub("^%s+", "")
end

local function run(app_file)
  local chunk, why = script.load(app_file)
  if not chunk then error(why, 0) end
  local value = chunk()
  if not router.is(value) then
    error(("app.lua returns %s: it must end with `return app`"):format(value == nil and "nothing" or "a " .. type(value)), 0)
  end
  return value
end

--- What app.lua returns, or what is wrong, with its place and a traceback.
---@param app_file string
---@return srv.Router? app
---@return string? problem
function load.app(app_file)
  task.sleep(0) -- a command begins before the loop's first turn, and only turns are watched: this app may loop for ever
  local ok, value = xpcall(run, with_trace, app_file)
  if ok then return value end
  return nil, value
end

--- What the app would serve, held against itself; or what is wrong.
---@param loaded srv.Router
---@return srv.CompiledApp? made
---@return string? problem
function load.made(loaded)
  local ok, made = xpcall(app.assemble, with_trace, loaded)
  if ok then return made end
  return nil, made
end

return load
