--- Rooms, found by their slugs.
local srv = require "srv"
local db = require "chat.database"

local rooms = {}

rooms.MAX = 500        -- rooms there may be
rooms.SLUG = "string 2..32 trim lower /[a-z0-9]+[a-z0-9-]*/"

---@class chat.Room
---@field slug string
---@field last integer  number of its newest message

---@param slug string
---@return chat.Room?
---@return srv.Error? err  no_row, 404
function rooms.find(slug)
  local room, err = db:one("select slug, last from rooms where slug = $1", slug)
  if err and err.code == "no_row" then err = srv.error.new(404, "there is no such room", { code = "no_row", cause = err }) end
  return room, err
end

--- Makes the room, unless it is there.
---@param slug string
---@return chat.Room?
---@return srv.Error? err  full, 409
function rooms.open(slug)
  local made, err = db:exec([[insert into rooms (slug, created_at) select $1, $2
    where (select count(*) from rooms) < $3 on conflict do nothing]], slug, srv.time.iso(srv.now()), rooms.MAX)
  if not made then return nil, err end
  local room
  room, err = rooms.find(slug)
  if err and err.code == "no_row" then
    err = srv.error.new(409, ("there are %d rooms, and more are not made"):format(rooms.MAX), { code = "full" })
  end
  return room, err
end

--- All of them, the one that was spoken in last at the top.
---@return { slug: string, last: integer, spoken_at: string? }[]?
---@return srv.Error?
function rooms.all()
  return db:query [[select slug, last, sent_at as spoken_at from rooms
    left join messages on messages.room = rooms.slug and messages.number = rooms.last
    order by coalesce(sent_at, created_at) desc, slug]]
end

return rooms
