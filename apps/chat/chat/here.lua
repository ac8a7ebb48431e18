--- Who is here: each worker writes down whom it has in which room, and goes on saying that it lives.
---
--- What a worker has is one row for each room, written when it has changed and told to the room. A worker (or its
--- machine) that dies stops saying that it lives: its rows are old soon, and whoever sweeps tells the rooms.
local srv = require "srv"
local db = require "chat.database"
local messages = require "chat.messages"
local people = require "chat.people"

local here = {}

-- How long a worker that says nothing counts as alive; each says so three times within it.
local ALIVE_SECONDS = srv.env("ALIVE", "duration 3s.. = 40s")
local BEAT = ALIVE_SECONDS / 3.3
local NAMES_SHOWN = 60           -- told to a room; the others are a number
local STREAMS_MAX = 20           -- of one person in one worker
local WAIT_SECONDS = 0.2         -- who comes meanwhile is told with the others
local WAIT_SECONDS_MAX = 2
local WAIT_PER_PERSON = 0.002    -- the more there are to be told, the more seldom

local me = srv.crypto.token()    -- this worker, in this generation of the app
local app                        -- what the telling tasks belong to

local open = {}                  ---@type table<string, table<string, { name: string, streams: integer }>>
local streams_of = {}            ---@type table<string, integer>
local ends_of = {}               ---@type table<string, table<fun(), true>>  by person: what ends each stream
local is_due = {}                ---@type table<string, boolean>
local turn = srv.mutex()         -- rosters are written one after the other, or an older one could come last

local function now() return math.floor(srv.now()) end

-- What all workers say --------------------------------------------------------------------------------

local function by_name(a, b)
  if a.name ~= b.name then return a.name < b.name end
  return a.id < b.id
end

--- Each person once, however many workers have it.
local function merge(rows)
  local seen, list = {}, {}
  for _, row in ipairs(rows) do
    for _, person in ipairs(row.people) do
      if not seen[person.id] then
        seen[person.id] = true
        list[#list + 1] = person
      end
    end
  end
  table.sort(list, by_name)
  return list
end

---@class chat.Roster
---@field type "here"
---@field version integer  the greater one is the later one
---@field count integer
---@field people chat.Person[]  the first of them

--- Who is in ROOM.
---@param room string
---@return chat.Roster?
---@return srv.Error?
function here.of(room)
  local version, err = db:value("select roster from rooms where slug = $1", room)
  if not version then return nil, err end
  local rows
  rows, err = db:query("select people from rosters where room = $1 and alive_until > $2", room, now())
  if not rows then return nil, err end
  local list = merge(rows)
  local roster = { type = "here", version = version, count = #list, people = srv.json.array {} }
  for i = 1, math.min(#list, NAMES_SHOWN) do roster.people[i] = list[i] end
  return roster
end

--- Room -> how many are in it, of the rooms that are not empty.
---@return table<string, integer>?
---@return srv.Error?
function here.counts()
  local rows, err = db:query("select room, people from rosters where alive_until > $1", now())
  if not rows then return nil, err end
  local rosters, counts = {}, {}
  for _, row in ipairs(rows) do
    rosters[row.room] = rosters[row.room] or {}
    table.insert(rosters[row.room], row)
  end
  for room, list in pairs(rosters) do counts[room] = #merge(list) end
  return counts
end

-- What this worker says -------------------------------------------------------------------------------

local function roster_of(room)
  local list = srv.json.array {}
  for id, person in pairs(open[room] or {}) do list[#list + 1] = { id = id, name = person.name } end
  return list
end

--- The version grows with the row, in one transaction: a roster that was read under a greater one holds all that
--- one under a smaller one had.
local function write(room)
  local list = roster_of(room)
  return db:tx(function(tx)
    local ok, err = tx:exec("update rooms set roster = roster + 1 where slug = $1", room)
    if not ok then return nil, err end
    if #list == 0 then return tx:delete("rosters", { room = room, worker = me }) end
    return tx:exec([[insert into rosters (worker, room, people, alive_until) values ($1, $2, $3, $4)
      on conflict (room, worker) do update set people = excluded.people, alive_until = excluded.alive_until]],
      me, room, list, now() + ALIVE_SECONDS)
  end)
end

local function tell(room)
  local roster, err = here.of(room)
  if not roster then return nil, err end
  return srv.bus.publish(messages.topic(room), roster)
end

local function size_of(room)
  local count = 0
  for _ in pairs(open[room] or {}) do count = count + 1 end
  return count
end

local function write_and_tell(room)
  srv.sleep(math.min(WAIT_SECONDS + size_of(room) * WAIT_PER_PERSON, WAIT_SECONDS_MAX))
  turn:with(function()
    is_due[room] = nil
    if not app then return end
    local ok, err = write(room)
    if ok then ok, err = tell(room) end
    if not ok then srv.log.warn("who is here was not told", { room = room, err = err }) end
  end)
end

local function has_changed(room)
  if is_due[room] or not app then return end
  is_due[room] = true
  app:spawn(write_and_tell, room)
end

-- Coming and going ------------------------------------------------------------------------------------

local function leave(room, id, finish)
  local persons = open[room]
  local person = persons[id]
  person.streams = person.streams - 1
  streams_of[id] = streams_of[id] - 1
  ends_of[id][finish] = nil
  if streams_of[id] == 0 then streams_of[id], ends_of[id] = nil, nil end
  if person.streams > 0 then return end
  persons[id] = nil
  if not next(persons) then open[room] = nil end
  has_changed(room)
end

--- Whether PERSON may listen once more.
---@param person chat.Person
function here.has_place(person) return (streams_of[person.id] or 0) < STREAMS_MAX end

--- PERSON is in ROOM until the task ends that calls this. All who are there are told, PERSON too.
---@param room string
---@param person chat.Person
---@param finish fun()  ends it, when PERSON has signed out
function here.enter(room, person, finish)
  streams_of[person.id] = (streams_of[person.id] or 0) + 1
  ends_of[person.id] = ends_of[person.id] or {}
  ends_of[person.id][finish] = true
  local persons = open[room] or {}
  open[room] = persons
  local known = persons[person.id] or { name = person.name, streams = 0 }
  known.streams = known.streams + 1
  persons[person.id] = known
  srv.defer(function() leave(room, person.id, finish) end)
  has_changed(room)
end

--- Who has signed out in one window listens in no other.
local function show_out()
  for id in srv.bus.subscribe(people.LEFT):each() do
    for finish in pairs(ends_of[id] or {}) do finish() end
  end
end

--- This worker lives. What is not written as it is (the database was away, or took us for dead) is written again.
local function beat()
  local rows, err = db:query("update rosters set alive_until = $2 where worker = $1 returning room",
    me, now() + ALIVE_SECONDS)
  if not rows then return srv.log.warn("cannot say who is here", { err = err }) end
  local written = {}
  for _, row in ipairs(rows) do written[row.room] = true end
  for room in pairs(open) do if not written[room] then has_changed(room) end end
  for room in pairs(written) do if not open[room] then has_changed(room) end end
end

--- The rooms of ROWS that are gone are told so.
local function tell_gone(rows)
  local told = {}
  for _, row in ipairs(rows) do
    if not told[row.room] then
      told[row.room] = true
      assert(db:exec("update rooms set roster = roster + 1 where slug = $1", row.room))
      assert(tell(row.room))
    end
  end
end

--- Those who have died.
local function sweep()
  local rows, err = db:query("delete from rosters where alive_until <= $1 returning room", now())
  if not rows then return srv.log.warn("cannot sweep who was here", { err = err }) end
  tell_gone(rows)
end

--- A worker that ends in order takes its people along; they come back to another one.
local function close()
  app = nil
  turn:with(function()
    local rows, err = db:query("delete from rosters where worker = $1 returning room", me)
    if not rows then return srv.log.warn("who was here stays for a while", { err = err }) end
    tell_gone(rows)
  end)
end

--- Once, by the app that is served.
function here.serve(served)
  app = served
  app:spawn(show_out)
  app:every(BEAT, { each_worker = true }, beat)
  app:every(BEAT, sweep)
  app:hook("stop", close)
end

return here
