-- needs: postgres
local fixture = require "db.modules.postgres_fixture"
local errors = require "srv.base.errors"
local json = require "srv.core.json"
local core = require "srv.core.pg"

local null = json.null
local URL, open, schema, message_of, elapsed = fixture.URL, fixture.open, fixture.schema, fixture.message_of, fixture.elapsed

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
    assert.matches("postgres_values_spec.lua:%d+: srv.db: a function", message_of(function() db:query("select $1", print) end))
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
    assert.matches("postgres_values_spec.lua:%d+: srv.db: ", message)
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
