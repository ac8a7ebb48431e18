--- What happens in a room, as it happens: messages and who is here, over a socket or as server-sent events.
---
--- A socket passes on what the bus brings, as one frame for all. That may come out of order, or not at all: the page
--- sees by the numbers, and asks. Events are in order, each with its number for an id, for who has no script of ours.
local srv = require "srv"
local here = require "chat.here"
local messages = require "chat.messages"
local rooms = require "chat.rooms"

local live = {}

local LOOK_AGAIN = "20s"             -- a bus between machines may lose what the database has
local NO_TEXT, SIGNED_OUT = 1003, 1008   -- why a socket is closed
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

--- A browser that comes back says which number it has seen last, and gets what it has missed.
---@param req srv.Request  req.state.room, req.state.person; query: after
---@param res srv.Response
function live.events(req, res)
  local room, person = req.state.room, req.state.person
  local heard = assert(srv.bus.subscribe(messages.topic(room.slug), { overflow = "close" })) -- before what was missed
  here.enter(room.slug, person, function() heard:close() end)
  local events = res:sse { heartbeat = "15s" }
  events:send(hello(room), { retry = math.random(BACK_AFTER_MS[1], BACK_AFTER_MS[2]) / 1000 })
  local seen = send_missed(events, room.slug, tonumber(events.last_id) or req.valid.query.after or room.last)
  while seen do
    local event, err = heard:receive(LOOK_AGAIN)
    if not event and err.code ~= "timeout" then return end -- too slow for the room: it comes back for the rest; or signed out
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

--- As a page can show it.
local function reason_of(err)
  local fault = err.errors and err.errors[1]
  if not fault then return err.expose and err.message or err.title end
  return ("the %s %s"):format(fault.path == "" and "message" or fault.path:sub(2), fault.message)
end

--- What it is refused for goes to the sender alone; what is said comes back to all, the sender too.
local function answer(ws, room, person, text)
  local said, err = messages.RULE:decode(text)
  local nonce = said and said.nonce
  if said then said, err = messages.say(room, person, said) end
  if said then return ws:send(said) end -- now, whatever the bus does: it knows its number, and drops the second one
  ws:send { type = "refused", nonce = nonce, status = err.status, message = reason_of(err) }
  if err.status == 401 then ws:close(SIGNED_OUT, "signed out") end
end

--- One coroutine for each socket, until it closes.
---@param ws srv.WebSocket
---@param req srv.Request  req.state.room, req.state.person
function live.socket(ws, req)
  local room, person = req.state.room.slug, req.state.person
  assert(ws:subscribe(messages.topic(room)))
  here.enter(room, person, function() ws:close(SIGNED_OUT, "signed out") end)
  ws:send(hello(assert(rooms.find(room)))) -- what was said before the subscription is in its number
  for text, kind in ws:messages() do
    if kind ~= "text" then return ws:close(NO_TEXT, "only text is said here") end
    answer(ws, room, person, text)
  end
end

return live
