-- needs: postgres
local core = require "srv.core.pg"
local errors = require "srv.base.errors"
local json = require "srv.core.json"
local pool = require "srv.db.pool"
local task = require "srv.async.task"

local URL = os.getenv "TEST_POSTGRES_URL"
local null = json.null
local schemas = 0

local function open(opts)
  opts = opts or {}
  opts.migrations, opts.env = opts.migrations or false, false
  local url = opts.url or URL
  opts.url = nil
  return pool.open(url, opts)
end

--- A schema of its own, gone with `remove`.
local function schema(opts)
  schemas = schemas + 1
  local name = ("spec_%d_%d"):format(os.time(), schemas)
  local admin = open()
  assert(admin:exec("create schema " .. name))
  opts = opts or {}
  opts.url = URL .. "?options=-csearch_path%3D" .. name
  local db = open(opts)
  return db, function()
    db:close()
    assert(admin:exec(("drop schema %s cascade"):format(name)))
    admin:close()
  end
end

local function message_of(fn, ...)
  local ok, err = pcall(fn, ...)
  assert.is_false(ok)
  return tostring(err)
end

local function elapsed(fn)
  local clock = require "srv.core.env".monotonic
  local before = clock()
  fn()
  return clock() - before
end

--- Waits until FN says so: events on the server have no other bell.
local function eventually(fn)
  for _ = 1, 300 do
    if fn() then return end
    task.sleep(0.01)
  end
  error("it did not come to be within 3 s", 2)
end

describe("columns of PostgreSQL", function()
  local db

  setup(function() db = open() end)
  teardown(function() db:close() end)

  local function value(expression) return db:value("select " .. expression) end

  it("are numbers, unless a double would round them", function()
    assert.equal(7, value "7::int2")
    assert.equal(-7, value "-7::int4")
    assert.equal(9007199254740992, value "9007199254740992::int8")
    assert.equal("9007199254740993", value "9007199254740993::int8")
    assert.equal("-9223372036854775808", value "(-9223372036854775808)::int8")
    assert.equal(0.1, value "0.1::float8")
    assert.equal(1e300, value "1e300::float8")
    assert.equal(1.5, value "1.5::float4")
    assert.equal(math.huge, value "'Infinity'::float8")
    assert.is_true(value "'NaN'::float8" ~= value "'NaN'::float8")
  end)

  it("are strings where the digits matter", function()
    assert.equal("1.10", value "1.10::numeric")
    assert.equal("123456789012345678901234567890", value "123456789012345678901234567890::numeric")
    assert.equal("$1,000.00", value "1000::money")
  end)

  it("are booleans, bytes, texts", function()
    assert.is_true(value "true")
    assert.is_false(value "false")
    assert.equal("\0\255a", value "'\\x00ff61'::bytea")
    assert.equal("", value "''::bytea")
    assert.equal("ä€", value "'ä€'")
    assert.equal("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", value "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid")
  end)

  it("are ISO texts in UTC where they are times", function()
    assert.equal("2021-06-22", value "'2021-06-22'::date")
    assert.equal("2021-06-22T19:54:00Z", value "'2021-06-22 19:54:00'::timestamp")
    assert.equal("2021-06-22T17:54:00.25Z", value "'2021-06-22 19:54:00.25+02'::timestamptz")
    assert.equal("infinity", value "'infinity'::timestamptz")
    assert.equal("12345-01-01T00:00:00Z", value "'12345-01-01'::timestamp")
  end)

  it("are tables where they are JSON", function()
    assert.same({ a = { 1, { b = true } } }, value [['{"a":[1,{"b":true}]}'::jsonb]])
    assert.equal("text", value [['"text"'::json]])
    assert.equal(null, value "'null'::jsonb")
    assert.equal("[]", json.encode(value "'[]'::jsonb"))
    assert.equal("{}", json.encode(value "'{}'::json"))
  end)

  it("are arrays, in any depth, with null in them", function()
    assert.same({ 1, 2, 3 }, value "array[1,2,3]")
    assert.same({}, value "'{}'::int[]")
    assert.equal("[]", json.encode(value "'{}'::int[]"))
    assert.same({ { "a", "b" }, { "c", 'd "e" \\ {,}' } }, value [=[array[['a','b'],['c','d "e" \ {,}']]]=])
    assert.same({ 1, null, 3 }, value "array[1,null,3]")
    assert.same({ "NULL", null, "" }, value "array['NULL',null,'']::text[]")
    assert.same({ true, false }, value "array[true,false]")
    assert.same({ "9007199254740993" }, value "array[9007199254740993]::int8[]")
    assert.same({ "1.50" }, value "array[1.50]::numeric[]")
    assert.same({ "\0\255" }, value "array['\\x00ff'::bytea]")
    assert.same({ { a = 1 }, { 2 } }, value [=[array['{"a":1}','[2]']::jsonb[]]=])
    assert.same({ "2021-06-22T00:00:00Z" }, value "array['2021-06-22'::timestamp]")
    assert.same({ 5, 6 }, value "'[2:3]={5,6}'::int[]")
  end)

  it("are missing keys where they are NULL", function()
    assert.same({ a = 1 }, db:one "select 1 as a, null as b")
    assert.is_nil((value "null"))
  end)

  it("of types made by the app are texts, and arrays of them arrays", function()
    local own, remove = schema()
    assert(own:exec "create type mood as enum ('sad', '{odd}')")
    assert(own:exec "create domain small as int check (value < 10)")
    assert.same({ m = "{odd}", ms = { "sad", "{odd}" }, s = 7 },
      own:one "select '{odd}'::mood as m, array['sad','{odd}']::mood[] as ms, 7::small as s")
    assert.same({ { "sad" } }, own:value "select array[array['sad']]::mood[]")
    remove()
  end)
end)

describe("parameters for PostgreSQL", function()
  local db, remove

  setup(function()
    db, remove = schema()
    assert(db:exec [[create table t (id serial primary key, i bigint, f float8, n numeric, b boolean, s text, y bytea,
      j jsonb, a int[], ta text[], ja jsonb[], na float8[], ts timestamptz, d date, u uuid)]])
  end)
  teardown(function() remove() end)

  local function through(column, given)
    local row = assert(db:insert("t", { [column] = given }, column))
    return row[column]
  end

  it("come back as they were", function()
    for column, values in pairs {
      i = { 0, -1, 2 ^ 53 }, f = { 0.1, -1e-300, math.huge, 3 }, b = { true, false },
      s = { "", "x", ("y"):rep(100000), "'; drop table t; --", "\\", "$1", "ä\n\t" },
      y = { }, j = { { a = 1 }, { 1, 2 }, { { } } }, a = { { 1, 2 }, { } },
      ta = { { "a", 'b"c', "d\\e", "NULL", "", " x ", "{}" }, { { "a" }, { "b" } } },
      na = { { 0.5, -2 } }, ja = { { { a = 1 }, { 2 }, "x" } },
    } do
      for _, given in ipairs(values) do assert.same(given, through(column, given)) end
    end
    assert.equal("9007199254740993", through("i", 9007199254740993LL))
    assert.equal("12.50", through("n", "12.50"))
    assert.equal("\0\1\255", through("y", db.blob "\0\1\255"))
    assert.equal("", through("y", db.blob ""))
    assert.is_nil(through("s", null))
    assert.same({ 1, null }, through("a", { 1, null }))
    assert.equal("2021-06-22T19:54:00Z", through("ts", "2021-06-22T19:54:00Z"))
    assert.equal("2021-06-22", through("d", "2021-06-22"))
  end)

  it("are arrays or JSON as the column wants it, also the first time", function()
    for i = 1, 3 do
      local sql = ("select $1::int[] as a, $2::jsonb as j, %d as i"):format(i)
      assert.same({ a = { 1, 2 }, j = { 1, 2 }, i = i }, db:one(sql, { 1, 2 }, { 1, 2 }))
    end
    assert.same({ true, false, true }, {
      db:value("select 2 = any($1::int[])", { 1, 2 }), db:value("select 3 = any($1::int[])", { 1, 2 }),
      db:value("select $1::text[] @> array['a']", { "a", "b" }) })
  end)

  it("are never text of the statement", function()
    local evil = { "'", "''", "\\'", "$1", "$2", "'; drop table t; --", "/*", "\226\128\168", "\\x27" }
    for _, text in ipairs(evil) do
      assert.same({ a = text, b = 1 }, db:one("select $1::text as a, $2::int as b", text, 1))
      assert.equal(0, db:value("select count(*) from t where s = $1", text .. text .. "no"))
    end
    local row, err = db:query "select 1; drop table t"
    assert.is_nil(row)
    assert.equal("sql", err.code)
    assert.is_true(db:value "select count(*) >= 0 from t")
  end)

  it("may not hold what PostgreSQL cannot", function()
    local row, err = db:one("select $1::text", "a\0b")
    assert.is_nil(row)
    assert.equal("sql", err.code)
    assert.matches("parameter $1 has a zero byte", err.message, 1, true)
    row, err = db:one("select $1::text", "\255")
    assert.is_nil(row)
    assert.equal("sql", err.code)
    row, err = db:one("select $1::int", "x")
    assert.is_nil(row)
    assert.equal("sql", err.code)
    row, err = db:one "select $1::int"
    assert.is_nil(row)
    assert.equal("sql", err.code)
  end)

  it("that cannot be any are misuse, told to the caller's line", function()
    assert.matches("postgres_spec.lua:%d+: srv.db: a function", message_of(function() db:query("select $1", print) end))
    assert.matches("the statement must be a string", message_of(function() db:query(7) end))
  end)

  it("with a __tojson in them are resolved", function()
    local v = setmetatable({}, { __tojson = function() return { x = 1 } end })
    assert.same({ x = 1 }, db:value("select $1::jsonb", v))
  end)
end)

describe("errors of PostgreSQL", function()
  local db, remove

  setup(function()
    db, remove = schema()
    assert(db:exec "create table p (id int primary key, n int not null check (n > 0), s text constraint s_once unique)")
    assert(db:exec "create table c (p int references p (id))")
    assert(db:exec "insert into p values (1, 1, 'a')")
  end)
  teardown(function() remove() end)

  local function code_of(sql, ...)
    local result, err = db:exec(sql, ...)
    assert.is_nil(result)
    assert.is_true(errors.is(err))
    return err.code, err.status, err.data and err.data.constraint
  end

  it("have the codes of the API, and constraints their names", function()
    assert.same({ "unique", 409, "s_once" }, { code_of "insert into p values (2, 1, 'a')" })
    assert.same({ "unique", 409, "p_pkey" }, { code_of "insert into p values (1, 1, 'b')" })
    assert.same({ "foreign_key", 409, "c_p_fkey" }, { code_of "insert into c values (9)" })
    assert.same({ "check", 409, "p_n_check" }, { code_of "insert into p values (3, 0, 'c')" })
    assert.same({ "not_null", 500, "p.n" }, { code_of "insert into p (id) values (4)" })
    assert.same({ "sql", 500 }, { (code_of "select * from nowhere"), select(2, code_of "selct") })
  end)

  it("tell clients what SQLite's tell, and the log the statement with the place in it", function()
    local function told(sql, ...)
      local _, err = db:exec(sql, ...)
      return err.message, err.cause
    end
    local message, cause = told "insert into p values (1, 1, 'b')"
    assert.equal("this exists already", message)
    assert.matches("p_pkey", cause, 1, true)
    assert.matches(", in: insert into p values (1, 1, 'b')", cause, 1, true)
    assert.matches("at or near \"form\", in: select * form p", (told "select * form p"), 1, true)
    local far = "select '" .. ("ä"):rep(200) .. "' as a, nope from p where id = 1"
    assert.matches("nope.*%.%.%..*ä' as a, nope from p where id = 1$", (told(far)))
    assert.matches("generated always as identity", (told "insert into c (p) values (null) returning nope") and
      (told "insert into p (n) values (1)"), 1, true)
  end)

  it("tell of a missing row", function()
    for _, method in ipairs { "one", "value" } do
      local row, err = db[method](db, "select * from p where id = $1", 77)
      assert.is_nil(row)
      assert.same({ "no_row", 404 }, { err.code, err.status })
    end
  end)

  it("leave the connection as it was", function()
    local before = core.stats().connects
    for i = 1, 20 do
      code_of("insert into p values (1, 1, $1)", tostring(i))
      assert.equal(i, db:value("select $1::int", i))
    end
    assert.equal(before, core.stats().connects)
  end)

  it("are told for statements that an app may not send", function()
    for _, sql in ipairs { "begin", "COMMIT", "  rollback", "/* x /* y */ */ start transaction", "-- x\nset timezone = 'CET'",
      "listen x", "copy p to stdout", "prepare a as select 1", "deallocate all", "reset all", "discard all", "savepoint x", ";;end" } do
      assert.equal("sql", (code_of(sql)))
    end
    assert(db:tx(function(tx)
      assert(tx:exec "set local work_mem = '1MB'")
      for _, sql in ipairs { "commit", "set timezone = 'CET'", "savepoint x" } do
        local ok, err = tx:exec(sql)
        assert.is_nil(ok)
        assert.matches("not for the app", err.message)
      end
      return true
    end))
  end)

  it("of a URL are misuse, and show no password", function()
    local message = message_of(function() open { url = "postgres://me:secret@host/db?no_such_parameter=1" } end)
    assert.matches("postgres_spec.lua:%d+: srv.db: ", message)
    assert.is_nil(message:find("secret", 1, true))
    assert.matches("me:***@host", message, 1, true)
    for password, hint in pairs { ["se/cret"] = "write %2F", ["se@cret"] = "write %2F", ["se%zzcret"] = "percent" } do
      message = message_of(function() open { url = ("postgres://me:%s@host/db"):format(password) } end)
      assert.matches(hint, message, 1, true)
      assert.is_nil(message:find("se[/@%%]") or message:find "cret")
    end
  end)

  it("of a server that is not there come at once, and say what was tried", function()
    local gone = open { url = "postgres://me@127.0.0.1:1/db" }
    local took = elapsed(function()
      for _ = 1, 20 do
        local ok, err = gone:query "select 1"
        assert.is_nil(ok)
        assert.same({ "unavailable", 503 }, { err.code, err.status })
        assert.matches("cannot connect to PostgreSQL", err.message)
        ok, err = gone:tx(function() return true end)
        assert.is_nil(ok)
        assert.equal("unavailable", err.code)
      end
    end)
    assert.is_true(took < 2)
    gone:close()
    local nobody = open { url = "postgres://me@no-such-host.invalid/db" }
    local ok, err = nobody:query "select 1"
    assert.is_nil(ok)
    assert.equal("unavailable", err.code)
    nobody:close()
    local wrong = open { url = (URL:gsub("tiger", "lion")) }
    ok, err = wrong:query "select 1"
    assert.is_nil(ok)
    assert.matches("password authentication failed", err.message)
    wrong:close()
  end)
end)

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
    local db = open()
    assert(db:query "select 1")
    local slow = task.spawn(function() return db:value "select pg_sleep(1.8) is null" end)
    task.sleep(1.4)
    local took = elapsed(function() assert.equal(1, db:value "select 1") end)
    assert.is_true(took < 0.3, "took " .. took)
    assert(slow:wait() == false)
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
    local db = open { timeout = "300ms", url = URL .. "?application_name=slow300" }
    local took = elapsed(function()
      local ok, err = db:query "select pg_sleep(5)"
      assert.is_nil(ok)
      assert.same({ "timeout", 503 }, { err.code, err.status })
    end)
    assert.is_true(took < 2)
    local other = open()
    eventually(function()
      return other:value [[select count(*) from pg_stat_activity where application_name = 'slow300' and state = 'active']] == 0
    end)
    assert.equal(1, db:value "select 1")
    other:close()
    db:close()
  end)

  it("leaves its transaction to be rolled back", function()
    local db = open { timeout = "300ms" }
    local ok, err = db:tx(function(tx)
      local slept, why = tx:query "select pg_sleep(5)"
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
      function() return db:query "select pg_sleep(4)" end,
      function() return db:tx(function(tx) return tx:query "select pg_sleep(4)" end) end,
    } do
      local took = elapsed(function()
        local ok, err = task.timeout(0.2, fn)
        assert.is_nil(ok)
        assert.equal("timeout", err.code)
      end)
      assert.is_true(took < 1.5)
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
    for _, inside in ipairs { function() task.sleep(5) end, function(tx) tx:query "select pg_sleep(5)" end } do
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
      task.timeout(0.05, function() return tx:query "select pg_sleep(5)" end)
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
    local one = open { pool = 2, url = URL .. "?application_name=only", timeout = "2s" }
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
    assert(holder:wait(5))
    for i = 1, 4 do assert(open_too[i]:wait(5)) end
    one:close()
  end)

  it("end with whatever still runs in them", function()
    local sibling
    local ok, err = db:tx(function(tx)
      sibling = task.spawn(function() return tx:query "select pg_sleep(5)" end)
      task.timeout(0.05, function() return tx:query "select pg_sleep(5)" end)
      return nil, "enough"
    end)
    assert.same({ nil, "enough" }, { ok, err })
    assert.is_true(elapsed(function() ok, err = sibling:wait() end) < 3)
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

describe("db:rows of PostgreSQL", function()
  local db

  setup(function() db = open() end)
  teardown(function() db:close() end)

  it("reads piece by piece what is large", function()
    local n, sum = 0, 0
    for row in db:rows("select g from generate_series(1, $1) g", 1234) do n, sum = n + 1, sum + row.g end
    assert.same({ 1234, 1234 * 1235 / 2 }, { n, sum })
    assert.equal(0, core.stats().leased)
    for _ in db:rows "select 1 where false" do error "no row" end
    for row in db:rows "values (7)" do assert.equal(7, row.column1) end
  end)

  it("gives its connection back when it is closed, or its task ends", function()
    task.spawn(function()
      local rows = db:rows "select g from generate_series(1, 1000) g"
      return rows() ~= nil
    end):wait()
    eventually(function() return core.stats().leased == 0 end)
    local rows = db:rows "select g from generate_series(1, 1000) g"
    rows()
    rows:close()
    eventually(function() return core.stats().leased == 0 end)
  end)

  it("raises what goes wrong, in the middle too", function()
    local n = 0
    assert.matches("division by zero", message_of(function()
      for _ in db:rows "select 1 / (250 - g) from generate_series(1, 1000) g" do n = n + 1 end
    end))
    assert.equal(200, n)
    assert.equal(0, core.stats().leased)
  end)

  it("stands in a transaction, twice", function()
    assert(db:tx(function(tx)
      local n = 0
      for a in tx:rows "select g from generate_series(1, 150) g" do
        if a.g % 50 == 0 then for _ in tx:rows "select g from generate_series(1, 101) g" do n = n + 1 end end
      end
      assert.equal(303, n)
      return true
    end))
  end)

  it("runs what is no query whole", function()
    local own, remove = schema()
    assert(own:exec "create table t (n int)")
    local n = 0
    for row in own:rows "insert into t select generate_series(1, 3) returning n" do n = n + row.n end
    assert.equal(6, n)
    assert.equal(3, own:value "select count(*) from t")
    remove()
  end)
end)

describe("a large result", function()
  it("comes whole, as many rows or as one value", function()
    local db = open()
    local rows = assert(db:query "select repeat('x', 1000) as x from generate_series(1, 30000)")
    assert.equal(30000, #rows)
    assert.equal(1000, #rows[30000].x)
    assert.equal(3e7, #assert(db:value "select repeat('x', 30000000)"))
    db:close()
  end)
end)

describe("a result that is too large", function()
  it("is refused, and the connection goes on", function()
    local db = open()
    local rows, err = db:query "select generate_series(1, 100001)"
    assert.is_nil(rows)
    assert.equal("too_large", err.code)
    assert.equal(1, db:value "select 1")
    rows, err = db:query "select repeat('x', 1000000) from generate_series(1, 90)"
    assert.is_nil(rows)
    assert.equal("too_large", err.code)
    assert.equal(1, db:value "select 1")
    db:close()
  end)
end)

describe("db:listen", function()
  it("gives the messages in their order", function()
    local db = open()
    local listener = db:listen 'a "channel"'
    local got = {}
    local reading = task.spawn(function()
      for text in listener do
        got[#got + 1] = text
        if text == "end" then break end
      end
      listener:close()
      return true
    end)
    for i = 1, 50 do assert(db:notify('a "channel"', "m" .. i)) end
    assert(db:tx(function(tx) return tx:notify('a "channel"', "end") end))
    assert(reading:wait(5))
    assert.equal(51, #got)
    for i = 1, 50 do assert.equal("m" .. i, got[i]) end
    eventually(function() return core.stats().leased == 0 end)
    db:close()
  end)

  it("connects again by itself", function()
    local db = open()
    local listener = db:listen "again"
    local got
    local reading = task.spawn(function()
      got = listener()
      return true
    end)
    assert(db:query "select pg_terminate_backend(pid) from pg_stat_activity where query = 'listen \"again\"'")
    eventually(function()
      assert(db:notify("again", "here"))
      return got == "here"
    end)
    assert(reading:wait(5))
    listener:close()
    db:close()
  end)

  it("is read by one task at a time", function()
    local db = open()
    local listener = db:listen "one"
    local first = task.spawn(function() return listener() end)
    task.sleep(0.01)
    assert.matches("another task waits", message_of(listener))
    assert(db:notify("one", "a"))
    assert.equal("a", first:wait(5))
    listener:close()
    db:close()
  end)

  it("ends with its task, and with close() from another", function()
    local db = open()
    local ok, err = task.timeout(0.05, function() for _ in db:listen "quiet" do end return true end)
    assert.is_nil(ok)
    assert.equal("timeout", err.code)
    eventually(function() return core.stats().leased == 0 end)
    local listener = db:listen "quiet"
    local waiting = task.spawn(function() for _ in listener do end return "over" end)
    task.sleep(0.02)
    listener:close()
    assert.equal("over", waiting:wait(5))
    db:close()
  end)

  it("refuses what is no channel", function()
    local db = open()
    assert.matches("postgres_spec.lua:%d+: db:listen", message_of(function() db:listen "" end))
    assert.matches("postgres_spec.lua:%d+: db:notify", message_of(function() db:notify(("x"):rep(64)) end))
    db:close()
  end)
end)

describe("COPY", function()
  local db, remove

  before_each(function()
    db, remove = schema()
    assert(db:exec "create table t (n int primary key, s text, b bytea, j jsonb, f float8)")
  end)
  after_each(function() remove() end)

  it("takes rows of all kinds", function()
    assert.equal(3, db:copy_in("copy t (n, s, b, j, f) from stdin", {
      { 1, "tab\tline\nslash\\", db.blob "\0\255", { a = "x\\\n" }, 0.5 },
      { 2, null, null, null, null }, "3\tplain\t\\N\t\\N\t1e3",
    }))
    assert.same({
      { n = 1, s = "tab\tline\nslash\\", b = "\0\255", j = { a = "x\\\n" }, f = 0.5 }, { n = 2 }, { n = 3, s = "plain", f = 1000 },
    }, db:query "select * from t order by n")
  end)

  it("takes an iterator, as fast as the server goes", function()
    local i, text = 0, ("x"):rep(1000)
    assert.equal(20000, db:copy_in("copy t (n, s) from stdin", function()
      i = i + 1
      return i <= 20000 and { i, text } or nil
    end))
    assert.equal(20000000, db:value "select sum(length(s)) from t")
  end)

  it("takes all rows or none", function()
    for _, bad in ipairs { { 1, "twice" }, { "no number", "x" } } do
      local count, err = db:copy_in("copy t (n, s) from stdin", { { 1, "a" }, bad })
      assert.is_nil(count)
      assert.is_true(err.code == "unique" or err.code == "sql")
    end
    assert.matches("boom", message_of(function()
      db:copy_in("copy t (n, s) from stdin", function() error "boom" end)
    end))
    assert.equal(0, db:value "select count(*) from t")
    assert.equal(0, core.stats().leased)
  end)

  it("is part of a transaction", function()
    local ok = db:tx(function(tx)
      assert.equal(1, tx:copy_in("copy t (n) from stdin", { { 1 } }))
      assert.equal("1\n", assert(tx:copy_out "copy (select n from t) to stdout"):all())
      return nil, errors.new(500, "not this time")
    end)
    assert.is_nil(ok)
    assert.equal(0, db:value "select count(*) from t")
  end)

  it("gives a reader", function()
    assert(db:copy_in("copy t (n, s) from stdin", (function()
      local i = 0
      return function()
        i = i + 1
        return i <= 5000 and { i, ("y"):rep(100) } or nil
      end
    end)()))
    local bytes, pieces = 0, 0
    for piece in assert(db:copy_out "copy t (n, s) to stdout with (format csv)") do
      bytes, pieces = bytes + #piece, pieces + 1
      assert.is_true(#piece < 100000)
    end
    assert.equal(5000 * 102 + 18893, bytes)
    assert.is_true(pieces > 3)
    local reader = assert(db:copy_out "copy t to stdout")
    assert(reader:line())
    reader:close()
    eventually(function() return core.stats().leased == 0 end)
    assert.equal(5000, db:value "select count(*) from t")
  end)

  it("says what is wrong", function()
    local reader, err = db:copy_out "copy nowhere to stdout"
    assert.is_nil(reader)
    assert.equal("sql", err.code)
    assert.matches("postgres_spec.lua:%d+: db:copy_in: the statement must be a COPY", message_of(function() db:copy_in("select 1", {}) end))
    assert.matches("postgres_spec.lua:%d+: db:copy_in: the rows", message_of(function() db:copy_in("copy t from stdin", 7) end))
    reader = assert(db:copy_out "copy (select 1/(1500 - g) from generate_series(1, 100000) g) to stdout")
    local text, why = reader:all()
    assert.is_nil(text)
    assert.matches("division by zero", why.message)
  end)
end)

describe("a connection that the server closes", function()
  it("says why", function()
    local db = open()
    local ok, err = db:tx(function(tx)
      assert(tx:exec "set local idle_in_transaction_session_timeout = 20")
      task.sleep(0.2)
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
      local waiting = task.spawn(function() return db:query "select pg_sleep(5)" end)
      eventually(function()
        return other:value [[select count(pg_terminate_backend(pid)) from pg_stat_activity
          where application_name = 'victim' and state = 'active']] > 0
      end)
      local ok, err = waiting:wait(3)
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
    local other = open { url = db.url, timeout = "4s" } -- connections of its own, as another process has
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
    write("001_t.sql", "select pg_sleep(0.6); create table t (n int)")
    local db, remove = schema { timeout = "300ms" }
    assert.equal(1, db:migrate(folder))
    remove()
  end)
end)
