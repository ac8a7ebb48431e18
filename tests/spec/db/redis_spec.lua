-- needs: redis
local env = require "srv.core.env"
local json = require "srv.core.json"
local redis = require "srv.db.redis"
local srv = require "srv"

local URL = env.getenv "TEST_REDIS_URL"

local function message_of(fn, ...)
  local ok, err = pcall(fn, ...)
  assert.is_false(ok)
  return tostring(err)
end

describe("srv.redis", function()
  local r

  before_each(function()
    r = redis.open(URL)
    assert.equal("OK", r:flushall())
  end)

  after_each(function() r:close() end)

  it("has each command as a method", function()
    assert.equal("OK", r:set("k", "v", "EX", 60))
    assert.equal("v", r:get "k")
    assert.equal(60, r:ttl "k")
    assert.equal(1, r:del "k")
    assert.equal("PONG", r:ping())
    assert.equal("v2", r:call("ECHO", "v2"))
  end)

  it("keeps any bytes, and numbers exactly", function()
    local bytes = {}
    for i = 0, 255 do bytes[#bytes + 1] = string.char(i) end
    bytes = table.concat(bytes)
    r:set("bytes", bytes)
    assert.equal(bytes, r:get "bytes")
    r:set("n", 0.1)
    assert.equal("0.1", r:get "n")
    r:set("n", 2 ^ 53)
    assert.equal("9007199254740992", r:get "n")
    assert.equal(9007199254740992, r:incrby("n", 0))
    assert.equal("9007199254740993", r:incr "n")
    r:set("n", -5)
    assert.equal(-4, r:incr "n")
  end)

  it("gives nil for nil, and null inside arrays so that they keep their length", function()
    local v, err = r:get "nothing"
    assert.is_nil(v)
    assert.is_nil(err)
    r:mset("a", 1, "c", 3)
    local all = r:mget("a", "b", "c", "d")
    assert.equal(4, #all)
    assert.same({ "1", json.null, "3", json.null }, all)
    assert.same({}, r:lrange("nothing", 0, -1))
  end)

  it("nests arrays as Redis does", function()
    local id = assert(r:xadd("s", "*", "field", "value"))
    assert.same({ { "s", { { id, { "field", "value" } } } } }, r:xread("COUNT", 10, "STREAMS", "s", "0"))
  end)

  it("returns what Redis refuses, with its own word first", function()
    r:set("k", "text")
    local v, err = r:lpush("k", 1)
    assert.is_nil(v)
    assert.equal("redis", err.code)
    assert.equal(500, err.status)
    assert.matches("^WRONGTYPE ", err.message)
    v, err = r:nonsense()
    assert.is_nil(v)
    assert.matches("^ERR unknown command", err.message)
  end)

  it("pipelines what is asked for at once, and mixes nothing up", function()
    local asks = {}
    for i = 1, 200 do asks[i] = { function() return r:echo("tag " .. i) end } end
    local got = { srv.all(unpack(asks)) }
    for i = 1, 200 do assert.equal("tag " .. i, got[i]) end
  end)

  it("drops the reply of a cancelled command", function()
    local task = srv.spawn(function() return r:echo "gone" end)
    local kept = srv.spawn(function() return r:echo "kept" end)
    srv.sleep(0)
    task:cancel()
    assert.equal("kept", kept:wait())
    assert.equal("next", r:echo "next")
  end)

  it("lets commands that wait at the server hold nobody up", function()
    local popped = srv.spawn(function() return r:blpop("queue", 0) end)
    assert.equal("quick", r:echo "quick")
    r:rpush("queue", "job")
    assert.same({ "queue", "job" }, popped:wait())
    local read = srv.spawn(function() return r:xread("block", 0, "STREAMS", "s", "$") end)
    assert.is_nil((srv.timeout(0.05, function() return read:wait() end)))
    r:xadd("s", "*", "a", "b")
    assert.same({ "a", "b" }, read:wait()[1][2][1][2])
    assert.is_nil(r:blpop("nothing", 0.01))
  end)

  it("closes what a cancelled wait at the server was on", function()
    local before = r:client "LIST"
    local task = srv.spawn(function() return r:blpop("never", 0) end)
    assert.equal("PONG", r:ping())
    task:cancel()
    for _ = 1, 1000 do
      if not r:client("LIST"):find "cmd=blpop" then break end
      srv.sleep(0.005)
    end
    assert.is_nil(r:client("LIST"):find "cmd=blpop")
    assert.is_string(before)
  end)

  it("shares one connection between handles with the same URL and options", function()
    local other = redis.open(URL)
    local options = redis.open(URL, { timeout = "3s" })
    assert.equal(r:client "ID", other:client "ID")
    assert.not_equal(r:client "ID", options:client "ID")
    other:close()
    options:close()
    assert.equal("PONG", r:ping())
  end)

  describe("multi", function()
    it("runs its commands together and gives an array", function()
      local got = r:multi(function(m)
        m:set("a", 1):incr "a"
        m:get "a"
        m:get "nothing"
      end)
      assert.same({ "OK", 2, "2", json.null }, got)
    end)

    it("sends nothing after an error or nil, err", function()
      assert.matches("stop here", message_of(r.multi, r, function(m)
        m:set("a", 1)
        error "stop here"
      end))
      local v, err = r:multi(function(m)
        m:set("a", 1)
        return nil, "no"
      end)
      assert.is_nil(v)
      assert.equal("no", err)
      assert.is_nil(r:get "a")
      assert.same({}, r:multi(function() end))
    end)

    it("tells of a command that failed while the others ran", function()
      r:set("text", "x")
      local v, err = r:multi(function(m)
        m:set("a", 1)
        m:lpush("text", 1)
      end)
      assert.is_nil(v)
      assert.equal("redis", err.code)
      assert.matches("command 2 of the transaction failed, the others ran: WRONGTYPE", err.message)
      assert.equal("OK", err.data.results[1])
      assert.equal("1", r:get "a")
    end)

    it("runs nothing when a command is refused", function()
      local v, err = r:multi(function(m)
        m:set("a", 1)
        m:nonsense()
      end)
      assert.is_nil(v)
      assert.matches("command 2 of the transaction was refused, nothing ran: ERR unknown command", err.message)
      assert.is_nil(r:get "a")
      assert.equal("PONG", r:ping())
    end)

    it("is a conflict when a watched key was changed, and can begin anew", function()
      r:set("stock", 5)
      local tries = 0
      local function take(m, now)
        tries = tries + 1
        local stock = tonumber(now:get "stock")
        if tries == 1 then r:set("stock", 3) end
        m:set("stock", stock - 1)
      end
      local v, err = r:multi({ watch = "stock" }, take)
      assert.is_nil(v)
      assert.equal("conflict", err.code)
      assert.equal(409, err.status)
      tries = 0
      assert.same({ "OK" }, r:multi({ watch = { "stock" }, retries = 3 }, take))
      assert.equal(2, tries)
      assert.equal("2", r:get "stock")
    end)

    it("is over when its connection is lost amid it", function()
      local own = redis.open(URL, { pool = 1 })
      for _ = 1, 3 do
        local v, err = own:multi({ watch = "a" }, function(m, now)
          local id = now:client "ID"
          assert.equal(1, r:client("KILL", "ID", id))
          while r:client("LIST"):find("id=" .. id .. " ", 1, true) do srv.sleep(0.005) end
          srv.sleep(0.02)
          m:set("a", 1)
        end)
        assert.is_nil(v)
        assert.equal("unavailable", err.code)
      end
      assert.same({ "OK" }, own:multi({ watch = "a" }, function(m) m:set("a", 1) end))
      own:close()
    end)

    it("closes the connection of a watch that ends badly", function()
      assert.matches("broken", message_of(r.multi, r, { watch = "a" }, function() error "broken" end))
      local task = srv.spawn(function() r:multi({ watch = "a" }, function() srv.sleep(60) end) end)
      srv.sleep(0.05)
      task:cancel()
      assert.same({}, r:multi({ watch = "a" }, function() end))
      assert.same({ "OK" }, r:multi({ watch = "a" }, function(m) m:set("a", 1) end))
    end)
  end)

  it("runs scripts by their digest, and sends those that Redis does not know", function()
    local script = r:script [[return { KEYS[1], ARGV[1], tonumber(ARGV[2]) + 1 }]]
    assert.same({ "k", "a", 3 }, script:call({ "k" }, { "a", 2 }))
    r:call("SCRIPT", "FLUSH")
    assert.same({ "k", "a", 3 }, script:call({ "k" }, { "a", 2 }))
    local v, err = r:script([[return redis.error_reply "MY own"]]):call()
    assert.is_nil(v)
    assert.equal("MY own", err.message)
  end)

  it("tells redirections of a cluster, and what passes by itself", function()
    local v, err = r:script([[return redis.error_reply "MOVED 3999 10.0.0.1:6381"]]):call()
    assert.is_nil(v)
    assert.equal("redis", err.code)
    assert.matches("MOVED 3999 10.0.0.1:6381: the key belongs to another server of a Redis Cluster", err.message, 1, true)
    v, err = r:script([[return redis.error_reply "LOADING Redis is loading the dataset in memory"]]):call()
    assert.is_nil(v)
    assert.equal("unavailable", err.code)
    assert.equal(503, err.status)
  end)

  describe("subscribe", function()
    it("loops over messages with their channels", function()
      local got = {}
      local sub = r:subscribe("a", "b")
      r:publish("a", "one")
      r:publish("c", "none")
      r:publish("b", "two\0")
      for message, channel in sub do
        got[#got + 1] = channel .. "=" .. message
        if #got == 2 then break end
      end
      assert.same({ "a=one", "b=two\0" }, got)
      sub:close()
      assert.is_nil(sub())
    end)

    it("tells the pattern", function()
      local sub = r:psubscribe "room.*"
      r:publish("room.7", "hello")
      local message, channel, pattern = sub:receive "5s"
      assert.equal("hello", message)
      assert.equal("room.7", channel)
      assert.equal("room.*", pattern)
      local v, err = sub:receive(0.01)
      assert.is_nil(v)
      assert.equal("timeout", err.code)
      sub:close()
    end)

    it("ends with its task", function()
      srv.spawn(function() r:subscribe "ended" end):wait()
      for _ = 1, 1000 do
        if r:publish("ended", "x") == 0 then break end
        srv.sleep(0.005)
      end
      assert.equal(0, r:publish("ended", "x"))
    end)

    it("comes back when its connection was lost", function()
      local sub = r:subscribe "back"
      r:client("KILL", "TYPE", "pubsub")
      for _ = 1, 1000 do
        if r:publish("back", "again") == 1 then break end
        srv.sleep(0.01)
      end
      assert.equal("again", (sub:receive "5s"))
      sub:close()
    end)

    it("raises what keeps it from beginning", function()
      local away = redis.open "redis://127.0.0.1:1"
      local ok, err = pcall(away.subscribe, away, "a")
      assert.is_false(ok)
      assert.equal("unavailable", err.code)
      away:close()
    end)
  end)

  --- A server that greets, and says REPLY to each line that comes after that.
  local function open_odd(reply, connect_timeout)
    local listener = assert(srv.tcp.listen("127.0.0.1:0", function(sock)
      sock:read_until "PING\r\n"
      sock:write "+PONG\r\n"
      for _ in sock do sock:write(reply) end
    end))
    return redis.open("redis://" .. listener.address, { connect_timeout = connect_timeout }), listener
  end

  it("does not wait for ever for a subscription that is not confirmed", function()
    local odd, listener = open_odd(":1\r\n", "1s")
    local ok, err = pcall(odd.subscribe, odd, "a")
    assert.is_false(ok)
    assert.equal("timeout", err.code)
    odd:close()
    listener:close()
  end)

  it("returns what is wrong with a transaction's answer", function()
    local odd, listener = open_odd ":1\r\n:1\r\n:1\r\n"
    local results, err = odd:multi(function(m) m:incr "a" end)
    assert.is_nil(results)
    assert.equal("redis", err.code)
    odd:close()
    listener:close()
  end)

  it("fails at once while nobody listens", function()
    local away = redis.open "redis://127.0.0.1:1"
    local v, err = away:get "k"
    assert.is_nil(v)
    assert.equal("unavailable", err.code)
    assert.equal(503, err.status)
    assert.matches("127.0.0.1:1", err.message, 1, true)
    local began = srv.monotonic()
    v, err = away:get "k"
    assert.is_nil(v)
    assert.equal("unavailable", err.code)
    assert.is_true(srv.monotonic() - began < 1)
    away:close()
  end)

  it("blames the app's line for misuse", function()
    local cases = {
      { { 7 }, "the URL must be a string" },
      { { "http://h" }, "the scheme is unknown" },
      { { "rediss://h?ca=here.pem" }, "paths that begin with /" },
      { { "rediss://h", { tls = { ca = "here.pem" } } }, '"ca" must be a path that begins with /' },
      { { "rediss://h", { tls = { pin = "sha256/AAAA" } } }, '"pin" must be' },
      { { "rediss://h", { tls = { key = "/me.key" } } }, 'option "key" belongs to a "cert"' },
      { { "redis://h", { tls = {} } }, "URLs that begin with rediss://" },
      { { URL, { time_out = 1 } }, 'unknown option "time_out", did you mean "timeout"?' },
      { { URL, { pool = 0 } }, 'option "pool" must be a whole number' },
    }
    for _, case in ipairs(cases) do
      local message = message_of(function() redis.open(unpack(case[1])) end)
      assert.matches(case[2], message, 1, true)
      assert.matches("redis_spec.lua:%d+: ", message)
    end
    local calls = {
      { function() r:set("k", nil) end, "argument 2 is nil" },
      { function() r:set("k", {}) end, "encode a table first" },
      { function() r:set("k", true) end, "write 1 and 0" },
      { function() r:select(1) end, "belong into the URL" },
      { function() r:watch "k" end, "use r:multi" },
      { function() r:call("SUBSCRIBE", "k") end, "use r:subscribe" },
      { function() r:client("REPLY", "OFF") end, "the connection is shared" },
      { function() r:multi(function(m) m:select(1) end) end, "belong into the URL" },
      { function() r:multi(function(m) m:subscribe "k" end) end, "use r:subscribe" },
      { function() r:multi(function(m) m:set("k", nil, "EX", 1) end) end, "argument 2 is nil" },
      { function() r:multi {} end, "a function is missing" },
      { function() r:multi(function(m) m:set("k", {}) end) end, "argument 2 is table" },
      { function() r:script(7) end, "must be a string" },
    }
    for _, case in ipairs(calls) do
      local message = message_of(case[1])
      assert.matches(case[2], message, 1, true)
      assert.matches("redis_spec.lua:%d+: ", message)
    end
    local closed = redis.open(URL)
    closed:close()
    assert.matches("closed", message_of(closed.get, closed, "k"))
  end)

  it("counts what is under way", function()
    local stats = redis.stats()
    assert.equal(0, stats.pending)
    assert.is_true(stats.connections >= 1)
    assert.is_true(stats.calls > 0)
  end)
end)
