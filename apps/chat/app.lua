--- Chat: rooms over WebSocket, or server-sent events and POST where that is blocked; on any number of workers, and
--- with REDIS_URL (and a DATABASE_URL that all reach) on any number of machines.
local srv = require "srv"
local here = require "chat.here"
local people = require "chat.people"

local app = srv.app { timeout = "10s", body_limit = "16KiB" }

-- Nothing in a page but what lies in public: no inline script, no inline style, no other site.
local CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
  .. "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

app:use(srv.proxy_trust { "loopback" }, srv.helmet { csp = CSP, frame = "DENY" }, srv.compress())
app:use(srv.session { name = "chat", store = "cookie", ttl = people.KEPT })

app:mount("/rooms", require "routes.rooms")
app:mount("/", require "routes.doors")
app:static("/", "public")

here.serve(app)

app:every("1h", function()
  local freed, err = people.sweep()
  if not freed then srv.log.warn("names were not freed", { err = err }) end
end)

return app
