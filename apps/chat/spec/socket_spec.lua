local srv = require "srv"
local support = require "spec.support"

local app
local opened = 0

before_each(function() app = app or support.app() end)

--- A room of the test's own, and two people.
local function room()
  opened = opened + 1
  local slug = "socket-" .. opened
  assert(require("chat.rooms").open(slug))
  return slug, support.come_in(app, "Ann " .. opened), support.come_in(app, "Ben " .. opened)
end

local function connect(t, slug) return assert(t:ws("/rooms/" .. slug .. "/socket")) end

--- The next one of TYPE, decoded.
local function next_of(ws, type)
  for _ = 1, 100 do
    local data = srv.json.decode((assert(ws:receive())))
    if data.type == type then return data end
  end
end

describe("the socket of a room", function()
  it("says how far the room is, and brings what is said, however it is said", function()
    local slug, ann, ben = room()
    support.say(ann, "before", nil, slug)
    local one, other = connect(ann, slug), connect(ben, slug)
    assert.equal(1, next_of(one, "hello").last)
    assert.equal(1, next_of(other, "hello").last)
    assert(one:send { text = " over the socket ", nonce = "nonce-1234" })
    for _, ws in ipairs { one, other } do
      local said = next_of(ws, "message")
      assert.same({ 2, "over the socket", "nonce-1234", "Ann " .. opened }, { said.number, said.text, said.nonce, said.author })
    end
    local posted = support.say(ben, "posted", nil, slug)
    assert.same(posted, next_of(other, "message"))
  end)

  it("says once what is sent again", function()
    local slug, ann = room()
    local ws = connect(ann, slug)
    for _ = 1, 3 do ws:send { text = "once", nonce = "nonce-0001" } end
    for _ = 1, 3 do assert.equal(1, next_of(ws, "message").number) end
    ann:get("/rooms/" .. slug .. "/messages"):expect { last = 1 }
  end)

  it("tells the sender alone why something is not said", function()
    local slug, ann = room()
    local ws = connect(ann, slug)
    local cases = {
      { { text = "" }, 400, "^the text " }, { { text = ("x"):rep(1001) }, 400, "^the text must have at most 1,?000 characters" },
      { { text = "x", author = "Ben" }, 400, "author" }, { "{", 400, "." }, { "[]", 400, "^the message must be an object" }, { "", 400, "." },
    }
    for _, case in ipairs(cases) do
      ws:send(case[1])
      local refused = next_of(ws, "refused")
      assert.equal(case[2], refused.status)
      assert.matches(case[3], refused.message)
    end
    ann:get("/rooms/" .. slug .. "/messages"):expect { last = 0 }
  end)

  it("is not for who talks too fast", function()
    local slug, ann = room()
    local ws = connect(ann, slug)
    for i = 1, 21 do ws:send { text = "text " .. i, nonce = ("nonce-%04d"):format(i) } end
    local refused = next_of(ws, "refused")
    assert.same({ 429, "nonce-0021" }, { refused.status, refused.nonce })
    assert.matches("^not so fast", refused.message)
  end)

  it("is closed to who has signed out, in each window, and to nobody else", function()
    local slug, ann, ben = room()
    local windows, other = { connect(ann, slug), connect(ann, slug), connect(ann, "lobby") }, connect(ben, slug)
    ann:post("/sign-out"):expect(303)
    for _, ws in ipairs(windows) do
      repeat until not ws:receive()
      assert.equal(1008, ws.close_code)
    end
    support.say(ben, "alone", nil, slug)
    assert.equal("alone", next_of(other, "message").text)
  end)

  it("hears nothing from who has signed out", function()
    local slug, ann = room()
    local ws = connect(ann, slug)
    assert(require("chat.database"):exec("delete from people where name = $1", "Ann " .. opened)) -- and the bus has lost it
    ws:send { text = "still here?" }
    assert.equal(401, next_of(ws, "refused").status)
    repeat until not ws:receive()
    assert.equal(1008, ws.close_code)
  end)

  it("takes text, and not too much of it", function()
    local slug, ann = room()
    local ws = connect(ann, slug)
    ws:send("\1\2", "binary")
    repeat until not ws:receive()
    assert.equal(1003, ws.close_code)
    ws = connect(ann, slug)
    ws:send(("x"):rep(9000))
    repeat until not ws:receive()
    assert.equal(1009, ws.close_code)
  end)

  it("is opened for those who are signed in, on our own pages, and not a hundred times", function()
    local slug, ann = room()
    local function refused(t, path, headers) return select(2, t:ws("/rooms/" .. path .. "/socket", { headers = headers })) end
    refused(srv.test(app), slug):expect(401)
    refused(ann, "nowhere"):expect(404)
    refused(ann, slug, { Origin = "https://evil.example" }):expect(403):expect { code = "cross_site" }
    local sockets = {}
    for i = 1, 20 do sockets[i] = connect(ann, slug) end
    refused(ann, slug):expect(429)
    sockets[1]:close()
    connect(ann, slug):close()
    for _, ws in ipairs(sockets) do ws:close() end
  end)

  it("shows who is here", function()
    if require("chat.database").dialect ~= "sqlite" then return pending "time cannot stand with this database" end
    local slug, ann, ben = room()
    local clock = srv.test.clock()
    local one = connect(ann, slug)
    local other = connect(ben, slug)
    clock:advance "3s"
    assert.equal(2, next_of(one, "here").count)
    other:close()
    clock:advance "3s"
    assert.equal(1, next_of(one, "here").count)
  end)
end)
