--- res:sse(): what goes out, to whom, and when the handler ends.
local srv = require "srv"

local apps = {}

local function client_of(handler)
  local app = srv.app()
  app:get("/", handler)
  local t = srv.test(app)
  apps[#apps + 1] = t
  return t
end

--- What FN sends on a stream of its own.
local function sent(fn, opts)
  return client_of(function(_, res) fn(res:sse(), res) end):get("/", opts)
end

--- What FN raises when a stream is handed to it.
local function raised(fn)
  local message
  sent(function(s)
    local ok, err = pcall(fn, s)
    message = ok and "nothing" or tostring(err)
  end)
  return message
end

after_each(function()
  for _, t in ipairs(apps) do t:close() end
  apps = {}
end)

describe("the head", function()
  it("tells caches and proxies to pass on what comes as it comes", function()
    sent(function() end):expect(200):expect("content-type", "text/event-stream; charset=utf-8")
      :expect("cache-control", "no-cache"):expect("x-accel-buffering", "no"):expect("content-length", false)
  end)

  it("leaves what the app has set", function()
    client_of(function(_, res)
      res:header("Cache-Control", "no-store"):header("X-Accel-Buffering", "yes")
      res:sse()
    end):get("/"):expect("cache-control", "no-store"):expect("x-accel-buffering", "yes")
  end)

  it("is there before the first event", function()
    local events = client_of(function(_, res)
      res:sse()
      srv.sleep "1h"
    end):open("GET", "/"):expect(200)
    assert.equal("timeout", select(2, events:event "5ms").code)
    events:close()
  end)

  it("is all that HEAD gets: the handler ends, as if the client had left", function()
    local went_on, cause = false, nil
    local answer = client_of(function(_, res)
      srv.defer(function(err) cause = err end)
      res:sse()
      went_on = true
      srv.sleep "1h"
    end):head("/")
    answer:expect(200):expect("content-type", "^text/event%-stream"):expect(""):expect("cache-control", "no-cache")
    assert.is_false(went_on)
    assert.equal("cancelled", cause.code)
    assert.same({}, answer.log)
  end)

  it("is all that goes out with a status that has no body, which tells browsers not to come back", function()
    local went_on = false
    client_of(function(_, res)
      res:status(204):sse()
      went_on = true
    end):get("/"):expect(204):expect("")
    assert.is_false(went_on)
  end)

  it("cannot be sent twice", function()
    local answer = client_of(function(_, res)
      res:sse()
      res:sse()
    end):get "/"
    assert.is_true(answer.cut)
    assert.matches("sse_spec.lua:%d+: the head of this answer is out", answer.log[1].fields.err.message)
  end)

  it("is not sent where something was answered already", function()
    local answer = client_of(function(_, res)
      res:json { 1 }
      res:sse()
    end):get("/"):expect(200):expect("content-type", "application/json"):expect "[1]"
    assert.equal("answered_twice", answer.log[1].fields.err.code)
  end)
end)

describe("an event", function()
  it("has its id, its name and when to come back before its data", function()
    sent(function(s) s:send("x", { id = 7, event = "tick", retry = "2s" }) end)
      :expect "id: 7\nevent: tick\nretry: 2000\ndata: x\n\n"
  end)

  it("may have lines that end in any way, and spaces where they are", function()
    sent(function(s) s:send("a\r\nb\rc\n\n d") end):expect "data: a\ndata: b\ndata: c\ndata: \ndata:  d\n\n"
    sent(function(s) s:send("\r\n") end):expect "data: \ndata: \n\n"
    sent(function(s) s:send "" end):expect "data: \n\n"
  end)

  it("is JSON unless it is text", function()
    sent(function(s) s:send { a = { 1, "x\ny" } } end):expect 'data: {"a":[1,"x\\ny"]}\n\n'
    sent(function(s) s:send(srv.null) end):expect "data: null\n\n"
    sent(function(s) s:send(false) end):expect "data: false\n\n"
    sent(function(s) s:send(setmetatable({}, { __tojson = function() return { b = 2 } end })) end)
      :expect 'data: {"b":2}\n\n'
  end)

  it("may have no data: then it tells of id and retry alone", function()
    sent(function(s) s:send(nil, { id = "9", retry = 5 }) end):expect "id: 9\nretry: 5000\n\n"
    assert.matches("sse_spec.lua:%d+: sse:send: data is missing", raised(function(s) s:send() end))
    assert.matches("data is missing", raised(function(s) s:send(nil, { event = "x" }) end))
  end)

  it("has an id of one line, without a NUL, large numbers with all their digits", function()
    sent(function(s) s:send("x", { id = 2 ^ 53 }) end):expect "id: 9007199254740992\ndata: x\n\n"
    sent(function(s) s:send("x", { id = 1.5 }) end):expect "id: 1.5\ndata: x\n\n"
    sent(function(s) s:send("x", { id = "" }) end):expect "id: \ndata: x\n\n"
    for _, id in ipairs { "a\nb", "a\rb", "a\0b" } do
      assert.matches("sse_spec.lua:%d+: sse:send: id holds a line break or a NUL",
        raised(function(s) s:send("x", { id = id }) end))
    end
    assert.matches("event holds a line break", raised(function(s) s:send("x", { event = "a\ndata: y" }) end))
    assert.matches("id must be a string or a number, not a table", raised(function(s) s:send("x", { id = {} }) end))
  end)

  it("that is misuse is blamed on the app's line, and sends nothing", function()
    assert.matches("sse_spec.lua:%d+: sse:send: .*a function, which has no JSON form",
      raised(function(s) s:send(print) end))
    assert.matches("did you mean \"event\"", raised(function(s) s:send("x", { evnt = "a" }) end))
    sent(function(s) pcall(s.send, s, "x", { retry = -1 }) end):expect ""
  end)
end)

describe("a stream of events", function()
  it("knows what a client that comes back has seen", function()
    local function tell(s) s:send(s.last_id or "nothing") end
    sent(tell, { headers = { ["Last-Event-ID"] = "41" } }):expect "data: 41\n\n"
    sent(tell):expect "data: nothing\n\n"
  end)

  it("has comments of one line each, which are no events", function()
    local answer = sent(function(s)
      s:comment "still: here data: x"
      s:comment "a\r\ndata: b"
    end):expect ": still: here data: x\n\n: a data: b\n\n"
    assert.same({}, answer:events())
  end)

  it("beats at its interval, by default of 15 s, as long as the handler is silent", function()
    local clock = srv.test.clock()
    local function body_after(opts, time)
      local events = client_of(function(_, res)
        res:sse(opts)
        srv.sleep "1h"
      end):open("GET", "/")
      clock:advance(time)
      local beats = 0
      while events:chunk() do beats = beats + 1 end
      events:close()
      return beats
    end
    assert.equal(0, body_after(nil, "14s"))
    assert.equal(4, body_after(nil, "61s"))
    assert.equal(3, body_after({ heartbeat = "2s" }, "7s"))
  end)

  it("refuses to beat without a pause", function()
    local answer = client_of(function(_, res) res:sse { heartbeat = 0 } end):get("/"):expect(500)
    assert.matches("sse_spec.lua:%d+: res:sse: heartbeat must be longer than 0", answer.log[1].fields.err.message)
  end)

  it("ends its handler when the client leaves", function()
    local cause
    local events = client_of(function(_, res)
      srv.defer(function(err) cause = err end)
      local s = res:sse()
      while true do
        s:send "x"
        srv.sleep "1ms"
      end
    end):open("GET", "/")
    assert.equal("x", events:event().data)
    events:close()
    repeat srv.sleep "1ms" until cause
    assert.equal("cancelled", cause.code)
  end)

  it("holds back who sends faster than the client reads", function()
    local count = 0
    local events = client_of(function(_, res)
      local s = res:sse()
      while s:send(("x"):rep(1000)) do count = count + 1 end
    end):open("GET", "/")
    for _ = 1, 10 do events:event() end
    local held
    repeat
      held = count
      srv.sleep "20ms"
    until held == count or count >= 10 + 256
    assert.is_true(count < 10 + 256, count)
    events:close()
  end)

  it("does not mix what several tasks send", function()
    local answer = sent(function(s)
      local tasks = {}
      for i = 1, 5 do
        tasks[i] = srv.spawn(function() for _ = 1, 20 do s:send(("%d"):format(i):rep(5000)) end end)
      end
      for _, task in ipairs(tasks) do task:wait() end
    end)
    local events = answer:events()
    assert.equal(100, #events)
    for _, event in ipairs(events) do assert.equal(event.data:sub(1, 1):rep(5000), event.data) end
  end)

  it("is never compressed, and is not held back", function()
    local app = srv.app()
    app:use(srv.compress { min = 1, types = { "text/*", "text/event-stream" } })
    app:get("/", function(_, res)
      local s = res:sse()
      s:send(("x"):rep(5000))
      srv.sleep "1h"
    end)
    local t = srv.test(app)
    local events = t:open("GET", "/", { headers = { ["Accept-Encoding"] = "gzip, br, zstd" } })
    events:expect("content-encoding", false)
    assert.equal(("x"):rep(5000), events:event().data)
    t:close()
  end)
end)

describe("what srv.test reads", function()
  local function events_of(body)
    return client_of(function(_, res) return res:type("text/event-stream"):text(body) end):get("/"):events()
  end

  it("is what a browser would", function()
    assert.same({ { data = "a\nb" } }, events_of "data: a\r\ndata:b\r\n\r\n")
    assert.same({ { data = "a" }, { data = "", event = "e" } }, events_of "data: a\r\revent: e\rdata\r\r\n")
    assert.same({ { data = "x", id = "", retry = "5" } }, events_of "id\nretry:5\nother: y\ndata: x\n\n")
    assert.same({}, events_of ": data: x\n\nevent: y\n\n")
    assert.same({ { data = "whole" } }, events_of "data: whole\n\ndata: broken off\n")
  end)

  it("also where a line's end comes in two pieces", function()
    local t = client_of(function(_, res)
      for _, piece in ipairs { "data: a\r", "\n\r", "\ndata: b\r\n", "\r\n" } do
        res:write(piece)
        srv.sleep "1ms"
      end
    end)
    local events = t:open("GET", "/")
    assert.same({ "a", "b" }, { events:event().data, events:event().data })
    assert.is_nil(events:event())
  end)
end)
