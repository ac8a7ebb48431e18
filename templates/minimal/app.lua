--- @NAME@: one route. Save this file while `srv @NAME@` runs, and the next request meets the new version.
local srv = require "srv"

local app = srv.app()

app:get("/", { query = { name = "string 1..40 trim = world" } }, function(req)
  return { hello = req.valid.query.name }
end)

return app
