--- API, section 1: every table of options refuses unknown names with the nearest, and takes units; mistakes are
--- blamed on the line that made them.
local srv = require "srv"

local HERE = "s01_options_spec.lua:%d+: "

local function message_of(fn, ...)
  local ok, raised = pcall(fn, ...)
  return ok and "no error" or tostring(raised)
end

local function handler() end

--- Where options go: a name for the message, one name that is misspelt and the right one, and the call.
local TAKERS = {
  { "srv.app", "time_out", "timeout", function(o) srv.app(o) end },
  { "srv.router", "slsh", "slash", function(o) srv.router(o) end },
  { "a route", "timeot", "timeout", function(o) srv.app():get("/", o, handler) end },
  { "app:every", "jiter", "jitter", function(o) srv.app():every("5m", o, handler) end },
  { "app:static", "max_agee", "max_age", function(o) srv.app():static("/", "web/public", o) end },
  { "srv.schema", "optionl", "optional", function(o) srv.schema({ a = "string" }, o) end },
  { "srv.map", "limt", "limit", function(o) srv.map({}, handler, o) end },
  { "srv.http.get", "timeuot", "timeout", function(o) srv.http.get("http://127.0.0.1:1/", o) end },
  { "srv.http.client", "bas", "base", function(o) srv.http.client(o) end },
  { "srv.http.pool", "per_orign", "per_origin", function(o) srv.http.pool(o) end },
  { "srv.db", "queu", "queue", function(o) srv.db("sqlite::memory:s01", o) end },
  { "srv.sqlite", "pol", "pool", function(o) srv.sqlite("sqlite::memory:s01", o) end },
  { "srv.postgres", "timout", "timeout", function(o) srv.postgres("postgres://h/d", o) end },
  { "srv.redis", "quue", "queue", function(o) srv.redis("redis://127.0.0.1:1", o) end },
  { "srv.shared", "byte", "bytes", function(o) srv.shared("s01", o) end },
  { "srv.bus.subscribe", "limits", "limit", function(o) srv.bus.subscribe("s01", o) end },
  { "srv.tcp.connect", "connect_timout", "connect_timeout", function(o) srv.tcp.connect("127.0.0.1", 1, o) end },
  { "srv.tcp.listen", "connection", "connections", function(o) srv.tcp.listen("127.0.0.1:0", handler, o) end },
  { "srv.unix.connect", "timeot", "timeout", function(o) srv.unix.connect("/none", o) end },
  { "srv.unix.listen", "timeot", "timeout", function(o) srv.unix.listen("@s01", handler, o) end },
  { "srv.udp.bind", "timeot", "timeout", function(o) srv.udp.bind("127.0.0.1:0", o) end },
  { "srv.udp.connect", "timeot", "timeout", function(o) srv.udp.connect("127.0.0.1", 1, o) end },
  { "srv.dns.resolve", "timeot", "timeout", function(o) srv.dns.resolve("localhost", o) end },
  { "srv.exec", "timeot", "timeout", function(o) srv.exec({ "true" }, o) end },
  { "srv.exec.start", "cwdd", "cwd", function(o) srv.exec.start({ "true" }, o) end },
  { "srv.fs.remove", "recursiv", "recursive", function(o) srv.fs.remove("/none", o) end },
  { "srv.fs.temp", "sufix", "suffix", function(o) srv.fs.temp(o) end },
  { "srv.crypto.jwt_sign", "expire", "expires", function(o) srv.crypto.jwt_sign({}, o) end },
  { "srv.crypto.jwt_verify", "isuer", "issuer", function(o) srv.crypto.jwt_verify("a.b.c", o) end },
  { "srv.json.encode", "prety", "pretty", function(o) srv.json.encode({}, o) end },
  { "srv.json.decode", "deph", "depth", function(o) srv.json.decode("{}", o) end },
  { "srv.template.compile", "knd", "kind", function(o) srv.template.compile("x", o) end },
  { "srv.rate_limit", "windw", "window", function(o) srv.rate_limit(o) end },
  { "srv.session", "stor", "store", function(o) srv.session(o) end },
  { "srv.csrf", "origin", "origins", function(o) srv.csrf(o) end },
  { "srv.request_id", "hedaer", "header", function(o) srv.request_id(o) end },
  { "srv.health", "chekcs", "checks", function(o) srv.health(o) end },
  { "srv.metrics", "pth", "path", function(o) srv.metrics(o) end },
  { "srv.proxy_trust", "headr", "header", function(o)
    o[1] = "loopback"
    srv.proxy_trust(o)
  end },
  { "srv.test.db", "pol", "pool", function(o) srv.test.db(o) end },
  { "reader:all", "limt", "limit", function(o) srv.fs.temp():all(o) end },
}

describe("an unknown option", function()
  for _, taker in ipairs(TAKERS) do
    local name, wrong, right, call = unpack(taker)
    it("of " .. name .. " is refused with the nearest name, on the caller's line", function()
      local message = message_of(call, { [wrong] = 1 })
      assert.is_truthy(message:find("^[^ ]*" .. HERE), message)
      assert.is_truthy(message:find(('unknown option "%s", did you mean "%s"?'):format(wrong, right), 1, true), message)
      local far = message_of(call, { qqqqqqqq = 1 })
      assert.is_truthy(far:find('unknown option "qqqqqqqq"', 1, true), far)
    end)
    if name ~= "srv.proxy_trust" then
      it("of " .. name .. " can only stand in a table", function()
        assert.is_truthy(message_of(call, "5s"):find(HERE), message_of(call, "5s"))
      end)
    end
  end

  it("of a request, of tx and of multi is refused as well", function()
    local db = srv.test.db { migrations = false }
    assert.matches('unknown option "retrys", did you mean "retries"', message_of(function() db:tx({ retrys = 1 }, handler) end))
    assert.matches('unknown option "wtch", did you mean "watch"',
      message_of(function() srv.redis "redis://127.0.0.1:1":multi({ wtch = 1 }, handler) end))
    local app = srv.app()
    app:get("/forward", function(req) return srv.http.forward(req, "http://127.0.0.1:1", { header = {} }) end)
    app:get("/sse", function(_, res) res:sse { hartbeat = "5s" } end)
    app:get("/cookie", function(_, res) return res:cookie("a", "b", { htp_only = true }):send "x" end)
    app:get("/file", function(_, res) return res:file("web/public/hello.txt", { max_agee = 1 }) end)
    app:post("/json", function(req) return req:json { dept = 5 } end)
    local t = srv.test(app)
    local function refused(answer, hint)
      local message = tostring(answer:expect(500).log[1].fields.err)
      assert.is_truthy(message:find(('did you mean "%s"?'):format(hint), 1, true), message)
    end
    for path, hint in pairs { ["/forward"] = "headers", ["/sse"] = "heartbeat", ["/cookie"] = "http_only", ["/file"] = "max_age" } do
      refused(t:get(path), hint)
    end
    refused(t:post("/json", { json = { 1 } }), "depth")
  end)
end)

--- Options that are durations or sizes.
local UNITS = {
  { "srv.app", "timeout", function(o) srv.app(o) end },
  { "a route", "timeout", function(o) srv.app():get("/", o, handler) end },
  { "app:every", "jitter", function(o) srv.app():every("5m", o, handler) end },
  { "app:every", "timeout", function(o) srv.app():every("5m", o, handler) end },
  { "app:static", "max_age", function(o) srv.app():static("/", "web/public", o) end },
  { "srv.http.client", "timeout", function(o) srv.http.client(o) end },
  { "srv.http.client", "connect_timeout", function(o) srv.http.client(o) end },
  { "srv.http.client", "first_byte_timeout", function(o) srv.http.client(o) end },
  { "srv.http.pool", "idle", function(o) srv.http.pool(o) end },
  { "srv.sqlite", "timeout", function(o)
    o.migrations = false
    srv.sqlite("sqlite::memory:s01", o):close()
  end },
  { "srv.redis", "timeout", function(o) srv.redis("redis://127.0.0.1:1", o) end },
  { "srv.redis", "connect_timeout", function(o) srv.redis("redis://127.0.0.1:1", o) end },
  { "srv.unix.connect", "timeout", function(o) srv.unix.connect("/none", o) end },
  { "srv.unix.connect", "connect_timeout", function(o) srv.unix.connect("/none", o) end },
  { "srv.tcp.listen", "timeout", function(o) assert(srv.tcp.listen("127.0.0.1:0", handler, o)):close() end },
  { "srv.udp.bind", "timeout", function(o) assert(srv.udp.bind("127.0.0.1:0", o)):close() end },
  { "srv.dns.resolve", "timeout", function(o) srv.dns.resolve("127.0.0.1", o) end },
  { "srv.exec", "timeout", function(o) srv.exec({ "true" }, o) end },
  { "srv.crypto.jwt_sign", "expires", function(o)
    o.alg, o.key = "HS256", ("k"):rep(32)
    srv.crypto.jwt_sign({}, o)
  end },
  { "srv.crypto.jwt_verify", "leeway", function(o)
    o.alg, o.key = "HS256", ("k"):rep(32)
    srv.crypto.jwt_verify("a.b.c", o)
  end },
  { "srv.rate_limit", "window", function(o) srv.rate_limit(o) end },
  { "srv.session", "ttl", function(o) srv.session(o) end },
  { "srv.health", "timeout", function(o) srv.health(o) end },
}

local SIZES = {
  { "srv.app", "body_limit", function(o) srv.app(o) end },
  { "a route", "body_limit", function(o) srv.app():get("/", o, handler) end },
  { "srv.http.client", "limit", function(o) srv.http.client(o) end },
  { "srv.shared", "bytes", function(o) srv.shared("s01-size", o) end },
  { "srv.exec", "limit", function(o) srv.exec({ "true" }, o) end },
  { "reader:all", "limit", function(o) srv.fs.temp():all(o) end },
}

describe("durations and sizes", function()
  local function holds(list, good, bad)
    for _, taker in ipairs(list) do
      local name, option, call = unpack(taker)
      it(("%s: %s takes numbers and texts with units, and no others"):format(name, option), function()
        for _, value in ipairs(good) do assert.equal("no error", message_of(call, { [option] = value }), tostring(value)) end
        for _, value in ipairs(bad) do
          local message = message_of(call, { [option] = value })
          assert.is_truthy(message:find(HERE), tostring(value) .. ": " .. message)
          assert.is_truthy(message:find(option, 1, true), message)
        end
      end)
    end
  end

  holds(UNITS, { 2, "2s", "1500ms", "1m" }, { -1, "2 parsecs", "2x", 0 / 0, true, {}, "" })
  holds(SIZES, { 1048576, "1MiB" }, { -1, 0.5, "1 MB", "1Mib", 0 / 0, true, {}, "" })

  it("as arguments: sleep, timeout, waits, times to live", function()
    local d, channel, event = srv.shared("s01-arguments", { bytes = "64KiB" }), srv.channel(1), srv.event()
    channel:send(1)
    event:set()
    for _, fn in ipairs {
      function(t) srv.sleep(t) end, function(t) srv.timeout(t, handler) end, function(t) srv.spawn(handler):wait(t) end,
      function(t)
        channel:receive(t)
        channel:send(1, t)
      end,
      function(t) event:wait(t) end,
      function(t)
        local s = srv.semaphore(1)
        s:acquire(t)
      end,
      function(t) srv.mutex():lock(t) end,
      function(t) d:set("k", 1, t) end, function(t) d:add("k", 1, t) end, function(t) d:incr("n", 1, t) end,
      function(t) d:get_or_compute("c" .. tostring(t), t, function() return 1 end) end,
      function(t) d:wait("k", t, "another") end,
      function(t)
        local sub = srv.bus.subscribe "s01"
        srv.bus.publish("s01", 1)
        sub:receive(t)
        sub:close()
      end,
      function(t)
        local p = assert(srv.exec.start { "true" })
        p:wait(t)
      end,
    } do
      for _, good in ipairs { 0.01, "10ms" } do assert.equal("no error", message_of(fn, good)) end
      for _, bad in ipairs { -1, "soon", 0 / 0, true } do
        local message = message_of(fn, bad)
        assert.is_truthy(message:find(HERE), debug.getinfo(fn, "S").linedefined .. " " .. tostring(bad) .. ": " .. message)
      end
    end
  end)
end)

describe("a number of something", function()
  it("is a whole number within its bounds", function()
    for _, fn in ipairs {
      function(n) srv.map({}, handler, { limit = n }) end,
      function(n) srv.http.client { retries = n == 0 and -1 or n } end, function(n) srv.http.client { redirects = n == 0 and -1 or n } end,
      function(n) srv.http.pool { total = n } end, function(n) srv.http.pool { per_origin = n } end,
      function(n) srv.sqlite("sqlite::memory:s01", { pool = n, migrations = false }) end,
      function(n) srv.sqlite("sqlite::memory:s01", { queue = n, migrations = false }) end,
      function(n) srv.redis("redis://127.0.0.1:1", { queue = n }) end, function(n) srv.redis("redis://127.0.0.1:1", { pool = n }) end,
      function(n) srv.bus.subscribe("s01", { limit = n }) end,
      function(n) srv.tcp.listen("127.0.0.1:0", handler, { connections = n }) end,
      function(n) srv.tcp.connect("127.0.0.1", n) end,
      function(n) srv.rate_limit { limit = n } end,
      function(n) srv.semaphore(n) end,
      function(n) srv.fs.temp():read(n) end,
      function(n) srv.crypto.random(n) end,
      function(n) srv.test.db { migrations = false }:tx({ retries = n == 0 and -1 or n }, handler) end,
      function(n) srv.redis "redis://127.0.0.1:1":multi({ watch = "k", retries = n == 0 and -1 or n }, handler) end,
    } do
      for _, bad in ipairs { 0, -1, 1.5, 0 / 0, 1 / 0, "many" } do
        local message = message_of(fn, bad)
        assert.is_truthy(message:find(HERE), debug.getinfo(fn, "S").linedefined .. " " .. tostring(bad) .. ": " .. message)
      end
    end
  end)
end)
