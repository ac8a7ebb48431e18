local parts = dofile(os.getenv "S17_PARTS")
local srv = require "srv"
local errors = srv.error

parts.stand_in "helmet"
parts.no_websocket()
parts.stand_in("jwt", function(opts)
  return { name = "jwt", use = function(req, _, next)
    local claims, err = srv.crypto.jwt_verify(req:cookie(opts.cookie) or "", { key = opts.key, alg = opts.alg })
    if not claims then errors(401, err.message) end
    req.state.user = claims
    return next()
  end }
end)

local KEY = ("k"):rep(32)
srv.test.env { TOKEN_KEY = KEY, DATABASE_URL = srv.test.db().url }
local t = srv.test(require "app")

local function token(name) return { token = srv.crypto.jwt_sign({ sub = name }, { key = KEY, alg = "HS256" }) } end

describe("chat", function()
  local function say(room, text)
    return t:post("/rooms/" .. room, { json = { text = text }, cookies = token "ann" }):expect(201):json()
  end

  --- The events of ROOM after LAST, until MORE has been done.
  local function events(room, last, more)
    local subscribe, sub = srv.bus.subscribe, nil
    srv.test.stub(srv.bus, "subscribe", function(...)
      sub = subscribe(...)
      return sub
    end)
    srv.spawn(function()
      while not sub do srv.sleep(0.001) end
      more()
      srv.sleep(0.02)
      sub:close()
    end)
    return t:get("/rooms/" .. room .. "/events", { cookies = token "bob", headers = { ["Last-Event-ID"] = last } })
      :expect(200):expect("content-type", "^text/event%-stream"):events()
  end

  it("keeps what is said, and tells it with what was missed", function()
    local first, second = say("a", "one"), say("a", " two ")
    say("other", "elsewhere")
    assert.same({ "a", "ann", "two" }, { second.room, second.author, second.text })
    local got = events("a", tostring(first.id), function() say("a", "three") end)
    local texts = {}
    for i, event in ipairs(got) do
      local row = srv.json.decode(event.data)
      texts[i] = row.text
      assert.equal(tostring(row.id), event.id)
    end
    assert.same({ "two", "three" }, texts)
  end)

  it("is for those who have signed in, from our own pages", function()
    t:post("/rooms/a", { json = { text = "x" } }):expect(401)
    t:post("/rooms/a", { json = { text = "x" }, cookies = { token = "forged" } }):expect(401)
    t:post("/rooms/a", { json = { text = "x" }, cookies = token "ann", headers = { ["Sec-Fetch-Site"] = "cross-site" } }):expect(403)
  end)

  it("checks rooms and messages, and counts them", function()
    t:post("/rooms/Not%20a%20slug", { json = { text = "x" }, cookies = token "ann" }):expect(404)
    t:post("/rooms/a", { json = { text = "  " }, cookies = token "ann" }):expect(400):expect { errors = { { path = "/text" } } }
    local answer
    for _ = 1, 61 do answer = t:post("/rooms/b", { json = { text = "x" }, cookies = token "ann", ip = "192.0.2.9" }) end
    assert.is_truthy(answer:expect(429).headers["retry-after"])
  end)
end)
