--- What happens in a room, as it happens: messages in the order of their numbers, and who is here.
local srv = require "srv"
local here = require "chat.here"
local messages = require "chat.messages"

local live = {}

local LOOK_AGAIN = "20s"             -- a bus between machines may lose what the database has
local BACK_AFTER_MS = { 300, 1500 }  -- when a browser comes back: not all of them at once

--- What is said first: how far the room is.
local function hello(room) return { type = "hello", last = room.last } end

--- All after number SEEN; gives the number of the last one, or nil when the client has gone.
local function send_missed(events, room, seen)
  repeat
    local missed = assert(messages.after(room, seen))
    for _, message in ipairs(missed) do
      if not events:send(message, { id = message.number }) then return nil end
      seen = message.number
    end
  until #missed < messages.PAGE
  return seen
end

--- Server-sent events. Each message has its number for an id, so a browser that comes back gets what it has missed.
---@param req srv.Request  req.state.room, req.state.person; query: after
---@param res srv.Response
function live.events(req, res)
  local room, person = req.state.room, req.state.person
  local heard = assert(srv.bus.subscribe(messages.topic(room.slug), { overflow = "close" })) -- before what was missed
  here.enter(room.slug, person)
  local events = res:sse { heartbeat = "15s" }
  events:send(hello(room), { retry = math.random(BACK_AFTER_MS[1], BACK_AFTER_MS[2]) / 1000 })
  local seen = send_missed(events, room.slug, tonumber(events.last_id) or req.valid.query.after or room.last)
  while seen do
    local event, err = heard:receive(LOOK_AGAIN)
    if not event and err.code ~= "timeout" then return end -- too slow for the room: it comes back for the rest
    if event and event.type ~= "message" then
      events:send(event)
    elseif event and event.number == seen + 1 then
      events:send(event, { id = event.number })
      seen = event.number
    elseif not event or event.number > seen then
      seen = send_missed(events, room.slug, seen)
    end
  end
end

return live
