--- API, section 16: t:open and t:listen.
local srv = require "srv"

local function app()
  local made = srv.app()
  made.left = 0
  made:get("/clock", function(_, res)
    srv.defer(function() made.left = made.left + 1 end)
    local sse = res:sse()
    for i = 1, math.huge do
      sse:send(tostring(i), { id = tostring(i), event = "tick" })
      srv.sleep "10s"
    end
  end)
  made:get("/chunks", function(_, res) for i = 1, 3 do res:write("part " .. i) res:flush() end end)
  made:get("/flood", function(_, res)
    made.written = 0
    while res:write(("x"):rep(8192)) do made.written = made.written + 8192 end
  end)
  made:get("/silent", function(_, res) res:write "first" res:flush() srv.sleep "1h" end)
  made:get("/slow", function() srv.sleep "1h" end)
  made:get("/set", function(_, res) return res:cookie("a", "1"):send "set" end)
  made:get("/me", function(req) return req.cookies.a or "nobody" end)
  made:get("/plain", function() return "plain" end)
  return made
end

describe("t:open", function()
  local made, t

  before_each(function()
    made = app()
    t = srv.test(made)
  end)
  after_each(function() t:close() end)

  it("reads an endless stream of events one by one, and leaves it", function()
    local clock = srv.test.clock()
    local events = t:open("GET", "/clock"):expect(200):expect("content-type", "^text/event%-stream")
    assert.same({ id = "1", event = "tick", data = "1" }, events:event())
    assert.equal("timeout", select(2, events:event()).code)
    clock:advance "20s"
    assert.same({ "2", "3" }, { events:event().data, events:event().data })
    assert.equal(0, made.left)
    events:close()
    clock:advance(0)
    assert.equal(1, made.left)
    assert.equal("closed", select(2, events:event()).code)
    events:close()
  end)

  it("gives the chunks as they were written, then the end", function()
    local answer = t:open("GET", "/chunks")
    assert.same({ "part 1", "part 2", "part 3" }, { answer:chunk(), answer:chunk(), answer:chunk() })
    assert.same({ nil, nil }, { answer:chunk() })
  end)

  it("waits at most so long", function()
    local answer = t:open("GET", "/silent")
    assert.equal("first", answer:chunk())
    local none, err = answer:chunk "10ms"
    assert.is_nil(none)
    assert.equal("timeout", err.code)
  end)

  it("holds a handler back that writes faster than is read", function()
    local answer = t:open("GET", "/flood")
    for _ = 1, 50 do assert.equal(8192, #answer:chunk()) end
    assert.is_true(made.written < 50 * 8192 + 256 * 1024, made.written)
    answer:close()
    srv.sleep(0)
    local written = made.written
    srv.sleep(0)
    assert.equal(written, made.written)
  end)

  it("keeps cookies like any request, and tells of faults by status", function()
    assert.same({ a = "1" }, t:open("GET", "/set").cookies)
    t:get("/me"):expect "1"
    t:open("GET", "/none"):expect(404)
    assert.has_error(function() t:open("GET", "/plain"):expect(201) end)
    assert.has_error(function() t:open("GET", "/plain"):expect "plain" end)
  end)

  it("says so when no head comes", function()
    srv.test.clock()
    local ok, err = pcall(t.open, t, "GET", "/slow")
    assert.is_false(ok)
    assert.is_truthy(tostring(err):find("GET /slow: no head", 1, true), tostring(err))
  end)

  it("leaves what is open when the test is over", function()
    t:open("GET", "/clock")
    srv.test.restore()
    srv.sleep(0)
    srv.sleep(0)
    assert.equal(1, made.left)
  end)
end)

describe("t:listen", function()
  it("serves the app at a real port until close", function()
    local t = srv.test(app())
    local url = t:listen()
    assert.is_truthy(url:find "^http://127%.0%.0%.1:%d+$")
    assert.equal(url, t:listen())
    local answer = assert(srv.http.get(url .. "/plain"))
    assert.same({ 200, "plain" }, { answer.status, answer.body })
    assert.equal(404, assert(srv.http.get(url .. "/none")).status)
    t:close()
    assert.is_nil((srv.http.get(url .. "/plain", { retries = 0 })))
    assert.is_truthy(select(2, pcall(t.listen, t)):find "was closed")
  end)

  it("cuts what is open when it is closed", function()
    local made = app()
    local t = srv.test(made)
    local answer = assert(srv.http.get(t:listen() .. "/clock", { stream = true }))
    assert.is_truthy(answer:stream():read())
    t:close()
    local piece, err
    repeat piece, err = answer:stream():read() until not piece
    assert.is_truthy(err)
    srv.sleep(0)
    assert.equal(1, made.left)
  end)

  it("answers while the clock stands", function()
    local clock = srv.test.clock()
    local made = app()
    made:get("/later", function() srv.sleep "1m" return "late" end)
    local t = srv.test(made)
    local url, answer = t:listen(), nil
    srv.spawn(function() answer = srv.http.get(url .. "/later", { timeout = "10m" }) end)
    clock:advance "59s"
    assert.is_nil(answer)
    clock:advance "2s"
    assert.equal("late", answer.body)
    t:close()
  end)
end)
