-- needs: postgres
--- API, section 9, by PostgreSQL: the same methods, outcomes and faults as by SQLite, and what only it has.
local srv = require "srv"
local null = srv.null

srv.test.env { DATABASE_URL = os.getenv "TEST_POSTGRES_URL" }
local URL = os.getenv "TEST_POSTGRES_URL"

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

describe("srv.db on PostgreSQL", function()
  local db

  setup(function()
    srv.test.env { DATABASE_URL = URL }
    db = srv.test.db { migrations = false, pool = 4 }
    assert(db:exec [[create table t (id integer primary key generated always as identity, name text not null unique, n integer check (n < 100),
      j jsonb, b boolean, d date, m timestamptz, r double precision, x bytea, big bigint, num numeric(20, 5), list integer[],
      o integer references t (id))]])
  end)

  before_each(function() assert(db:exec "truncate t restart identity") end)

  it("query, one, value, exec, rows give what the table says", function()
    assert.equal("[]", srv.json.encode(db:query "select * from t"))
    assert.equal(2, db:exec("insert into t (name) values ($1), ($2)", "a", "b"))
    assert.same({ { name = "a" }, { name = "b" } }, db:query "select name from t order by id")
    assert.same({ id = 1, name = "a" }, db:one "select * from t where id = 1")
    assert.equal(2, db:value "select count(*) from t")
    for _, got in ipairs { { db:one "select * from t where id = 9" }, { db:value "select name from t where id = 9" } } do
      assert.is_nil(got[1])
      assert.same({ "no_row", 404 }, { got[2].code, got[2].status })
    end
    local names = {}
    for row in db:rows "select name from t order by id" do names[#names + 1] = row.name end
    assert.same({ "a", "b" }, names)
    assert.is_false(pcall(function() for _ in db:rows "select nonsense" do end end))
  end)

  it("insert, update, delete give numbers, or the first row with returning", function()
    assert.equal(1, db:insert("t", { name = "a" }))
    assert.same({ id = 2, name = "b" }, db:insert("t", { name = "b" }, "id, name"))
    assert.equal(5, db:update("t", { id = 1 }, { n = 5 }, "*").n)
    assert.equal(0, db:update("t", { id = 9 }, { n = 5 }))
    assert.equal("no_row", select(2, db:update("t", { id = 9 }, { n = 5 }, "*")).code)
    assert.equal("no_row", select(2, db:delete("t", { id = 9 }, "*")).code)
    assert.equal(1, db:delete("t", { id = 1 }))
    for _, fn in ipairs { function() db:delete("t", {}) end, function() db:update("t", {}, { n = 1 }) end, function() db:query() end,
      function() db:query("select $1", print) end } do
      assert.is_truthy(message_of(fn):find "s09_postgres_spec.lua:%d+:", message_of(fn))
    end
  end)

  it("takes parameters of each kind, never into the text, and a $n more than once", function()
    local evil = "'); drop table t; --"
    db:insert("t", { name = evil, j = { k = { 1 } }, b = true, list = { 1, 2 }, x = db.blob "\0\255", r = 1.5, n = null, big = "9007199254740993" })
    local row = db:one "select * from t"
    assert.same({ evil, true, "\0\255", 1.5, "9007199254740993" }, { row.name, row.b, row.x, row.r, row.big })
    assert.same({ { k = { 1 } }, { 1, 2 } }, { row.j, row.list })
    assert.is_nil(row.n)
    assert.same({ a = 2, b = 1, c = 2 }, db:one("select $2::int as a, $1::int as b, $2::int as c", 1, 2))
  end)

  it("gives columns by their declared type: texts of digits, ISO times in UTC with Z", function()
    db:exec [[insert into t (name, d, m, num, big) values ('a', '2024-01-02', '2024-01-02 05:04:05+02', 12.5, 9007199254740991)]]
    local row = db:one "select * from t"
    assert.same({ "2024-01-02", "2024-01-02T03:04:05Z", "12.50000", 9007199254740991 }, { row.d, row.m, row.num, row.big })
  end)

  it("names faults as SQLite's: unique, foreign_key, check, not_null, sql; constraints by name", function()
    db:insert("t", { name = "a" })
    local function fault(row) return select(2, db:insert("t", row)) end
    assert.same({ "unique", 409, "t_name_key" }, { fault { name = "a" }.code, fault { name = "a" }.status, fault { name = "a" }.data.constraint })
    assert.same({ "foreign_key", 409 }, { fault { name = "b", o = 99 }.code, fault { name = "b", o = 99 }.status })
    assert.equal("check", fault { name = "b", n = 100 }.code)
    assert.equal("not_null", fault { n = 1 }.code)
    local _, err = db:query "selec 1"
    assert.same({ "sql", 500 }, { err.code, err.status })
    for _, sql in ipairs { "select 1; select 2", "", "begin" } do assert.equal("sql", select(2, db:query(sql)).code, sql) end
    assert.equal("sql", select(2, db:query "select $1").code)
  end)

  it("tx gives fn's values, rolls back on error, nil, err; savepoints inside; conflict is tried again", function()
    assert.same({ 1, 2 }, { db:tx(function(tx) assert(tx:insert("t", { name = "a" })) return 1, 2 end) })
    local err = srv.error.new(409)
    assert.is_false(pcall(db.tx, db, function(tx) tx:insert("t", { name = "b" }) error(err, 0) end))
    local value, got = db:tx(function(tx) tx:insert("t", { name = "c" }) return nil, err end)
    assert.is_nil(value)
    assert.equal(err, got)
    assert.equal(1, db:value "select count(*) from t")
    db:tx(function(tx)
      tx:insert("t", { name = "e" })
      tx:tx(function(inner) inner:insert("t", { name = "f" }) return nil, err end)
    end)
    assert.equal(2, db:value "select count(*) from t")
    local runs = 0
    local result = db:tx({ isolation = "serializable", retries = 3 }, function(tx)
      runs = runs + 1
      local n = assert(tx:value "select coalesce(n, 0) from t where name = 'a'")
      if runs == 1 then assert(db:exec "update t set n = 50 where name = 'a'") end
      local count, why = tx:exec("update t set n = $1 where name = 'a'", n + 1)
      return count and "done", why
    end)
    assert.equal("done", result)
    assert.is_true(runs > 1)
    assert.equal(51, db:value "select n from t where name = 'a'")
    local _, conflict = db:tx({ isolation = "serializable" }, function(tx)
      tx:value "select n from t where name = 'a'"
      db:exec "update t set n = 1 where name = 'a'"
      return tx:exec "update t set n = 2 where name = 'a'"
    end)
    assert.equal("conflict", conflict.code)
    local _, refused = db:tx({ readonly = true }, function(tx) return tx:insert("t", { name = "z" }) end)
    assert.equal("sql", refused.code)
  end)

  it("by the deadline the statement is cancelled, the transaction rolled back, and the answer 503", function()
    local app = srv.app()
    app:get("/", { timeout = 0.1 }, function()
      return db:tx(function(tx)
        assert(tx:insert("t", { name = "late" }))
        return tx:query "select pg_sleep(10)"
      end)
    end)
    srv.test(app):get("/"):expect(503)
    assert.equal(0, db:value "select count(*) from t")
  end)

  it("a statement that is cancelled is stopped on the server, and nobody waits behind it", function()
    for _, pool in ipairs { 2, 20 } do
      local own = srv.postgres(URL .. "?application_name=s09-" .. pool, { migrations = false, timeout = "1h", pool = pool })
      own:value "select 1"
      local slow = srv.spawn(own.query, own, "select pg_sleep(3600)")
      srv.sleep "20ms"
      slow:cancel()
      assert.equal(1, assert(srv.timeout("30s", own.value, own, "select 1")))
      for _ = 1, 3000 do
        if db:value("select count(*) from pg_stat_activity where application_name = $1 and wait_event = 'PgSleep'", "s09-" .. pool) == 0 then break end
        srv.sleep "10ms"
      end
      assert.equal(0, db:value("select count(*) from pg_stat_activity where application_name = $1 and wait_event = 'PgSleep'", "s09-" .. pool))
      own:close()
    end
  end)

  it("timeout and busy are 503", function()
    local slow = srv.postgres(URL, { timeout = "100ms", pool = 2, queue = 1, migrations = false })
    local _, err = slow:query "select pg_sleep(5)"
    assert.same({ "timeout", 503 }, { err.code, err.status })
    slow:close()
  end)

  it("listen is a loop of messages, notify sends one", function()
    local got, ready = {}, srv.event()
    local task = srv.spawn(function()
      local messages = db:listen "s09"
      ready:set()
      for text in messages do
        got[#got + 1] = text
        if text == "end" then messages:close() end
      end
      return "over"
    end)
    ready:wait(30)
    assert.is_true(db:notify("s09", "one"))
    db:tx(function(tx) tx:notify("s09", "two") end)
    db:notify("s09", "end")
    assert.equal("over", task:wait(30))
    assert.same({ "one", "two", "end" }, got)
  end)

  it("copy_in takes rows, copy_out is a reader", function()
    assert.equal(3, db:copy_in("copy t (name, n) from stdin", { { "a\tb", 1 }, { "c", null }, { "d", 3 } }))
    local reader = assert(db:copy_out "copy (select name, n from t order by id) to stdout with (format csv)")
    assert.equal('"a\tb",1', (reader:line():gsub('^a\tb', '"a\tb"')))
    assert.equal("c,\nd,3\n", reader:all())
    local lines = 0
    for chunk in db:copy_out "copy t (name) to stdout" do lines = lines + select(2, chunk:gsub("\n", "")) end
    assert.equal(3, lines)
    assert.equal("unique", select(2, db:copy_in("copy t (name) from stdin", { { "c" } })).code)
    assert.is_truthy(message_of(function() db:copy_in("select 1", {}) end):find "s09_postgres_spec.lua:%d+:")
  end)

  it("opens its kind only, does not wait, and shows no password", function()
    assert.equal("postgres", db.dialect)
    local away = srv.postgres("postgres://u:secret@127.0.0.1:1/d", { migrations = false })
    local _, err = away:query "select 1"
    assert.same({ "unavailable", 503 }, { err.code, err.status })
    assert.is_nil(err.message:find "secret")
    away:close()
    local message = message_of(function() srv.postgres "sqlite:x.db" end)
    assert.is_truthy(message:find "s09_postgres_spec.lua:%d+:", message)
    message = message_of(function() srv.sqlite "postgres://u:secret@h/d" end)
    assert.is_truthy(message:find "s09_postgres_spec.lua:%d+:", message)
    assert.is_nil(message:find "secret", 1, true)
  end)
end)
