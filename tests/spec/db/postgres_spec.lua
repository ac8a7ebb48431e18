-- needs: postgres
local fixture = require "db.modules.postgres_fixture"
local task = require "srv.async.task"
local core = require "srv.core.pg"

local URL, open, schema, elapsed, eventually = fixture.URL, fixture.open, fixture.schema, fixture.elapsed, fixture.eventually

describe("connections to PostgreSQL", function()
  it("are encrypted and authenticated as the URL says", function()
    local db = open { url = URL .. "?sslmode=require" }
    assert.is_true(db:value "select ssl from pg_stat_ssl where pid = pg_backend_pid()")
    assert.equal(200000, #assert(db:value "select repeat('x', 200000)"))
    for _ = 1, 20 do assert.equal(3000, #assert(db:query "select repeat('y', 100) from generate_series(1, 3000)")) end
    db:close()
    db = open { url = URL .. "?sslmode=disable" }
    assert.is_false(db:value "select ssl from pg_stat_ssl where pid = pg_backend_pid()")
    db:close()
  end)

  it("carry many statements at once, each with its own answer", function()
    local db = open { queue = 1000 }
    assert(db:query "select 1")
    local fns = {}
    for i = 1, 300 do
      fns[i] = function()
        if i % 7 == 0 then
          local ok, err = db:query(("select %d / 0"):format(i % 3))
          assert(ok == nil and err.code == "sql")
          return i
        end
        return (assert(db:value("select $1::int", i)))
      end
    end
    for round = 1, 3 do
      local got = { task.all(unpack(fns)) }
      for i = 1, 300 do assert.equal(i, got[i], "round " .. round) end
    end
    db:close()
  end)

  it("keep their prepared statements within a bound", function()
    local db = open { url = URL .. "?application_name=bound" }
    for i = 1, 300 do assert.equal(i, db:value(("select %d"):format(i))) end
    local count = db:value "select count(*) from pg_prepared_statements"
    assert.is_true(count <= 256 and count > 200, "there are " .. count)
    assert.equal(5, db:value "select 5")
    db:close()
  end)

  it("prepare anew what others have made stale", function()
    local db, remove = schema()
    assert(db:exec "create table s (a int)")
    assert(db:exec "insert into s values (1)")
    assert.same({ a = 1 }, db:one "select * from s")
    assert(db:exec "alter table s add b int default 2")
    assert.same({ a = 1, b = 2 }, db:one "select * from s")
    assert(db:exec "drop table s")
    remove()
  end)

  it("are as many as slow statements need, and no more than the pool", function()
    local db = open { pool = 3, url = URL .. "?application_name=pool3" }
    local fns = {}
    for i = 1, 6 do
      fns[i] = function()
        return db:tx(function(tx)
          assert(tx:query "select pg_sleep(0.02)")
          return tx:value "select count(*) from pg_stat_activity where application_name = 'pool3'"
        end)
      end
    end
    for _, count in ipairs { task.all(unpack(fns)) } do assert.is_true(count <= 3) end
    db:close()
  end)

  it("that a slow statement holds up are left to it", function()
    local db = open { timeout = "1h" }
    assert(db:query "select 1")
    local slow = task.spawn(function() return db:value "select pg_sleep(60) is null" end)
    task.sleep(1.4)
    local took = elapsed(function() assert.equal(1, db:value "select 1") end)
    assert.is_true(took < 30, "took " .. took)
    assert.equal("running", slow.state)
    slow:cancel()
    db:close()
  end)

  it("answer busy when the queue is full", function()
    local db = open { pool = 2, queue = 2 }
    local busy, fns = 0, {}
    for i = 1, 8 do
      fns[i] = function()
        local ok, err = db:tx(function(tx) return tx:value "select pg_sleep(0.05) is null" end)
        if ok == nil then
          assert.same({ "busy", 503 }, { err.code, err.status })
          busy = busy + 1
        end
        return true
      end
    end
    task.all(unpack(fns))
    assert.is_true(busy >= 3, "busy: " .. busy)
    db:close()
  end)
end)

describe("a statement that takes too long", function()
  it("is a timeout, and the server has stopped it", function()
    local db = open { timeout = "1s", url = URL .. "?application_name=slow1000" }
    local took = elapsed(function()
      local ok, err = db:query "select pg_sleep(60)"
      assert.is_nil(ok)
      assert.same({ "timeout", 503 }, { err.code, err.status })
    end)
    assert.is_true(took < 20)
    local other = open()
    eventually(function()
      return other:value [[select count(*) from pg_stat_activity where application_name = 'slow1000' and state = 'active']] == 0
    end)
    assert.equal(1, db:value "select 1")
    other:close()
    db:close()
  end)

  it("leaves its transaction to be rolled back", function()
    local db = open { timeout = "1s" }
    local ok, err = db:tx(function(tx)
      local slept, why = tx:query "select pg_sleep(60)"
      assert.is_nil(slept)
      assert.equal("timeout", why.code)
      return tx:value "select 1"
    end)
    assert.is_nil(ok)
    assert.equal("sql", err.code)
    assert.equal(1, db:value "select 1")
    db:close()
  end)

  it("goes when its task does, shared or not", function()
    local db = open { url = URL .. "?application_name=gone" }
    local other = open()
    local function active()
      return other:value [[select count(*) from pg_stat_activity where application_name = 'gone' and state = 'active'
        and query like '%pg_sleep%']]
    end
    for _, fn in ipairs {
      function() return db:query "select pg_sleep(60)" end,
      function() return db:tx(function(tx) return tx:query "select pg_sleep(60)" end) end,
    } do
      local took = elapsed(function()
        local ok, err = task.timeout(0.2, fn)
        assert.is_nil(ok)
        assert.equal("timeout", err.code)
      end)
      assert.is_true(took < 20)
      assert.equal(2, db:value "select 2")
      eventually(function() return active() == 0 end)
    end
    assert.equal(0, core.stats().leased)
    other:close()
    db:close()
  end)

  it("never gives its answer to another", function()
    local db = open()
    for i = 1, 60 do
      task.timeout(0.002 + i % 5 * 0.002, function() return db:value("select $1::text || pg_sleep(0.004)", "slow" .. i) end)
      assert.equal(i, db:value("select $1::int", i))
    end
    db:close()
  end)
end)

describe("a connection that the server closes", function()
  it("says why", function()
    local db = open()
    local ok, err = db:tx(function(tx)
      assert(tx:exec "set local idle_in_transaction_session_timeout = 20")
      task.sleep(1)
      return tx:value "select 1"
    end)
    assert.is_nil(ok)
    assert.equal("unavailable", err.code)
    assert.matches("idle%-in%-transaction timeout", err.message)
    db:close()
  end)
end)

describe("a connection that breaks", function()
  it("fails what was on its way, and the next call has another", function()
    local db = open { url = URL .. "?application_name=victim" }
    local other = open()
    for _ = 1, 3 do
      assert(db:query "select 1")
      local waiting = task.spawn(function() return db:query "select pg_sleep(60)" end)
      eventually(function()
        return other:value [[select count(pg_terminate_backend(pid)) from pg_stat_activity
          where application_name = 'victim' and state = 'active']] > 0
      end)
      local ok, err = waiting:wait(20)
      assert.is_nil(ok)
      assert.same({ "unavailable", 503 }, { err.code, err.status })
      assert.equal(1, db:value "select 1")
    end
    local ok, err = db:tx(function(tx)
      assert(other:query "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'victim'")
      return tx:value "select 1"
    end)
    assert.is_nil(ok)
    assert.equal("unavailable", err.code)
    assert.equal(0, core.stats().leased)
    other:close()
    db:close()
  end)

  it("fails a COPY in its middle, either way", function()
    local db = open { url = URL .. "?application_name=victim" }
    local other = open()
    local function terminate()
      local gone = assert(other:query [[select pid, pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'victim']])
      for _, row in ipairs(gone) do
        eventually(function()
          return other:value("select count(*) from pg_stat_activity where pid = $1", row.pid) == 0
        end)
      end
    end
    local reader = assert(db:copy_out "copy (select g from generate_series(1, 1000000) g) to stdout")
    assert(reader:read())
    terminate()
    local piece, err
    repeat piece, err = reader:read() until not piece
    assert.equal("unavailable", err and err.code)
    assert(db:exec "create table if not exists copied (t text)")
    local n
    n, err = db:copy_in("copy copied from stdin", function()
      if n == nil then terminate() end
      n = (n or 0) + 1
      return n < 100 and { ("x"):rep(70000) } or nil
    end)
    assert.is_nil(n)
    assert.equal("unavailable", err and err.code)
    assert(db:exec "drop table copied")
    other:close()
    db:close()
  end)
end)

describe("migrations of PostgreSQL", function()
  local folder

  local function write(name, text)
    local file = assert(io.open(folder .. "/" .. name, "w"))
    file:write(text)
    file:close()
  end

  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder) == 0)
  end)
  after_each(function() os.execute("rm -r " .. folder) end)

  it("run once, each file of many statements in its own transaction, the dialect's own first", function()
    write("001_t.sql", "create table t (n int); insert into t values (1);\ninsert into t values (2)")
    write("002_u.sqlite.sql", "no PostgreSQL")
    write("002_u.postgres.sql", "create function f() returns int language sql as $$ select 1; $$;")
    local db, remove = schema { migrations = folder }
    assert.equal(3, db:value "select f() + count(*) from t")
    assert.equal(0, db:migrate(folder))
    write("003_more.sql", "insert into t values (3)")
    assert.equal(1, db:migrate(folder))
    remove()
  end)

  it("take turns, however many come at once", function()
    write("001_t.sql", "create table t (n int); select pg_sleep(0.1); insert into t values (1)")
    local db, remove = schema()
    local other = open { url = db.url, timeout = "30s" } -- connections of its own, as another process has
    local fns = {}
    for i = 1, 6 do fns[i] = function() return assert((i % 2 == 0 and db or other):migrate(folder)) end end
    local sum = 0
    for _, count in ipairs { task.all(unpack(fns)) } do sum = sum + count end
    assert.equal(1, sum)
    assert.equal(1, db:value "select count(*) from t")
    other:close()
    remove()
  end)

  it("name file and line of a wrong one, and undo all of it", function()
    write("001_t.sql", "create table t (n int)")
    write("002_bad.sql", "insert into t values (1);\n-- ä\n\ninsert into nowhere values (1);")
    local db, remove = schema()
    local count, err = db:migrate(folder)
    assert.is_nil(count)
    assert.matches("/002_bad.sql:4: relation", err.message, 1, true)
    assert.equal(0, db:value "select count(*) from t")
    assert.equal(0, core.stats().leased)
    write("002_bad.sql", "commit; select 1")
    count, err = db:migrate(folder)
    assert.is_nil(count)
    assert.matches("002_bad.sql", err.message)
    remove()
  end)

  it("may take longer than a statement", function()
    write("001_t.sql", "select pg_sleep(2); create table t (n int)")
    local db, remove = schema { timeout = "1s" }
    assert.equal(1, db:migrate(folder))
    remove()
  end)
end)
