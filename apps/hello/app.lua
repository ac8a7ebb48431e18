local srv = require "srv"
local app = srv.app()

app:get("/", function() return "Hello, world!" end)

app:get("/users/:id", function(req)
  return { id = req.params.id }
end)

return app
