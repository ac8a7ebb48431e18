-- rooms over WebSocket, or SSE and POST where that is blocked; on any number of workers or machines
local srv = require "srv"
local app, bus, db = srv.app(), srv.bus, srv.db "sqlite:chat.db"
local message = srv.schema { text = "string 1..500 trim" }
local signed_in = srv.jwt { key = srv.env("TOKEN_KEY", "string 32.."), alg = "HS256", cookie = "token" }
app:use(srv.helmet(), srv.csrf(), signed_in)

local function say(req, text)
  local row, err = db:insert("messages", { room = req.params.room, author = req.state.user.sub, text = text }, "*")
  if row then bus.publish("room." .. row.room, row) end
  return row, err
end

app:ws("/rooms/:room<slug>", { limit = "4KiB" }, function(ws, req)
  ws:subscribe("room." .. req.params.room)
  for text in ws:messages() do
    local m, err = message:decode(text)
    if m then m, err = say(req, m.text) end
    if not m then ws:send { error = err.expose and err.message or err.title, faults = err.errors } end
  end
end)

app:post("/rooms/:room<slug>", { body = message }, srv.rate_limit { limit = 60 }, function(req)
  return assert(say(req, req.valid.body.text)), 201
end)

app:get("/rooms/:room<slug>/events", function(req, res)
  local room, last = req.params.room, tonumber(req:header "last-event-id") or 0
  local sub = bus.subscribe("room." .. room)                      -- before the history: nothing falls between
  local missed = assert(db:query("select * from messages where room = $1 and id > $2 order by id", room, last))
  local sse = res:sse()
  for _, row in ipairs(missed) do
    sse:send(row, { id = row.id })
    last = row.id
  end
  for row in sub:each() do                                        -- until the client leaves, which cancels us here
    if row.id > last then sse:send(row, { id = row.id }) end
  end
end)
return app
