local srv = require "srv"
local app = srv.app { timeout = "10s" }
app:use(srv.helmet(), srv.cors(), srv.compress(), srv.openapi { title = "News", version = "1.0" })
app:mount("/news", require "routes.news")
app:static("/", "public")
return app
