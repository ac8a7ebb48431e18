local srv = require "srv"
local support = require "spec.support"

local app, ann, ben

setup(function()
  app = support.app()
  ann, ben = support.come_in(app, "Ann"), support.come_in(app, "Ben")
end)

local function open(t, room) t:post("/rooms", { form = { slug = room } }):expect(303) end

--- "[1,2]"
local function numbers(list)
  local found = {}
  for i, message in ipairs(list) do found[i] = message.number end
  return srv.json.encode(found)
end

describe("a message", function()
  it("has a number, an author and a time", function()
    local said = support.say(ann, " hello ")
    assert.same({ 1, "Ann", "hello", "message" }, { said.number, said.author, said.text, said.type })
    assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%dZ$", said.sent_at)
    assert.equal(2, support.say(ben, "hi").number)
  end)

  it("is said once, however often it is sent", function()
    open(ann, "once")
    local first = support.say(ann, "again", "nonce-0001", "once")
    assert.same(first, support.say(ann, "again", "nonce-0001", "once"))
    assert.equal(1, support.say(ben, "mine", "nonce-0001", "once").number - first.number)
    assert.equal(2, ann:get("/rooms/once"):expect(200).body:match 'data%-last="(%d+)"' + 0)
    support.come_in(app, "Cid"):get("/rooms/once/messages"):expect { last = 2 }
  end)

  it("is shown as it was typed", function()
    open(ann, "hostile")
    local texts = { '<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", "</textarea>&amp;" }
    for _, text in ipairs(texts) do support.say(ann, text, nil, "hostile") end
    local page = ann:get("/rooms/hostile"):expect(200).body
    assert.truthy(page:find('<p class="text" dir="auto">&lt;script&gt;alert(1)&lt;/script&gt;</p>', 1, true))
    assert.truthy(page:find("&lt;/textarea&gt;&amp;amp;", 1, true))
    for _, part in ipairs { "<script>", "<img", "49" .. "</p>" } do assert.is_nil(page:find(part, 1, true), part) end
    local list = ann:get("/rooms/hostile/messages"):json().messages
    for i, text in ipairs(texts) do assert.equal(text, list[i].text) end
  end)

  it("has a text, not too long, and nothing besides", function()
    local function try(body) return ann:post("/rooms/lobby/messages", { json = body }) end
    try({ text = "" }):expect(400)
    try({ text = "  \n " }):expect(400)
    try({ text = ("x"):rep(1001) }):expect(400):expect { errors = { { path = "/text", code = "too_long" } } }
    try({ text = "x", author = "Ben" }):expect(400)
    try({ text = "x", nonce = "short" }):expect(400)
    try({ text = ("x"):rep(20000) }):expect(413)
    ann:post("/rooms/lobby/messages", { body = "text=x" }):expect(415)
    ann:post("/rooms/none/messages", { json = { text = "x" } }):expect(404)
  end)

  it("is taken from a form too, for a browser without script", function()
    open(ann, "forms")
    ann:post("/rooms/forms/messages", { form = { text = "one\r\ntwo" } }):expect(303):expect("location", "/rooms/forms")
    assert.equal("one\ntwo", ann:get("/rooms/forms/messages"):json().messages[1].text)
  end)

  it("is not taken from another site's page, nor from nobody", function()
    ann:post("/rooms/lobby/messages", { json = { text = "x" }, headers = { Origin = "https://evil.example" } }):expect(403)
    srv.test(app):post("/rooms/lobby/messages", { json = { text = "x" } }):expect(401):expect { code = "signed_out" }
    srv.test(app):get("/rooms/lobby/messages"):expect(401)
    srv.test(app):get("/rooms/lobby/events"):expect(401)
  end)

  it("is not said by who has just signed out elsewhere", function()
    local messages, people = require "chat.messages", require "chat.people"
    local person = assert(people.take "Gone")
    people.leave(person.id)
    assert.equal(401, select(2, messages.say("lobby", person, { text = "x" })).status)
  end)

  it("does not come too fast", function()
    local clock = srv.test.clock()
    local fast = support.come_in(app, "Fast")
    open(fast, "fast")
    for i = 1, 20 do support.say(fast, "number " .. i, nil, "fast") end
    fast:post("/rooms/fast/messages", { json = { text = "x" } }):expect(429):expect { code = "too_fast" }
    support.say(support.come_in(app, "Slow"), "me too", nil, "fast")
    clock:advance "11s"
    support.say(fast, "later", nil, "fast")
  end)

  it("has the number behind the last one, whoever speaks at the same time", function()
    open(ann, "crowd")
    local messages, crowd = require "chat.messages", {}
    for i = 1, 12 do crowd[i] = assert(require("chat.people").take("Crowd " .. i)) end
    assert(srv.map(crowd, function(person)
      for n = 1, 5 do assert(messages.say("crowd", person, { text = "text " .. n })) end
      return true
    end, { limit = 12 }))
    local list = assert(messages.before("crowd"))
    assert.equal(50, #list)
    assert.equal(60, list[50].number)
    for i = 2, 50 do assert.equal(list[i - 1].number + 1, list[i].number) end
  end)
end)

describe("the history", function()
  setup(function()
    open(ann, "long")
    local messages, people = require "chat.messages", require "chat.people"
    for i = 1, 120 do
      if i % 20 == 1 then ann = assert(people.take("Writer " .. i)) end
      assert(messages.say("long", ann, { text = "text " .. i }))
    end
    ann = support.come_in(app, "Reader")
  end)

  it("comes in pages, from the newest back", function()
    local page = ann:get("/rooms/long/messages"):expect { older = true, last = 120 }:json().messages
    assert.same({ 50, 71, 120 }, { #page, page[1].number, page[50].number })
    page = ann:get("/rooms/long/messages", { query = { before = 71 } }):json().messages
    assert.same({ 50, 21, 70 }, { #page, page[1].number, page[50].number })
    local rest = ann:get("/rooms/long/messages", { query = { before = 21 } }):expect { older = false }:json().messages
    assert.same({ 20, 1, 20 }, { #rest, rest[1].number, rest[20].number })
    assert.equal("[]", numbers(ann:get("/rooms/long/messages", { query = { before = 1 } }):json().messages))
  end)

  it("gives what came after", function()
    assert.equal("[118,119,120]", numbers(ann:get("/rooms/long/messages", { query = { after = 117 } }):json().messages))
    assert.equal(50, #ann:get("/rooms/long/messages", { query = { after = 0 } }):json().messages)
    assert.equal("[]", numbers(ann:get("/rooms/long/messages", { query = { after = 120 } }):json().messages))
    ann:get("/rooms/long/messages", { query = { after = "x" } }):expect(400)
  end)

  it("can be read without script", function()
    local page = ann:get("/rooms/long"):expect(200).body
    assert.truthy(page:find('href="?before=71"', 1, true))
    page = ann:get("/rooms/long", { query = { before = 71 } }):expect(200).body
    assert.truthy(page:find("text 70<", 1, true))
    assert.is_nil(page:find("text 71<", 1, true))
    assert.is_nil(page:find("chat.js", 1, true))
  end)
end)
