--- What tests/ws/run_ws.py and other clients talk to: each message comes back as it was.
local srv = require "srv"

local app = srv.app()

local LIMIT = { limit = "2MiB" }

app:ws("/ws", LIMIT, {
  message = function(ws, message, kind) ws:send(message, kind) end,
})

app:ws("/linear", LIMIT, function(ws)
  for message, kind in ws:messages() do ws:send(message, kind) end
end)

return app
