--- The last step of loading an app, run by the server in the task that loads it: what app.lua
--- returned becomes the site that serves.

local app = require "srv.web.app"
local linked = require "srv.async.linked"
local machines = require "srv.db.machines"
local pool = require "srv.db.pool"
local timer = require "srv.web.timer"
local turns = require "srv.db.turns"
local views = require "srv.web.views"

--- A folder without app.lua is served as it is: static files, index.html for folders.
local function files_only()
  local site = app.new()
  site:static("/", ".")
  return site
end

local function bus_of_machines() return require "srv.db.bus" end

---@param has_file boolean  false: there is no app.lua
---@param value any         what it returned
---@param where string      its name, for errors
---@return userdata site
return function(has_file, value, where)
  if not has_file then value = files_only() end
  pool.ready()
  turns.introduce(timer)
  if machines.are_linked() then linked.bus = bus_of_machines end
  local site = app.install(value, where)
  views.prepare(value)
  return site
end
