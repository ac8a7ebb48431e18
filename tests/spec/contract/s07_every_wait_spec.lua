--- API, section 7: the rules of waiting hold for every call that waits. Each of these waits for what does not come.
local srv = require "srv"

local SLOW_SQL = "with recursive c(n) as (select 1 union all select n + 1 from c where n < 1e12) select max(n) from c"

--- A socket whose other end is silent and reads nothing.
local function silent(fn)
  local name = "@s07-" .. srv.crypto.token(6)
  local listener = assert(srv.unix.listen(name, function() srv.event():wait() end))
  srv.defer(function() listener:close() end)
  return fn(name)
end

-- An argument by which the programs of this run are known.
local AGE = ("%d.%d"):format(3600, srv.worker.pid)

local databases = {}

local function database(name, opts)
  opts = opts or {}
  opts.migrations, opts.timeout = false, "1h"
  local db = srv.sqlite("sqlite::memory:s07-" .. name, opts)
  databases[#databases + 1] = db
  return db
end

local WAITS = {
  ["srv.sleep"] = function() srv.sleep "1h" end,
  ["event:wait"] = function() srv.event():wait() end,
  ["channel:receive"] = function() srv.channel():receive() end,
  ["channel:each"] = function() for _ in srv.channel():each() do end end,
  ["channel:send"] = function() srv.channel():send(1) end,
  ["semaphore:acquire"] = function()
    local semaphore = srv.semaphore(1)
    srv.spawn(function()
      semaphore:acquire()
      srv.sleep "1h"
    end)
    srv.sleep(0)
    semaphore:acquire()
  end,
  ["mutex:lock"] = function()
    local mutex = srv.mutex()
    srv.spawn(function()
      mutex:lock()
      srv.sleep "1h"
    end)
    srv.sleep(0)
    mutex:lock()
  end,
  ["task:wait"] = function() srv.spawn(srv.sleep, "1h"):wait() end,
  ["srv.all"] = function() srv.all({ srv.sleep, "1h" }, { srv.sleep, "1h" }) end,
  ["srv.map"] = function() srv.map({ "1h", "1h", "1h" }, srv.sleep, { limit = 2 }) end,
  ["srv.race"] = function() srv.race({ srv.sleep, "1h" }, { srv.sleep, "1h" }) end,
  ["srv.timeout"] = function() srv.timeout("1h", srv.sleep, "1h") end,
  ["shared:wait"] = function() srv.shared("s07", { bytes = "64KiB" }):wait "never" end,
  ["shared:get_or_compute"] = function()
    local d, key = srv.shared("s07", { bytes = "64KiB" }), srv.crypto.token()
    srv.spawn(function() d:get_or_compute(key, 1, function() srv.sleep "1h" end) end)
    srv.sleep(0)
    d:get_or_compute(key, 1, function() return 1 end)
  end,
  ["subscription:receive"] = function() srv.bus.subscribe "s07.never":receive() end,
  ["subscription:each"] = function() for _ in srv.bus.subscribe "s07.never":each() do end end,
  ["socket:read"] = function() silent(function(name) return assert(srv.unix.connect(name)):read() end) end,
  ["socket:line"] = function() silent(function(name) return assert(srv.unix.connect(name)):line() end) end,
  ["socket:write"] = function() silent(function(name) return assert(srv.unix.connect(name)):write(("x"):rep(64 * 2 ^ 20)) end) end,
  ["udp:receive"] = function() assert(srv.udp.bind "127.0.0.1:0"):receive() end,
  ["srv.http.get"] = function() silent(function(name) return srv.http.get("http://a.example/", { unix = name, timeout = "1h" }) end) end,
  ["a body for srv.http"] = function()
    silent(function(name) return srv.http.put("http://a.example/", { unix = name, timeout = "1h", body = function() return ("x"):rep(65536) end }) end)
  end,
  ["response:stream"] = function()
    local name = "@s07-" .. srv.crypto.token(6)
    local listener = assert(srv.unix.listen(name, function(sock)
      sock:read_until "\r\n\r\n"
      sock:write "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"
      srv.event():wait()
    end))
    srv.defer(function() listener:close() end)
    assert(srv.http.get("http://a.example/", { unix = name, timeout = "1h", stream = true })):stream():all()
  end,
  ["a place in the pool of srv.http"] = function()
    silent(function(name)
      local urls = {}
      for i = 1, 70 do urls[i] = "http://a.example/" .. i end
      return srv.map(urls, srv.http.client { unix = name, timeout = "1h" }.get, { limit = 70 })
    end)
  end,
  ["srv.exec"] = function() srv.exec({ "sleep", AGE }, { timeout = "1h" }) end,
  ["process:wait"] = function() assert(srv.exec.start { "sleep", AGE }):wait() end,
  ["process.stdout:read"] = function() assert(srv.exec.start { "sleep", AGE }).stdout:read() end,
  ["process.stdin:write"] = function() assert(srv.exec.start { "sleep", AGE }).stdin:write(("x"):rep(2 ^ 20)) end,
  ["db:query"] = function() database("query"):query(SLOW_SQL) end,
  ["db:rows"] = function() for _ in database("rows"):rows(SLOW_SQL) do end end,
  ["db:tx that waits for another"] = function()
    local db = database("tx", { pool = 2 })
    srv.spawn(function() db:tx(function() srv.sleep "1h" end) end)
    srv.sleep "5ms"
    db:tx(function() end)
  end,
}

setfenv(assert(loadfile "tests/spec/contract/waits.lua"), getfenv(1))()(WAITS)   -- with describe and it

describe("what all of these have held", function()
  teardown(function() for _, db in ipairs(databases) do db:close() end end)

  it("is given back", function()
    local pool = srv.http.pool()
    for _ = 1, 500 do
      if pool.open == pool.idle and pool.waiting == 0 then break end
      srv.sleep "10ms"
      pool = srv.http.pool()
    end
    assert.equal(pool.idle, pool.open)
    assert.equal(0, pool.waiting)
    for _ = 1, 500 do
      local pipe = io.popen(("ps -e -o args= | grep -c '^sleep %s$'"):format(AGE:gsub("%.", "[.]")))
      local left = pipe:read "*l"
      pipe:close()
      if left == "0" then return end
      srv.sleep "10ms"
    end
    error "programs are left"
  end)
end)
