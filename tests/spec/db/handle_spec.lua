local errors = require "srv.base.errors"
local json = require "srv.core.json"
local pool = require "srv.db.pool"
local task = require "srv.async.task"

local null = json.null
local opened = 0

--- A database of its own in memory.
local function memory(opts)
  opened = opened + 1
  opts = opts or {}
  opts.migrations = opts.migrations or false
  opts.env = false
  return pool.open("sqlite::memory:handle-" .. opened, opts)
end

--- A file of its own, removed by `remove`.
local function file()
  local path = os.tmpname()
  local db = pool.open("sqlite:" .. path, { migrations = false, env = false })
  local function remove()
    db:close()
    for _, suffix in ipairs { "", "-wal", "-shm" } do os.remove(path .. suffix) end
  end
  return db, remove
end

local function message_of(fn, ...)
  local ok, err = pcall(fn, ...)
  assert.is_false(ok)
  return tostring(err)
end

describe("db:query and its kind", function()
  local db

  before_each(function()
    db = memory()
    assert(db:exec "create table t (id integer primary key, name text, n real, b boolean, j json, d date, m timestamp)")
  end)

  after_each(function() db:close() end)

  it("give rows by column name, with NULL as a missing key", function()
    assert(db:exec("insert into t (name, n) values ($1, $2)", "x", 1.5))
    assert.same({ { id = 1, name = "x", n = 1.5 } }, db:query "select * from t")
    assert.same({ id = 1, name = "x", n = 1.5 }, db:one "select * from t")
    assert.equal("x", db:value "select name from t")
    assert.is_nil(db:value "select b from t")
    assert.same({}, db:query "select * from t where id = 2")
  end)

  it("tell a missing row from an error", function()
    for _, method in ipairs { "one", "value" } do
      local row, err = db[method](db, "select * from t where id = 7")
      assert.is_nil(row)
      assert.is_true(errors.is(err, "no_row"))
      assert.equal(404, err.status)
    end
  end)

  it("count what they changed", function()
    assert.equal(0, db:exec "delete from t")
    assert.equal(2, db:exec "insert into t (name) values ('a'), ('b')")
    assert.equal(2, db:exec "update t set name = 'c'")
    assert.equal(0, db:exec "create table u (n)")
  end)

  it("bind $1 by its number, wherever and however often it stands", function()
    assert.same({ a = "one", b = "two", c = "one" }, db:one("select $2 as b, $1 as a, $1 as c", "one", "two"))
  end)

  it("never put a value into the text", function()
    local evil = [['; drop table t; -- " $1 \]]
    assert(db:exec("insert into t (name) values ($1)", evil))
    assert.equal(evil, db:value "select name from t")
  end)

  it("take values of all kinds", function()
    local row = db:one("select $1 is null as a, $2 is null as b, typeof($3) as c, typeof($4) as d, typeof($5) as e, $6 as f, $7 as g",
      nil, null, 3, 3.5, db.blob "a\0b", true, { x = { 1, 2 } })
    assert.same({ a = 1, b = 1, c = "integer", d = "real", e = "blob", f = 1, g = '{"x":[1,2]}' }, row)
    assert.equal("a\0b", db:value("select $1", db.blob "a\0b"))
    assert.equal("a\0b", db:value("select $1", "a\0b"))
    assert.equal("9007199254740993", db:value("select $1", 9007199254740993LL))
    assert.equal("-9223372036854775808", db:value("select $1", -9223372036854775807LL - 1))
    assert.equal(1e300, db:value("select $1", 1e300))
    assert.equal(9007199254740992, db:value("select 9007199254740992"))
    assert.equal("9007199254740993", db:value("select 9007199254740993"))
  end)

  it("keep a nil at the end of the values", function()
    assert.equal(1, db:value("select $1 is null", nil))
    assert.equal(3, db:value("select coalesce($1, $2, $3, 3)", nil, null, nil))
  end)

  it("read columns by their declared type", function()
    assert(db:exec("insert into t (b, j, d, m) values ($1, $2, $3, $4)", true, { a = { 1, null } }, "2021-06-22", "2021-06-22 19:54:00"))
    assert.same({ b = true, j = { a = { 1, null } }, d = "2021-06-22", m = "2021-06-22T19:54:00Z" }, db:one "select b, j, d, m from t")
    assert(db:exec "update t set j = 'no json', b = 0")
    assert.same({ j = "no json", b = false }, db:one "select j, b from t")
  end)

  it("hand out rows that are objects and lists that are arrays in JSON", function()
    assert(db:exec "insert into t (id) values (1)")
    assert.equal("[{}]", json.encode(db:query "select name from t"))
    assert.equal("[]", json.encode(db:query "select name from t where id = 2"))
  end)

  it("blame the app's line for what is no value or no statement", function()
    assert.matches("handle_spec.lua:%d+: srv.db: a function", message_of(function() db:query("select $1", print) end))
    assert.matches("handle_spec.lua:%d+: srv.db: NaN", message_of(function() db:query("select $1", 0 / 0) end))
    assert.matches("handle_spec.lua:%d+: srv.db: the statement must be a string", message_of(function() db:query(7) end))
  end)

  it("answer a wrong statement with `sql` and its text", function()
    local rows, err = db:query("select nope from t where id = $1", 1)
    assert.is_nil(rows)
    assert.is_true(errors.is(err, "sql"))
    assert.equal(500, err.status)
    assert.matches("no such column: nope, in: select nope from t", err.message, 1, true)
    assert.is_true(errors.is(select(2, db:query "select 1; drop table t"), "sql"))
    assert.is_true(errors.is(select(2, db:query("select $1")), "sql"))
    assert.is_true(errors.is(select(2, db:query("select $1", 1, 2)), "sql"))
    assert.is_true(errors.is(select(2, db:exec "begin"), "sql"))
  end)

  it("name the constraint that was broken", function()
    assert(db:exec "create table a (id integer primary key, guid text unique, n int constraint positive check (n > 0), t text not null default 'x')")
    assert(db:exec "create table b (a_id int references a)")
    assert(db:exec "insert into a (guid, n) values ('g', 1)")
    local cases = {
      { "insert into a (guid, n) values ('g', 1)", "unique", "a.guid" },
      { "insert into a (n) values (0)", "check", "positive" },
      { "insert into a (n, t) values (1, null)", "not_null", "a.t" },
      { "insert into b values (9)", "foreign_key" },
    }
    for _, case in ipairs(cases) do
      local changed, err = db:exec(case[1])
      assert.is_nil(changed)
      assert.equal(case[2], err.code)
      assert.equal(case[2] == "not_null" and 500 or 409, err.status)
      assert.equal(case[3], err.data and err.data.constraint)
    end
  end)

  it("end a statement that takes too long with `timeout`, 503", function()
    local quick = memory { timeout = "20ms" }
    local rows, err = quick:query "with recursive c (n) as (select 1 union all select n + 1 from c) select max(n) from c"
    assert.is_nil(rows)
    assert.equal("timeout", err.code)
    assert.equal(503, err.status)
    assert.equal(7, quick:value "select 7")
    quick:close()
  end)

  it("are misuse after close", function()
    local other = memory()
    other:close()
    assert.matches("handle_spec.lua:%d+: srv.db: the database handle is closed", message_of(function() other:query "select 1" end))
  end)
end)

describe("db:rows", function()
  local COUNT = "with recursive c (n) as (select 1 union all select n + 1 from c where n < $1) select n from c"

  it("loops over any number of rows, with statements in between", function()
    local db, remove = file()
    assert(db:exec "create table t (n)")
    local count = 0
    for row in db:rows(COUNT, 250) do
      count = count + 1
      assert.equal(count, row.n)
      if count % 50 == 0 then assert(db:exec("insert into t values ($1)", row.n)) end
    end
    assert.equal(250, count)
    assert.equal(5, db:value "select count(*) from t")
    remove()
  end)

  it("does the same in memory and in a transaction", function()
    local db = memory()
    assert(db:exec "create table t (n)")
    for _ in db:rows(COUNT, 3) do assert(db:exec "insert into t values (1)") end
    assert(db:tx(function(tx)
      for _ in tx:rows(COUNT, 150) do assert(tx:exec "insert into t values (1)") end
      return true
    end))
    assert.equal(153, db:value "select count(*) from t")
    db:close()
  end)

  it("raises what goes wrong", function()
    local db = memory()
    local ok, err = pcall(function() for _ in db:rows "select nope" do error "not reached" end end)
    assert.is_false(ok)
    assert.is_true(errors.is(err, "sql"))
    db:close()
  end)
end)

describe("db:insert, update, delete", function()
  local db

  before_each(function()
    db = memory()
    assert(db:exec [[create table t (id integer primary key, name text unique, "odd ""name" int)]])
  end)

  after_each(function() db:close() end)

  it("give the number of rows, or with `returning` the first row", function()
    assert.equal(1, db:insert("t", { name = "a" }))
    assert.same({ id = 2, name = "b" }, db:insert("t", { name = "b" }, "*"))
    assert.same({ id = 3 }, db:insert("t", {}, "id"))
    assert.equal(1, db:update("t", { id = 1 }, { name = "c" }))
    assert.same({ id = 1, name = "d" }, db:update("t", { id = 1 }, { name = "d" }, "id, name"))
    assert.equal(1, db:delete("t", { id = 1 }))
    assert.equal(0, db:delete("t", { id = 1 }))
    local row, err = db:update("t", { id = 9 }, { name = "x" }, "*")
    assert.is_nil(row)
    assert.equal("no_row", err.code)
  end)

  it("quote names", function()
    assert.equal(1, db:insert("t", { ['odd "name'] = 7 }))
    assert.equal(7, db:value [[select "odd ""name" from t]])
    local changed, err = db:insert("t", { ["name) values (1); drop table t; --"] = 1 })
    assert.is_nil(changed)
    assert.equal("sql", err.code)
    assert.equal(1, db:value "select count(*) from t")
    assert.equal(1, db:insert("main.t", { name = "x" }))
  end)

  it("take null in a match as `is null`, and in a row as NULL", function()
    assert(db:insert("t", { name = null }))
    assert.equal(0, db:update("t", { name = "x" }, { name = "y" }))
    assert.equal(1, db:update("t", { name = null, id = 1 }, { name = "y" }))
    assert.equal(1, db:update("t", { name = "y" }, { name = null }))
  end)

  it("refuse what would touch every row, or nothing", function()
    assert.matches("handle_spec.lua:%d+: db:update: an empty match", message_of(function() db:update("t", {}, { name = "x" }) end))
    assert.matches("handle_spec.lua:%d+: db:delete: an empty match", message_of(function() db:delete("t", {}) end))
    assert.matches("handle_spec.lua:%d+: db:update: no column", message_of(function() db:update("t", { id = 1 }, {}) end))
    assert.matches("handle_spec.lua:%d+: db:insert: the row must be a table", message_of(function() db:insert("t", "x") end))
    assert.matches("handle_spec.lua:%d+: db:insert: a column must be a name", message_of(function() db:insert("t", { "x" }) end))
    assert.matches("handle_spec.lua:%d+: db:delete: a column must be a name", message_of(function() db:delete("t", { "x" }) end))
    assert.matches("handle_spec.lua:%d+: db:insert: \"returning\"", message_of(function() db:insert("t", {}, "id; drop table t") end))
  end)
end)

describe("db:tx", function()
  local db, remove

  before_each(function()
    db, remove = file()
    assert(db:exec "create table t (n)")
  end)

  after_each(function() remove() end)

  local function count() return db:value "select count(*) from t" end

  it("commits and gives the function's values", function()
    assert.same({ 1, nil, "x", n = 3 }, (function(...) return { n = select("#", ...), ... } end)(db:tx(function(tx)
      assert.equal(1, tx:insert("t", { n = 1 }))
      assert.equal(1, tx:value "select count(*) from t")
      assert.equal(0, count())
      return 1, nil, "x"
    end)))
    assert.equal(1, count())
    assert.equal(0, select("#", db:tx(function() end)))
  end)

  it("rolls back on an error, which is raised again as it was", function()
    local thrown = { "mine" }
    local ok, err = pcall(db.tx, db, function(tx)
      assert(tx:insert("t", { n = 1 }))
      error(thrown)
    end)
    assert.is_false(ok)
    assert.equal(thrown, err)
    assert.equal(0, count())
  end)

  it("rolls back on nil, err, which is given back", function()
    local problem = errors.new(409, "no")
    local value, err = db:tx(function(tx)
      assert(tx:insert("t", { n = 1 }))
      return nil, problem
    end)
    assert.is_nil(value)
    assert.equal(problem, err)
    assert.equal(0, count())
  end)

  it("is a savepoint inside another", function()
    assert(db:tx(function(tx)
      assert(tx:insert("t", { n = 1 }))
      local value, err = tx:tx(function(inner)
        assert(inner:insert("t", { n = 2 }))
        assert(inner:tx(function(innermost) return innermost:insert("t", { n = 3 }) end))
        return nil, errors.new(409, "undo it")
      end)
      assert.is_nil(value)
      assert.equal(409, err.status)
      assert(tx:tx(function(inner) return inner:insert("t", { n = 4 }) end))
      return true
    end))
    assert.same({ { n = 1 }, { n = 4 } }, db:query "select n from t order by n")
  end)

  it("reads one state and writes nothing with `readonly`", function()
    local seen, err = db:tx({ readonly = true }, function(tx)
      assert.equal(0, tx:value "select count(*) from t")
      assert(db:insert("t", { n = 1 }))
      assert.equal(0, tx:value "select count(*) from t")
      local changed, fault = tx:insert("t", { n = 2 })
      assert.is_nil(changed)
      return nil, fault
    end)
    assert.is_nil(seen)
    assert.equal("sql", err.code)
    assert.equal(1, count())
  end)

  it("runs again on `conflict`, as often as `retries` says", function()
    local runs = 0
    local conflict = errors.coded("conflict", "made up")
    local value, err = db:tx({ retries = 2 }, function()
      runs = runs + 1
      return nil, conflict
    end)
    assert.is_nil(value)
    assert.equal(conflict, err)
    assert.equal(3, runs)

    runs = 0
    assert.equal("done", db:tx({ retries = 2 }, function(tx)
      runs = runs + 1
      assert(tx:insert("t", { n = runs }))
      if runs < 2 then error(conflict) end
      return "done"
    end))
    assert.same({ { n = 2 } }, db:query "select n from t")
  end)

  it("tells who would wait for himself", function()
    assert.matches("handle_spec.lua:%d+: srv.db: this would wait for the transaction it stands in", message_of(function()
      db:tx(function(tx)
        assert(tx:insert("t", { n = 1 }))
        db:insert("t", { n = 2 })
      end)
    end))
    assert.matches("handle_spec.lua:%d+: db:tx: this would wait", message_of(function()
      db:tx(function() db:tx(function() end) end)
    end))
    assert.equal(0, count())
  end)

  it("tells a task that it waits for that neither would end", function()
    local function insert()
      local changed, err = db:insert("t", { n = 2 }) -- no tail call: its line is to be blamed
      return changed, err
    end
    local ways = {
      function() return task.spawn(insert):wait() end,
      function() return task.spawn(function() return task.spawn(insert):wait() end):wait() end,
      function() return task.all(insert) end,
      function() return task.map({ 1, 2 }, insert, { limit = 1 }) end,
      function() return task.race(insert, function() task.sleep(10) end) end,
      function() return task.timeout(10, insert) end,
    }
    for _, way in ipairs(ways) do
      assert.matches("handle_spec.lua:%d+: srv.db: this would wait for a transaction that waits for this task: .*handle", message_of(function()
        db:tx(function(tx)
          assert(tx:insert("t", { n = 1 }))
          way()
        end)
      end))
    end
    assert.equal(0, count())
  end)

  it("lets tasks write that were begun before or in it, once it is over", function()
    local before = task.spawn(function()
      task.sleep(0)
      return db:insert("t", { n = 2 })
    end)
    local inside
    assert(db:tx(function(tx)
      inside = task.spawn(function() return db:insert("t", { n = 3 }) end)
      assert(tx:insert("t", { n = 1 }))
      assert.equal(1, tx:value "select count(*) from t") -- both have asked by now
      local value, err = inside:wait "20ms"
      assert.is_nil(value)
      assert.equal("timeout", err.code)
      assert.same({ "running", "running" }, { before.state, inside.state })
      return true
    end))
    assert.same({ 1, 1 }, { before:wait(), inside:wait() })
    assert.equal(3, count())
  end)

  it("names itself to a task that it began to wait for too late to be told at once", function()
    local impatient = memory { timeout = "500ms" }
    assert(impatient:exec "create table t (n integer)")
    local value, err
    assert(impatient:tx(function(tx)
      local child = task.spawn(function() return impatient:insert("t", { n = 2 }) end)
      assert(tx:insert("t", { n = 1 }))
      task.sleep "1ms"
      value, err = child:wait()
      return true
    end))
    assert.is_nil(value)
    assert.equal("timeout", err.code)
    assert.matches("a transaction has it that was begun by this task's parent", err.message)
    assert.equal(1, impatient:value "select count(*) from t")
    impatient:close()
  end)

  it("gives a handle that ends with it", function()
    local kept, kept_inside
    db:tx(function(tx)
      kept = tx
      tx:tx(function(inner) kept_inside = inner end)
      assert.matches("the transaction has ended", message_of(function() kept_inside:query "select 1" end))
    end)
    assert.matches("handle_spec.lua:%d+: srv.db: the transaction has ended", message_of(function() kept:query "select 1" end))
  end)

  it("is rolled back when its task is cancelled, wherever that is", function()
    local places = {
      function() task.sleep(10) end,
      function(tx) tx:query "with recursive c (n) as (select 1 union all select n + 1 from c) select max(n) from c" end,
    }
    for _, wait in ipairs(places) do
      local value, err = task.timeout("30ms", function()
        return db:tx(function(tx)
          assert(tx:insert("t", { n = 1 }))
          wait(tx)
          return "not reached"
        end)
      end)
      assert.is_nil(value)
      assert.equal("timeout", err.code)
      assert.equal(1, db:insert("t", { n = 2 }))
      assert.equal(1, db:delete("t", { n = 2 }))
    end
    assert.equal(0, count())
  end)

  it("may be used by several tasks at once", function()
    assert(db:tx(function(tx)
      return task.map({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, function(n) return tx:insert("t", { n = n }) end)
    end))
    assert.equal(10, count())
  end)

  it("lets a hundred tasks write at once, each in its transaction", function()
    local numbers = {}
    for i = 1, 100 do numbers[i] = i end
    assert(task.map(numbers, function(n)
      return db:tx(function(tx)
        local before = assert(tx:value "select count(*) from t")
        assert(tx:insert("t", { n = n }))
        assert.equal(before + 1, tx:value "select count(*) from t")
        return true
      end)
    end, { limit = 100 }))
    assert.equal(100, count())
  end)

  it("refuses options it does not know", function()
    assert.matches('handle_spec.lua:%d+: db:tx: unknown option "retires", did you mean "retries"', message_of(function() db:tx({ retires = 1 }, print) end))
    assert.matches("handle_spec.lua:%d+: db:tx: the last argument", message_of(function() db:tx {} end))
  end)
end)
