--- A room: its page, its messages, and what happens in it.
local srv = require "srv"
local guard = require "routes.guard"
local here = require "chat.here"
local live = require "chat.live"
local messages = require "chat.messages"
local rooms = require "chat.rooms"

local router = srv.router()
router:use(guard.identify)

--- Older ones lie behind those of a page, unless it begins with number 1.
local function has_older(list) return #list > 0 and list[1].number > 1 end

router:get("/:room<slug>", { query = { before = "integer 1..?" } }, guard.signed_in_page, guard.room, function(req, res)
  local slug, before = req.state.room.slug, req.valid.query.before
  local list = assert(messages.before(slug, before))
  return res:header("Cache-Control", "no-store"):render("room", {
    room = slug, me = req.state.person, rooms = assert(rooms.all()), here = assert(here.of(slug)), messages = list,
    last = #list > 0 and list[#list].number or 0, older = has_older(list) and list[1].number, is_past = before ~= nil,
    text_max = messages.TEXT_MAX,
  })
end)

local which = { before = "integer 1..?", after = "integer 0..?" }

router:get("/:room<slug>/messages", { query = which }, guard.signed_in, guard.room, function(req)
  local slug, query = req.state.room.slug, req.valid.query
  local list
  if query.after then
    list = assert(messages.after(slug, query.after))
  else
    list = assert(messages.before(slug, query.before))
  end
  return { messages = list, older = has_older(list), last = req.state.room.last }
end)

--- JSON for the page's script; a form for browsers without one.
local sent = { body = messages.RULE, consumes = { "json", "form" } }

router:post("/:room<slug>/messages", sent, guard.signed_in, guard.room, function(req, res)
  local message = assert(messages.say(req.state.room.slug, req.state.person, req.valid.body))
  if req:is "form" then return res:redirect("/rooms/" .. req.state.room.slug, 303) end
  return message, 201
end)

local from = { query = { after = "integer 0..?" } }

router:get("/:room<slug>/events", from, guard.signed_in, guard.room, guard.place, live.events)

-- SOCKETS=false: for where they cannot pass, so that browsers need not try.
if srv.env("SOCKETS", "boolean = true") then
  router:ws("/:room<slug>/socket", { limit = "8KiB", buffer = "256KiB", overflow = "close" },
    guard.signed_in, guard.room, guard.place, live.socket)
end

return router
