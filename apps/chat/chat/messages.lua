--- What is said, and what was said.
---
--- A message's number is given in the transaction that writes it, under the lock of its room: no number is seen
--- before all smaller ones can be read. So who has seen 7 and hears of 9 asks for what lies behind 7, and nothing
--- is lost whatever the bus does; who hears of 7 again drops it.
local srv = require "srv"
local db = require "chat.database"
local people = require "chat.people"

local messages = {}

messages.PAGE = 50
messages.TEXT_MAX = 1000
messages.RULE = srv.schema({
  text = ("string 1..%d trim"):format(messages.TEXT_MAX),
  nonce = "string? 8..64 /[%w_-]+/ -- what the sender calls it",
}, { name = "Said" })

local BURST, BURST_SECONDS = 20, 10   -- messages of one person, however they come

local COLUMNS = "number, author_id, author, text, nonce, sent_at"

---@class chat.Message
---@field type "message"
---@field number integer
---@field author_id string
---@field author string
---@field text string
---@field nonce string
---@field sent_at string

---@param room string
function messages.topic(room) return "room." .. room end

local function typed(rows, err)
  if not rows then return nil, err end
  for _, row in ipairs(rows) do row.type = "message" end
  return rows
end

--- Nobody is silenced because the counter cannot be reached.
local function is_too_fast(person)
  local count = srv.cache:incr("chat.pace:" .. person.id, 1, BURST_SECONDS)
  return count ~= nil and count > BURST
end

local function write(message)
  return db:tx(function(tx)
    local number, err = tx:value("update rooms set last = last + 1 where slug = $1 returning last", message.room)
    if not number then return nil, err end
    message.number = number
    return tx:insert("messages", message, COLUMNS)
  end)
end

--- The message that PERSON has called NONCE already, if it stands in ROOM.
local function said_before(room, person, nonce)
  return db:one("select " .. COLUMNS .. " from messages where author_id = $1 and nonce = $2 and room = $3",
    person.id, nonce, room)
end

--- Says it to the room, once: with a nonce that was there already it gives what that was.
---@param room string
---@param person chat.Person
---@param said { text: string, nonce: string? }
---@return chat.Message?
---@return srv.Error? err  too_fast 429, gone 401
function messages.say(room, person, said)
  if is_too_fast(person) then
    return nil, srv.error.new(429, "not so fast, please", { code = "too_fast", headers = { ["Retry-After"] = BURST_SECONDS } })
  end
  local known, err = people.find(person.id)
  if not known then
    if err.code == "no_row" then err = srv.error.new(401, "sign in again", { code = "gone" }) end
    return nil, err
  end
  local nonce = said.nonce or srv.crypto.token()
  local row
  row, err = write {
    room = room, author_id = person.id, author = person.name, text = said.text:gsub("\r\n?", "\n"), nonce = nonce,
    sent_at = srv.time.iso(srv.now()),
  }
  if not row and err.code == "unique" then
    row, err = said_before(room, person, nonce)
  end
  if not row then return nil, err end
  row.type = "message"
  local told, fault = srv.bus.publish(messages.topic(room), row)
  if not told then srv.log.warn("a message was not published", { room = room, number = row.number, err = fault }) end
  return row
end

--- Those with greater numbers, the first of them first.
---@param room string
---@param number integer
---@return chat.Message[]?
---@return srv.Error?
function messages.after(room, number)
  return typed(db:query("select " .. COLUMNS .. " from messages where room = $1 and number > $2 order by number limit $3",
    room, number, messages.PAGE))
end

--- Those with smaller numbers, the newest of them, in the order they were said. Without a number: the newest of all.
---@param room string
---@param number integer?
---@return chat.Message[]?
---@return srv.Error?
function messages.before(room, number)
  return typed(db:query("select * from (select " .. COLUMNS .. [[ from messages
    where room = $1 and number < $2 order by number desc limit $3) as newest order by number]],
    room, number or 2 ^ 53, messages.PAGE))
end

return messages
