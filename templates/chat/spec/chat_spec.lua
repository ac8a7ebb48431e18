local srv = require "srv"

describe("the chat", function()
  local t

  setup(function() t = srv.test(require "app") end)
  teardown(function() t:close() end)

  local function connect() return assert(t:ws "/socket") end

  --- The message that CLAIM holds for.
  local function await(ws, claim)
    while true do
      local said = srv.json.decode((assert(ws:receive())))
      if claim(said) then return said end
    end
  end

  local function text_is(text) return function(said) return said.text == text end end

  it("brings what is said to all", function()
    local ann, ben = connect(), connect()
    ann:send { name = "Ann", text = " hello " }
    for _, ws in ipairs { ann, ben } do assert.equal("Ann", await(ws, text_is "hello").name) end
  end)

  it("tells who comes later what was said", function()
    local ann = connect()
    ann:send { name = "Ann", text = "the first" }
    ann:send { name = "Ann", text = "the second" }
    await(ann, text_is "the second")
    local ben = connect()
    local first, second = await(ben, text_is "the first"), await(ben, text_is "the second")
    assert.is_true(first.at <= second.at and first.id ~= second.id)
  end)

  it("takes no empty message, and not too many", function()
    local ws = connect()
    local function refused() return await(ws, function(said) return said.error end).error end
    ws:send { name = "Ann", text = " " }
    assert.matches("^text ", refused())
    ws:send "what is this?"
    assert.equal("this is no message", refused())
    for _ = 1, 30 do ws:send { name = "Ann", text = "again" } end
    assert.matches("^not so fast", refused())
  end)

  it("takes nothing from pages of other sites", function()
    local ws, refusal = t:ws("/socket", { headers = { Origin = "https://evil.example" } })
    assert.is_nil(ws)
    refusal:expect(403)
  end)

  it("has a page", function()
    t:get("/"):expect(200):expect("content-type", "^text/html")
    t:get("/chat.js"):expect(200)
  end)
end)
