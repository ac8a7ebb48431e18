--- The last step of loading an app, run by the server in the task that loads it: what app.lua
--- returned becomes the site that serves.

local app = require "srv.web.app"
local env = require "srv.core.env"
local folder = require "srv.core.folder"
local pool = require "srv.db.pool"

--- A folder without app.lua is served as it is: static files, index.html for folders.
local function files_only()
  local site = app.new()
  site:static("/", ".")
  return site
end

--- Compiles the views, so that what is wrong in one is told before a request meets it. An app that
--- has none does not load what makes them.
local function prepare_views(served)
  if not package.loaded["srv.web.template"] and not folder.files(env.root .. "/views") then return end
  local template = require "srv.web.template"
  template.use { url = function(...) return served:url(...) end }
  local messages = template.check()
  if #messages > 0 then error(table.concat(messages, "\n"), 0) end
end

---@param has_file boolean  false: there is no app.lua
---@param value any         what it returned
---@param where string      its name, for errors
---@return userdata site
return function(has_file, value, where)
  if not has_file then value = files_only() end
  pool.ready()
  local site = app.install(value, where)
  prepare_views(value)
  return site
end
