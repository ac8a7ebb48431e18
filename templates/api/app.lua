--- @NAME@: an API. Each folder of routes/ is a part of it: init.lua says what the routes take, controllers.lua
--- answers, services.lua does the work and knows nothing of HTTP.
local srv = require "srv"

local app = srv.app { timeout = "10s" }

app:use(srv.request_id(), srv.helmet(), srv.openapi { title = "@NAME@", version = "0.1.0" })
app:use(srv.health())
app:mount("/items", require "routes.items")
app:get("/", { hidden = true }, function(_, res) return res:redirect "/docs" end)

return app
