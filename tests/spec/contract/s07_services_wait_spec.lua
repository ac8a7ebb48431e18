-- needs: postgres redis
--- API, section 7: the rules of waiting hold for what waits at PostgreSQL and Redis.
local srv = require "srv"

local POSTGRES, REDIS = os.getenv "TEST_POSTGRES_URL", os.getenv "TEST_REDIS_URL"
srv.test.env { REDIS_URL = REDIS }

-- A request to stop a statement may be lost where all connections are held up at once: then the server's own limit ends
-- it, which is longer than anything here waits.
local db = srv.postgres(POSTGRES, { migrations = false, timeout = "4s", pool = 40 })
local small = srv.postgres(POSTGRES .. "?application_name=s07", { migrations = false, timeout = "1h", pool = 2 })
local redis, cache = srv.redis(REDIS), srv.cache

local WAITS = {
  ["db:query"] = function() db:query "select pg_sleep(3600)" end,
  ["db:rows"] = function() for _ in db:rows "select pg_sleep(3600)" do end end,
  ["tx:query"] = function() db:tx(function(tx) return tx:query "select pg_sleep(3600)" end) end,
  ["a wait inside db:tx"] = function() db:tx(function() srv.sleep "1h" end) end,
  ["a place in the pool"] = function()
    local function hold() return small:tx(function() srv.sleep "1h" end) end
    srv.all(hold, hold, hold, hold)
  end,
  ["db:listen"] = function() for _ in db:listen "s07_never" do end end,
  ["db:copy_out"] = function() db:copy_out "copy (select pg_sleep(3600)) to stdout":all() end,
  ["redis:blpop"] = function() redis:blpop("s07.never", 3600) end,
  ["redis:subscribe"] = function() for _ in redis:subscribe "s07.never" do end end,
  ["redis:multi with watch"] = function() redis:multi({ watch = "s07" }, function() srv.sleep "1h" end) end,
  ["cache:wait"] = function() cache:wait("s07.never", "1h") end,
  ["cache:get_or_compute"] = function()
    local key = srv.crypto.token()
    srv.spawn(function() cache:get_or_compute(key, 1, function() srv.sleep "1h" end) end)
    srv.sleep "5ms"
    cache:get_or_compute(key, 1, function() return 1 end)
  end,
}

setfenv(assert(loadfile "tests/spec/contract/waits.lua"), getfenv(1))()(WAITS)   -- with describe and it

describe("what all of these have held", function()
  it("is given back: connections work, and the server runs nothing of ours", function()
    for _ = 1, 800 do
      if db:value "select count(*) from pg_stat_activity where state = 'active' and query like '%pg_sleep(3600)%' and pid <> pg_backend_pid()" == 0 then break end
      srv.sleep "10ms"
    end
    assert.equal(0, db:value "select count(*) from pg_stat_activity where state = 'active' and query like '%pg_sleep(3600)%' and pid <> pg_backend_pid()")
    assert.equal(1, small:value "select 1")
    assert.equal("PONG", redis:ping())
    db:close()
    small:close()
  end)
end)
