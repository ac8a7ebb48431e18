--- What bench/run asks for: the least an app can do.
local srv = require "srv"

local app = srv.app()

app:get("/", function() return "hello" end)

app:get("/users/:id", function(req) return { id = req.params.id } end)

app:get("/wait", function()
  srv.sleep("250ms")
  return "waited"
end)

app:get("/wait/:seconds<number>", function(req)
  srv.sleep(req.params.seconds)
  return "waited"
end)

return app
