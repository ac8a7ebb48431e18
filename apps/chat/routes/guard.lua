--- Who asks, and for which room.
local srv = require "srv"
local here = require "chat.here"
local people = require "chat.people"
local rooms = require "chat.rooms"

local guard = {}

--- req.state.person, where somebody is signed in. Someone else may have the name by now: then nobody is.
function guard.identify(req, _, next)
  local person, err = people.find(req.session.person)
  if err and err.code ~= "no_row" then return nil, err end
  if not person and req.session.person then req.session:destroy() end
  req.state.person = person
  return next()
end

--- For programs: 401.
function guard.signed_in(req, _, next)
  if not req.state.person then srv.error(401, "sign in first", { code = "signed_out" }) end
  return next()
end

--- For people: the page to sign in, and from there back to here.
function guard.signed_in_page(req, res, next)
  if not req.state.person then return res:redirect("/?" .. srv.url.query { to = req.path }, 303) end
  return next()
end

--- req.state.room, or 404.
function guard.room(req, _, next)
  req.state.room = assert(rooms.find(req.params.room))
  return next()
end

--- Nobody listens in a hundred windows.
function guard.place(req, _, next)
  if not here.has_place(req.state.person) then
    srv.error(429, "too many windows are open here", { code = "too_many_windows" })
  end
  return next()
end

return guard
