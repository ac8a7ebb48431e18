--- @NAME@: a chat. What is said is posted, and comes to every browser as server-sent events; srv.bus carries it from
--- worker to worker, and from machine to machine where REDIS_URL is set.
local srv = require "srv"
local history = require "history"

local app = srv.app()

app:use(srv.helmet(), srv.csrf())

local message = {
  name = "string 1..40 trim",
  text = "string 1..500 trim",
}

local not_too_fast = srv.rate_limit { limit = 60, window = "1m", name = "say" }

app:post("/messages", { body = message }, not_too_fast, function(req)
  local said = history.add(req.valid.body)
  assert(srv.bus.publish("chat", said))
  return said, 201
end)

-- A browser that comes back says what it has seen last, and gets what it has missed.
app:get("/events", function(_, res)
  local messages = srv.bus.subscribe "chat" -- before the history, so that nothing falls between
  local events = res:sse { heartbeat = "15s" }
  local seen = tonumber(events.last_id) or 0
  for _, said in ipairs(history.since(seen)) do
    events:send(said, { id = said.id })
    seen = said.id
  end
  for said in messages:each() do
    if said.id > seen then events:send(said, { id = said.id }) end
  end
end)

app:static("/", "public")

return app
