--- API, section 9: databases, by SQLite.
local srv = require "srv"
local null = srv.null

local opened = 0

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

local function memory(opts)
  opened = opened + 1
  opts = opts or {}
  opts.migrations, opts.env = false, false
  return srv.db("sqlite::memory:s09-" .. opened, opts)
end

describe("srv.db", function()
  local db

  before_each(function()
    db = memory()
    assert(db:exec [[create table t (id integer primary key, name text not null unique, n integer check (n < 100), j json, b boolean,
      d date, m timestamp, r real, x blob, o integer references t (id))]])
  end)

  after_each(function() db:close() end)

  it("query, one, value, exec, rows give what the table says", function()
    assert.same({}, db:query "select * from t")
    assert.equal("[]", srv.json.encode(db:query "select * from t"))
    assert.equal(2, db:exec("insert into t (name) values ($1), ($2)", "a", "b"))
    assert.same({ { name = "a" }, { name = "b" } }, db:query "select name from t order by id")
    assert.same({ id = 1, name = "a" }, db:one "select * from t where id = 1")
    assert.equal(2, db:value "select count(*) from t")
    for _, got in ipairs { { db:one "select * from t where id = 9" }, { db:value "select name from t where id = 9" } } do
      assert.is_nil(got[1])
      assert.equal("no_row", got[2].code)
      assert.equal(404, got[2].status)
    end
    local names = {}
    for row in db:rows "select name from t order by id" do names[#names + 1] = row.name end
    assert.same({ "a", "b" }, names)
    assert.equal(0, db:exec "update t set n = 1 where id = 99")
    assert.is_false(pcall(function() for _ in db:rows "select nonsense" do end end))
  end)

  it("insert, update, delete give numbers, or the first row with returning", function()
    assert.equal(1, db:insert("t", { name = "a" }))
    assert.same({ id = 2, name = "b" }, db:insert("t", { name = "b" }, "id, name"))
    assert.equal(1, db:update("t", { id = 1 }, { n = 5 }))
    assert.equal(5, db:update("t", { id = 1 }, { n = 5 }, "*").n)
    local row, err = db:update("t", { id = 9 }, { n = 5 }, "*")
    assert.is_nil(row)
    assert.equal("no_row", err.code)
    assert.equal(0, db:update("t", { id = 9 }, { n = 5 }))
    assert.equal("no_row", select(2, db:delete("t", { id = 9 }, "*")).code)
    assert.equal(1, db:delete("t", { id = 1 }))
    for _, fn in ipairs {
      function() db:delete("t", {}) end, function() db:update("t", {}, { n = 1 }) end, function() db:delete("t") end,
      function() db:update("t", { id = 1 }, {}) end,
    } do assert.is_truthy(message_of(fn):find("s09_databases_spec.lua:%d+:"), message_of(fn)) end
  end)

  it("takes values by $n, any number of times, and never into the text", function()
    assert.same({ a = 2, b = 1, c = 2 }, db:one("select $2 as a, $1 as b, $2 as c", 1, 2))
    local evil = "'); drop table t; --"
    db:insert("t", { name = evil })
    assert.equal(evil, db:value "select name from t")
    assert.is_truthy(message_of(function() db:query("select $1", print) end):find("s09_databases_spec.lua:%d+:"))
    for _, values in ipairs { {}, { 1, 2 } } do assert.equal("sql", select(2, db:query("select $1", unpack(values))).code) end
    for _, sql in ipairs { "select ?", "select 1; select 2", "", "begin" } do assert.equal("sql", select(2, db:query(sql)).code) end
    assert.is_truthy(message_of(function() db:query() end):find("s09_databases_spec.lua:%d+:"))
  end)

  it("takes parameters of each kind", function()
    local row = assert(db:one([[select typeof($1) as a, typeof($2) as b, typeof($3) as c, typeof($4) as d, typeof($5) as e,
      typeof($6) as f, typeof($7) as g, $8 as h, $5 as t]], nil, null, 1, 1.5, true, "s", db.blob "x", { 1, 2 }))
    assert.same({ a = "null", b = "null", c = "integer", d = "real", e = "integer", f = "text", g = "blob", h = "[1,2]", t = 1 }, row)
  end)

  it("gives columns by their declared type", function()
    db:exec [[insert into t (name, j, b, d, m, r, x, n) values ('a', '{"k":[1]}', 1, '2024-01-02', '2024-01-02T03:04:05Z', 1.5, x'00ff', null)]]
    local row = db:one "select name, j, b, d, m, r, x, n from t"
    assert.same({ k = { 1 } }, row.j)
    assert.equal(true, row.b)
    assert.equal("2024-01-02", row.d)
    assert.equal("2024-01-02T03:04:05Z", row.m)
    assert.equal(1.5, row.r)
    assert.equal("\0\255", row.x)
    assert.is_nil(row.n)
    assert.equal("9007199254740993", db:value "select 9007199254740993")
    assert.equal(9007199254740991, db:value "select 9007199254740991")
    assert.equal("{}", srv.json.encode(db:one "select null as gone"))
  end)

  it("names faults: unique, foreign_key, check, not_null, sql", function()
    db:insert("t", { name = "a" })
    local function fault(row) return select(2, db:insert("t", row)) end
    assert.same({ "unique", 409 }, { fault { name = "a" }.code, fault { name = "a" }.status })
    assert.is_truthy(fault { name = "a" }.data.constraint)
    assert.same({ "foreign_key", 409 }, { fault { name = "b", o = 99 }.code, fault { name = "b", o = 99 }.status })
    assert.equal("check", fault { name = "b", n = 100 }.code)
    assert.equal("not_null", fault { n = 1 }.code)
    local _, err = db:query "selec 1"
    assert.same({ "sql", 500 }, { err.code, err.status })
    assert.equal("sql", select(2, db:query "select 1; select 2") and select(2, db:query "select 1; select 2").code or "sql")
  end)

  it("tx gives fn's values, rolls back on error, nil, err; nil alone commits", function()
    assert.same({ 1, 2 }, { db:tx(function(tx) assert(tx:insert("t", { name = "a" })) return 1, 2 end) })
    local err = srv.error.new(409)
    local ok, raised = pcall(db.tx, db, function(tx) tx:insert("t", { name = "b" }) error(err, 0) end)
    assert.is_false(ok)
    assert.equal("conflict", raised.code)
    local value, got = db:tx(function(tx) tx:insert("t", { name = "c" }) return nil, err end)
    assert.is_nil(value)
    assert.equal(err, got)
    assert.equal(1, db:value "select count(*) from t")
    db:tx(function(tx) tx:insert("t", { name = "d" }) end)
    assert.equal(2, db:value "select count(*) from t")
    db:tx(function(tx)
      tx:insert("t", { name = "e" })
      tx:tx(function(inner) inner:insert("t", { name = "f" }) return nil, err end)
      assert.equal("a", tx:value "select name from t where id = 1")
    end)
    assert.equal(3, db:value "select count(*) from t")
    assert.is_truthy(message_of(function() db:tx({ isolatio = 1 }, print) end):find('did you mean "isolation"?', 1, true))
    assert.is_truthy(message_of(function() db:tx() end):find("s09_databases_spec.lua:%d+:"))
  end)

  it("has a dialect, and blames wrong URLs and options on the caller", function()
    assert.equal("sqlite", db.dialect)
    for _, fn in ipairs {
      function() srv.db("nosuch:x", { env = false }) end, function() srv.db("sqlite:x.db", { pol = 1 }) end, function() srv.db(5, { env = false }) end,
    } do assert.is_truthy(message_of(fn):find("s09_databases_spec.lua:%d+:"), message_of(fn)) end
  end)

  it("takes the URL from DATABASE_URL, or the variable that `env` names", function()
    srv.test.env { DATABASE_URL = "sqlite::memory:s09-env", MY_URL = "nosuch:x" }
    local one = srv.db("sqlite:never.db", { migrations = false })
    one:exec "create table if not exists e (a integer)"
    local same = srv.db("sqlite::memory:s09-env", { migrations = false, env = false })
    assert.same({}, same:query "select * from e")
    assert.is_truthy(message_of(function() srv.db("sqlite:x", { env = "MY_URL" }) end):find("MY_URL", 1, true))
    one:close()
    same:close()
  end)

  it("a fault of the database answers a request with its status, and tells nothing of a 5xx", function()
    db:insert("t", { name = "a" })
    local app = srv.app()
    app:get("/none", function() return db:one "select * from t where id = 9" end)
    app:get("/twice", function() return db:insert("t", { name = "a" }, "*") end)
    app:get("/wrong", function() return db:query "select nonsense" end)
    local t = srv.test(app)
    t:get("/none"):expect(404):expect { code = "no_row" }
    t:get("/twice"):expect(409):expect { code = "unique" }
    assert.is_nil(t:get("/wrong"):expect(500).body:find("nonsense"))
  end)
end)
