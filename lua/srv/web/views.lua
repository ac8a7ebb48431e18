--- Makes an app's views ready before its first request, in the server as under srv.test. An app that
--- has none does not load the engine.
local env = require "srv.core.env"
local folder = require "srv.core.folder"

local views = {}

--- Gives the views SERVED's route addresses as `url`, and compiles them all, so that what is wrong in
--- one is told now. Raises the faults, a line each.
---@param served srv.Router
function views.prepare(served)
  if not package.loaded["srv.web.template"] and not folder.files(env.root .. "/views") then return end
  local template = require "srv.web.template"
  template.use { url = function(...) return served:url(...) end }
  local messages = template.check()
  if #messages > 0 then error(table.concat(messages, "\n"), 0) end
end

return views
