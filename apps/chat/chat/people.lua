--- Who is who. A name is taken by who comes first, without a password, and kept by a cookie: until he signs out, or
--- was not seen for as long as the cookie lives.
local srv = require "srv"
local db = require "chat.database"
local names = require "chat.names"

local people = {}

people.KEPT = 14 * 24 * 3600   -- seconds a name is kept for who does not come
people.LEFT = "people.left"    -- topic: ids of those who have signed out
local SEEN_EVERY = 3600        -- seconds: to write it down at each request would be a write for each read

---@class chat.Person
---@field id string
---@field name string

local function now() return math.floor(srv.now()) end

--- Gives NAME to a new person.
---@param name string  tidy
---@return chat.Person?
---@return srv.Error? err  taken, 409
function people.take(name)
  local person = { id = srv.crypto.uuid(), name = name, folded = names.fold(name), seen_at = now() }
  local taken, err = db:tx(function(tx)
    local ok, fault = tx:exec("delete from people where folded = $1 and seen_at < $2", person.folded, now() - people.KEPT)
    if not ok then return nil, fault end
    return tx:insert("people", person)
  end)
  if taken then return { id = person.id, name = name } end
  if err.code == "unique" then err = srv.error.new(409, "somebody here has that name", { code = "taken", cause = err }) end
  return nil, err
end

--- Who has ID; notes that he was here. nil: nobody has it any more.
---@param id any
---@return chat.Person?
---@return srv.Error? err  no_row: nobody
function people.find(id)
  if type(id) ~= "string" then return nil end
  local person, err = db:one("select id, name, seen_at from people where id = $1", id)
  if not person then return nil, err end
  if person.seen_at < now() - SEEN_EVERY then
    local seen, fault = db:update("people", { id = id }, { seen_at = now() })
    if not seen then return nil, fault end
  end
  return { id = person.id, name = person.name }
end

--- The name is free again, and what its person still listens to ends, on all workers.
function people.leave(id)
  local ok, err = db:delete("people", { id = id })
  if not ok then return nil, err end
  local told, fault = srv.bus.publish(people.LEFT, id)
  if not told then srv.log.warn("windows stay open of somebody who has left", { err = fault }) end
  return true
end

--- Frees the names of all who were not seen for long.
function people.sweep() return db:exec("delete from people where seen_at < $1", now() - people.KEPT) end

return people
