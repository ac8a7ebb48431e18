-- needs: postgres
local fixture = require "db.modules.postgres_fixture"
local task = require "srv.async.task"
local errors = require "srv.base.errors"
local core = require "srv.core.pg"

local URL, open, schema, message_of = fixture.URL, fixture.open, fixture.schema, fixture.message_of
local elapsed, eventually = fixture.elapsed, fixture.eventually

describe("transactions of PostgreSQL", function()
  local db, remove

  before_each(function()
    db, remove = schema()
    assert(db:exec "create table t (n int primary key)")
  end)
  after_each(function() remove() end)

  local function count() return db:value "select count(*) from t" end

  it("commit what the function returns from", function()
    assert.equal("x", db:tx(function(tx)
      assert(tx:insert("t", { n = 1 }))
      assert.equal(0, count())
      return "x"
    end))
    assert.equal(1, count())
  end)

  it("are nobody else's: what does not use their handle, a child for example, has another connection", function()
    assert(db:tx(function(tx)
      assert(tx:insert("t", { n = 1 }))
      assert(db:insert("t", { n = 2 }))
      assert.equal(1, task.spawn(function() return db:insert("t", { n = 3 }) end):wait())
      assert.equal(1, (task.all(function() return db:insert("t", { n = 4 }) end)))
      assert.equal(4, tx:value "select count(*) from t")
      assert.equal(3, count())
      return nil, errors.new(409, "undo what is ours")
    end) == nil)
    assert.same({ { n = 2 }, { n = 3 }, { n = 4 } }, db:query "select n from t order by n")
  end)

  it("roll back on nil, err and on errors", function()
    local ok, err = db:tx(function(tx)
      assert(tx:insert("t", { n = 1 }))
      return tx:insert("t", { n = 1 })
    end)
    assert.is_nil(ok)
    assert.equal("unique", err.code)
    assert.matches("boom", message_of(function() db:tx(function(tx)
      assert(tx:insert("t", { n = 1 }))
      error "boom"
    end) end))
    assert.equal(0, count())
  end)

  it("say so when an error in them was not given back", function()
    local ok, err = db:tx(function(tx)
      assert(tx:insert("t", { n = 1 }))
      tx:query "select 1/0"
      return true
    end)
    assert.is_nil(ok)
    assert.matches("rolled back", err.message)
    assert.equal(0, count())
  end)

  it("have savepoints inside", function()
    assert(db:tx(function(tx)
      assert(tx:insert("t", { n = 1 }))
      local ok, err = tx:tx(function(inner)
        assert(inner:insert("t", { n = 2 }))
        return inner:insert("t", { n = 1 })
      end)
      assert.is_nil(ok)
      assert.equal("unique", err.code)
      assert(tx:tx(function(inner) return inner:insert("t", { n = 3 }) end))
      return true
    end))
    assert.same({ { n = 1 }, { n = 3 } }, db:query "select n from t order by n")
  end)

  it("take isolation, readonly and retries", function()
    assert(db:tx({ isolation = "serializable", readonly = true }, function(tx)
      assert.equal("serializable", tx:value "select current_setting('transaction_isolation')")
      assert.equal("on", tx:value "select current_setting('transaction_read_only')")
      return true
    end))
    assert(db:insert("t", { n = 1 }))
    local tries = 0
    assert(db:tx({ isolation = "repeatable read", retries = 2 }, function(tx)
      tries = tries + 1
      assert(tx:query "select * from t")
      if tries == 1 then assert(db:exec "update t set n = n + 10") end
      return tx:exec "update t set n = n + 1"
    end))
    assert.equal(2, tries)
    assert.equal(12, db:value "select n from t")
  end)

  it("roll back when their task is cancelled, at rest or not", function()
    for _, inside in ipairs { function() task.sleep(60) end, function(tx) tx:query "select pg_sleep(60)" end } do
      task.timeout(0.1, function()
        return db:tx(function(tx)
          assert(tx:insert("t", { n = 1 }))
          inside(tx)
          return true
        end)
      end)
      eventually(function() return core.stats().leased == 0 end)
      assert(db:insert("t", { n = 1 }))
      assert.equal(1, db:delete("t", { n = 1 }))
    end
  end)

  it("are over when a statement in them was cancelled", function()
    local ok, err = db:tx(function(tx)
      assert(tx:insert("t", { n = 1 }))
      task.timeout(0.05, function() return tx:query "select pg_sleep(60)" end)
      return tx:value "select 1"
    end)
    assert.is_nil(ok)
    assert.equal("closed", err.code)
    assert.equal(0, count())
  end)

  it("may run statements at once", function()
    assert.same({ 1, 2, 3 }, { db:tx(function(tx)
      return task.all(
        function() return tx:value "select 1" end, function() return tx:value "select 2" end,
        function() return tx:value "select 3" end)
    end) })
  end)

  it("take no statement behind their commit", function()
    local late
    assert(db:tx(function(tx)
      late = task.spawn(function()
        for n = 1, 1e6 do assert(tx:insert("t", { n = n })) end
      end)
      task.sleep(0.01)
      return true
    end))
    assert.matches("the transaction has ended", message_of(late.wait, late))
    assert.equal(1, db:value "select count(distinct xmin::text) from t")
  end)

  it("are tried again when a plan went stale under them", function()
    local function all() return db:tx({ retries = 1 }, function(tx) return tx:query "select * from t" end) end
    assert.same({}, all())
    assert(db:exec "alter table t add x text")
    assert(db:exec "insert into t values (1, 'new')")
    assert.same({ { n = 1, x = "new" } }, all())
  end)

  it("take what they have changed of the session with them", function()
    local path = db:value "select current_setting('search_path')"
    for _ = 1, 3 do
      assert(db:tx(function(tx)
        assert(tx:exec "create temp table mine (n int)")
        assert(tx:value "select pg_try_advisory_lock(77)")
        return tx:value "select set_config('search_path', 'elsewhere', false)"
      end))
    end
    for _ = 1, 5 do assert.equal(path, db:value "select current_setting('search_path')") end
    eventually(function() return db:value "select count(*) from pg_locks where locktype = 'advisory'" == 0 end)
  end)

  it("come to their turn on a worker's only connection", function()
    local one = open { pool = 2, url = URL .. "?application_name=only", timeout = "20s" }
    local open_too, over = {}, false
    local holder = task.spawn(function()
      return one:tx(function(tx) while not over do tx:value "select 1 from pg_sleep(0.005)" end return true end)
    end)
    for i = 1, 4 do
      open_too[i] = task.spawn(function()
        while not over do assert(one:value "select 1 from pg_sleep(0.002)") end
        return true
      end)
    end
    task.sleep(0.05)
    for _ = 1, 3 do assert.equal(1, one:tx(function(tx) return tx:value "select 1" end)) end
    over = true
    assert(holder:wait(20))
    for i = 1, 4 do assert(open_too[i]:wait(20)) end
    one:close()
  end)

  it("end with whatever still runs in them", function()
    local sibling
    local ok, err = db:tx(function(tx)
      sibling = task.spawn(function() return tx:query "select pg_sleep(60)" end)
      task.timeout(0.05, function() return tx:query "select pg_sleep(60)" end)
      return nil, "enough"
    end)
    assert.same({ nil, "enough" }, { ok, err })
    assert.is_true(elapsed(function() ok, err = sibling:wait() end) < 20)
    assert.is_nil(ok)
    assert.equal("closed", err.code)
    eventually(function() return core.stats().in_flight == 0 and core.stats().waiting == 0 end)
  end)

  it("leave nothing behind, however often they fail", function()
    for i = 1, 30 do
      pcall(db.tx, db, function(tx)
        assert(tx:insert("t", { n = i }))
        if i % 3 == 0 then tx:query "select 1/0" end
        if i % 2 == 0 then error "x" end
        return nil, errors.new(500, "y")
      end)
    end
    assert.equal(0, count())
    assert.equal(0, core.stats().leased)
  end)
end)
