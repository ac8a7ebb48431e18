local srv = require "srv"
local support = require "spec.support"

local app

local function has(text) return function(r) return r.body:find(text, 1, true) ~= nil, "the page lacks " .. text .. "\n" .. r.body end end
local function lacks(text) return function(r) return r.body:find(text, 1, true) == nil, "the page has " .. text end end

setup(function() app = support.app() end)

describe("signing in", function()
  it("asks for a name, and leads back to where one came from", function()
    local t = srv.test(app)
    t:get("/"):expect(200):expect(has "Your name")
    t:get("/rooms/lobby"):expect(303):expect("location", "/?to=%2Frooms%2Flobby")
    t:get("/", { query = { to = "/rooms/lobby" } }):expect(has 'name="to" value="/rooms/lobby"')
    t:post("/sign-in", { form = { name = "Ann", to = "/rooms/lobby" } }):expect(303):expect("location", "/rooms/lobby")
    t:get("/rooms/lobby"):expect(200):expect(has 'data-name="Ann"')
  end)

  it("leads to no other site", function()
    for i, to in ipairs { "https://evil.example", "//evil.example", "/rooms/../x", "/rooms/a\nb", "" } do
      srv.test(app):post("/sign-in", { form = { name = "Eve " .. i, to = to }, ip = "192.0.2.1" }):expect(303):expect("location", "/")
    end
  end)

  it("gives a name to one person at a time", function()
    local first = support.come_in(app, "Ben")
    for _, name in ipairs { "Ben", "ben", "  BEN  " } do
      srv.test(app):post("/sign-in", { form = { name = name }, ip = "192.0.2.2" }):expect(409):expect(has "Somebody here has that name")
    end
    first:post("/sign-out"):expect(303):expect("location", "/")
    first:get("/rooms/lobby"):expect(303)
    support.come_in(app, "Ben")
  end)

  it("takes no name that looks like another one, or like none", function()
    local bad = { "", " ", "a\0b", "...", ("x"):rep(25), "<b>", "Be\226\128\139n", "\226\128\174neB", "Be\194\160n", "\227\128\128" }
    for _, name in ipairs(bad) do
      srv.test(app):post("/sign-in", { form = { name = name }, ip = "192.0.2.3" }):expect(400)
    end
    srv.test(app):post("/sign-in", { form = { name = ("ü"):rep(24) }, ip = "192.0.2.4" }):expect(303)
    srv.test(app):post("/sign-in", { ip = "192.0.2.4" }):expect(400)
    srv.test(app):post("/sign-in", { form = { name = { "a", "b" } }, ip = "192.0.2.4" }):expect(400)
  end)

  it("shows again what was typed, escaped", function()
    srv.test(app):post("/sign-in", { form = { name = '"><script>' }, ip = "192.0.2.5" }):expect(400)
      :expect(has 'value="&quot;&gt;&lt;script&gt;"'):expect(lacks "<script>")
  end)

  it("is not done for a page of another site", function()
    srv.test(app):post("/sign-in", { form = { name = "Mallory" }, headers = { Origin = "https://evil.example" } }):expect(403)
    local t = support.come_in(app, "Cid")
    t:post("/sign-out", { headers = { ["Sec-Fetch-Site"] = "cross-site" } }):expect(403)
    t:get("/rooms/lobby"):expect(200)
  end)

  it("is not done too often from one address", function()
    local last
    for i = 1, 21 do
      last = srv.test(app):post("/sign-in", { form = { name = "Robot " .. i }, ip = "203.0.113.9" })
    end
    last:expect(429):expect("retry-after", "^%d+$")
  end)

  it("is over when a cookie is altered, or somebody else has the name by now", function()
    local t = srv.test(app)
    local cookie = t:post("/sign-in", { form = { name = "Dan" }, ip = "192.0.2.6" }):expect(303).cookies.chat
    local old = srv.test(app)
    old:get("/rooms/lobby", { cookies = { chat = cookie } }):expect(200)
    srv.test(app):get("/rooms/lobby", { cookies = { chat = cookie:sub(1, -3) .. "AA" } }):expect(303)
    t:post("/sign-out")
    srv.test(app):get("/rooms/lobby", { cookies = { chat = cookie } }):expect(303)
    support.come_in(app, "Dan")
    srv.test(app):get("/rooms/lobby", { cookies = { chat = cookie } }):expect(303)
  end)
end)

describe("a name", function()
  -- Not srv.test.clock: the app's timers would all run, for two weeks.
  local function later(days)
    local moment = srv.now() + days * 24 * 3600
    srv.test.stub(srv, "now", function() return moment end)
  end

  it("is kept for who comes back, and free again after two weeks", function()
    local people = require "chat.people"
    local one, other = assert(people.take "Una"), assert(people.take "Oto")
    later(13)
    assert.equal("Una", people.find(one.id).name)
    later(2)
    assert.equal("taken", select(2, people.take "una").code)
    assert.truthy(people.take "oto")
    assert.equal("no_row", select(2, people.find(other.id)).code)
    later(15)
    assert.is_true(people.sweep() > 0)
    assert.equal("no_row", select(2, people.find(one.id)).code)
  end)
end)

describe("the rooms", function()
  it("are opened by whoever is signed in, and listed", function()
    local t = support.come_in(app, "Rita")
    t:post("/rooms", { form = { slug = " Tea-House " } }):expect(303):expect("location", "/rooms/tea-house")
    t:post("/rooms", { form = { slug = "tea-house" } }):expect(303):expect("location", "/rooms/tea-house")
    t:get("/"):expect(200):expect(has 'href="/rooms/tea-house"'):expect(has 'href="/rooms/lobby"')
    t:get("/rooms/none"):expect(404)
    srv.test(app):post("/rooms", { form = { slug = "mine" } }):expect(303):expect("location", "^/%?to=")
  end)

  it("have names that can stand in an address", function()
    local t = support.come_in(app, "Rob")
    for _, slug in ipairs { "", "a", "a b", "../x", "ü", "-a", ("a"):rep(33), "<b>" } do
      t:post("/rooms", { form = { slug = slug }, ip = "192.0.2.7" }):expect(400):expect(has "name has 2 to 32 letters")
      if slug == "../x" then t = support.come_in(app, "Rob 2") end
    end
  end)

  it("are not opened without end", function()
    local t = support.come_in(app, "Ron")
    for i = 1, 10 do t:post("/rooms", { form = { slug = "room-" .. i } }):expect(303) end
    t:post("/rooms", { form = { slug = "room-11" } }):expect(429)
    local rooms = require "chat.rooms"
    srv.test.stub(rooms, "MAX", 3)
    assert.equal("full", select(2, rooms.open "one-more").code)
    assert.equal("lobby", rooms.open("lobby").slug)
  end)

  it("stand on pages that let nothing foreign in", function()
    local t = support.come_in(app, "Sue")
    t:get("/rooms/lobby"):expect("content-security-policy", "^default%-src 'none'; script%-src 'self';")
      :expect("cache-control", "no-store"):expect(lacks "style="):expect(lacks " onclick")
      :expect(function(r) return not r.body:find "<script>" end)
    t:get("/chat.js"):expect(200)
    t:get("/style.css"):expect(200)
  end)
end)
