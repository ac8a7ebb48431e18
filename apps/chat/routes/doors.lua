--- The doors: signing in and out, and the list of rooms.
local srv = require "srv"
local guard = require "routes.guard"
local here = require "chat.here"
local names = require "chat.names"
local people = require "chat.people"
local rooms = require "chat.rooms"

local COUNTS_KEPT = "1s"   -- a page for each visitor need not count for each

local router = srv.router()
router:use(guard.identify)

local not_too_often = srv.rate_limit { limit = srv.env("SIGN_INS", "integer 1.. = 20"), window = "1m", name = "sign-in" }
local not_too_many = srv.rate_limit {
  limit = 10, window = "10m", name = "rooms", key = function(req) return req.state.person.id end,
}

--- Where to go after signing in: a room of ours, or the list. Never another site.
local function destination(to)
  return type(to) == "string" and to:match "^/rooms/[a-z0-9-]+$" or "/"
end

local function show_sign_in(res, fields)
  return res:header("Cache-Control", "no-store"):render("sign_in", {
    name = fields.name or "", to = destination(fields.to), fault = fields.fault or false,
  })
end

local function show_rooms(req, res, fields)
  return res:header("Cache-Control", "no-store"):render("rooms", {
    me = req.state.person, rooms = assert(rooms.all()), slug = fields.slug or "", fault = fields.fault or false,
    counts = assert(srv.cache:get_or_compute("chat.counts", COUNTS_KEPT, here.counts)),
  })
end

router:get("/", { query = { to = "string? ..100" } }, function(req, res)
  if req.state.person then return show_rooms(req, res, {}) end
  return show_sign_in(res, { to = req.valid.query.to })
end)

router:post("/sign-in", not_too_often, function(req, res)
  local form = req:form() or {}
  local name, fault = names.tidy(form.name)
  local typed = { name = type(form.name) == "string" and form.name or "", to = form.to }
  if not name then
    typed.fault = "The name " .. fault .. "."
    return show_sign_in(res:status(400), typed)
  end
  local person, err = people.take(name)
  if not person and err.code == "taken" then
    typed.fault = "Somebody here has that name. Take another one."
    return show_sign_in(res:status(409), typed)
  end
  if not person then return nil, err end
  if req.state.person then assert(people.leave(req.state.person.id)) end
  req.session:rotate()
  req.session.person = person.id
  return res:redirect(destination(form.to), 303)
end)

router:post("/sign-out", function(req, res)
  if req.state.person then assert(people.leave(req.state.person.id)) end
  req.session:destroy()
  return res:redirect("/", 303)
end)

local slug_rule = srv.schema { slug = rooms.SLUG }

router:post("/rooms", guard.signed_in_page, not_too_many, function(req, res)
  local form = req:form() or {}
  local given = slug_rule:check({ slug = form.slug }, { source = "text" })
  local typed = type(form.slug) == "string" and form.slug or ""
  if not given then
    local fault = "A room's name has 2 to 32 letters, digits and hyphens."
    return show_rooms(req, res:status(400), { slug = typed, fault = fault })
  end
  local room, err = rooms.open(given.slug)
  if not room and err.code == "full" then
    return show_rooms(req, res:status(409), { slug = typed, fault = "There are too many rooms already." })
  end
  if not room then return nil, err end
  return res:redirect("/rooms/" .. room.slug, 303)
end)

return router
