local srv = require "srv"
local support = require "spec.support"

local app, ann, ben
local opened = 0

before_each(function()
  app = app or support.app()
end)

--- A room of the test's own, and two people.
local function room()
  opened = opened + 1
  local slug = "live-" .. opened
  assert(require("chat.rooms").open(slug))
  ann, ben = support.come_in(app, "Ann " .. opened), support.come_in(app, "Ben " .. opened)
  return slug
end

local function listen(t, slug, last, query)
  local headers = last and { ["Last-Event-ID"] = tostring(last) }
  return t:open("GET", "/rooms/" .. slug .. "/events", { headers = headers, query = query }):expect(200)
end

--- The next event of TYPE, decoded, and its id.
local function next_of(events, type)
  for _ = 1, 100 do
    local event = assert(events:event())
    local data = srv.json.decode(event.data)
    if data.type == type then return data, event.id end
  end
end

--- A test in which time stands: nothing then waits for another machine, so the database must be in this one.
local function it_in_time(title, test)
  it(title, function()
    if require("chat.database").dialect ~= "sqlite" then return pending "time cannot stand with this database" end
    return test(srv.test.clock())
  end)
end

describe("the events of a room", function()
  it("bring what is said to all who listen", function()
    local slug = room()
    local one, other = listen(ann, slug), listen(ben, slug)
    assert.equal(0, next_of(one, "hello").last)
    local said = support.say(ben, "hello", nil, slug)
    for _, events in ipairs { one, other } do
      local heard, id = next_of(events, "message")
      assert.same(said, heard)
      assert.equal("1", id)
    end
  end)

  it("end when who listens signs out", function()
    local slug = room()
    local events = listen(ann, slug)
    next_of(events, "hello")
    ann:post("/sign-out"):expect(303)
    repeat until not events:event()
    listen(ben, slug)
  end)

  it("bring what was missed, by the last id or the number of the last one shown, and nothing twice", function()
    local slug = room()
    for i = 1, 4 do support.say(ann, "text " .. i, nil, slug) end
    for _, events in ipairs { listen(ben, slug, 2), listen(ben, slug, nil, { after = 2 }), listen(ben, slug, 2, { after = 0 }) } do
      assert.equal(3, next_of(events, "message").number)
      assert.equal(4, next_of(events, "message").number)
      events:close()
    end
    local events = listen(ben, slug, 4)
    local said = support.say(ann, "text 5", nil, slug)
    assert.same(said, (next_of(events, "message")))
  end)

  it("fill a gap, and keep the order, whatever the bus does", function()
    local slug = room()
    local messages = require "chat.messages"
    local events = listen(ann, slug)
    next_of(events, "hello")
    local published, publish = {}, srv.bus.publish
    srv.test.stub(srv.bus, "publish", function(_, event) published[#published + 1] = event return true end)
    for i = 1, 4 do support.say(ben, "text " .. i, nil, slug) end
    srv.test.stub(srv.bus, "publish", publish)
    assert(srv.bus.publish(messages.topic(slug), published[3])) -- 1 and 2 are lost
    assert(srv.bus.publish(messages.topic(slug), published[2])) -- or late
    assert(srv.bus.publish(messages.topic(slug), published[3])) -- or come twice
    assert(srv.bus.publish(messages.topic(slug), published[4]))
    for i = 1, 4 do assert.equal(i, next_of(events, "message").number) end
    local said = support.say(ben, "text 5", nil, slug)
    assert.equal(5, said.number)
    assert.equal(5, next_of(events, "message").number)
  end)

  it_in_time("look into the database now and then, should the bus have lost the last one", function(clock)
    local slug = room()
    local events = listen(ann, slug)
    next_of(events, "hello")
    srv.test.stub(srv.bus, "publish", function() return true end)
    support.say(ben, "unheard", nil, slug)
    clock:advance "21s"
    assert.equal("unheard", next_of(events, "message").text)
  end)

  it("are of one room", function()
    local slug, other = room(), room()
    local events = listen(ann, slug)
    support.say(ben, "there", nil, other)
    support.say(ben, "here", nil, slug)
    assert.equal("here", next_of(events, "message").text)
  end)

  it("of a room that is not there are 404", function()
    room()
    ann:get("/rooms/nowhere/events"):expect(404)
  end)
end)

describe("who is here", function()
  local function roster(events, clock)
    clock:advance "3s"
    local last
    while true do
      local event, err = events:event()
      if not event then
        assert.equal("timeout", err and err.code)
        return last
      end
      local data = srv.json.decode(event.data)
      if data.type == "here" then last = data end
    end
  end

  local function names(here)
    local list = {}
    for i, person in ipairs(here.people) do list[i] = person.name end
    return table.concat(list, ", ")
  end

  it_in_time("is told to all, when somebody comes and when somebody leaves", function(clock)
    local slug = room()
    local one = listen(ann, slug)
    local alone = roster(one, clock)
    assert.equal(1, alone.count)
    local other = listen(ben, slug)
    local both = roster(one, clock)
    assert.equal(("Ann %d, Ben %d"):format(opened, opened), names(both))
    assert.is_true(both.version > alone.version)
    assert.truthy(ann:get("/rooms/" .. slug).body:find '<span id="count">2</span>')
    other:close()
    assert.equal("Ann " .. opened, names(roster(one, clock)))
  end)

  it_in_time("is each person once, in however many windows", function(clock)
    local slug = room()
    local one, two = listen(ann, slug), listen(ann, slug)
    assert.equal(1, roster(one, clock).count)
    two:close()
    clock:advance "3s"
    assert.equal(1, assert(require("chat.here").of(slug)).count)
    one:close()
    clock:advance "3s"
    assert.equal(0, assert(require("chat.here").of(slug)).count)
  end)

  it_in_time("stays right when a worker dies: what it wrote is no longer true", function(clock)
    local slug = room()
    local here = require "chat.here"
    local db = require "chat.database"
    local events = listen(ann, slug)
    roster(events, clock)
    assert(db:insert("rosters", {
      worker = "another", room = slug, people = srv.json.array { { id = "x", name = "Zoe" } },
      alive_until = math.floor(srv.now()) + 40,
    }))
    assert.equal(2, assert(here.of(slug)).count)
    assert.equal(2, assert(here.counts())[slug])
    clock:advance "1m"
    assert.equal(1, assert(here.of(slug)).count)
    assert.equal("Ann " .. opened, names(roster(events, clock)))      -- who sweeps has told it
    assert.equal(0, assert(db:value("select count(*) from rosters where worker = 'another'")))
  end)

  it_in_time("is written again when the database was away", function(clock)
    local slug = room()
    local here = require "chat.here"
    local events = listen(ann, slug)
    roster(events, clock)
    assert(require("chat.database"):exec "delete from rosters")
    assert.equal(0, assert(here.of(slug)).count)
    clock:advance "20s"
    assert.equal(1, assert(here.of(slug)).count)
    events:close()
  end)

  it("is told with so many names, and the number of all", function()
    local slug = room()
    local db, list = require "chat.database", srv.json.array {}
    for i = 1, 100 do list[i] = { id = "p" .. i, name = ("Person %03d"):format(i) } end
    assert(db:insert("rosters", { worker = "crowd", room = slug, people = list, alive_until = math.floor(srv.now()) + 40 }))
    local found = assert(require("chat.here").of(slug))
    assert.same({ 100, 60, "Person 001" }, { found.count, #found.people, found.people[1].name })
  end)

  it("is bounded: so many windows of one person", function()
    local slug = room()
    local open = {}
    for i = 1, 20 do open[i] = listen(ann, slug) end
    ann:get("/rooms/" .. slug .. "/events"):expect(429):expect { code = "too_many_windows" }
    open[1]:close()
    listen(ann, slug):close()
    listen(ben, slug):close()
    for _, events in ipairs(open) do events:close() end
  end)
end)
