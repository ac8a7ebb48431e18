local srv = require "srv"

describe("the chat", function()
  local t

  setup(function() t = srv.test(require "app") end)
  teardown(function() t:close() end)

  local function say(text)
    return t:post("/messages", { json = { name = "Ann", text = text } }):expect(201):json()
  end

  it("brings what is said to who listens", function()
    local events = t:open("GET", "/events"):expect(200)
    local said = say "hello"
    local event
    repeat event = srv.json.decode(events:event().data) until event.id == said.id
    assert.same({ "Ann", "hello" }, { event.name, event.text })
    events:close()
  end)

  it("tells who comes back what was missed", function()
    local seen = say "seen"
    local missed = say "missed"
    local events = t:open("GET", "/events", { headers = { ["Last-Event-ID"] = tostring(seen.id) } }):expect(200)
    assert.equal(tostring(missed.id), events:event().id)
    events:close()
  end)

  it("takes no empty message, and none of another site", function()
    t:post("/messages", { json = { name = "Ann", text = " " } }):expect(400)
    t:post("/messages", { json = { name = "A", text = "x" }, headers = { ["Sec-Fetch-Site"] = "cross-site" } }):expect(403)
  end)

  it("has a page", function()
    t:get("/"):expect(200):expect("content-type", "^text/html")
    t:get("/chat.js"):expect(200)
  end)
end)
