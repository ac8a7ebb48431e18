-- needs: postgres
local fixture = require "db.modules.postgres_fixture"
local task = require "srv.async.task"
local errors = require "srv.base.errors"
local json = require "srv.core.json"
local core = require "srv.core.pg"

local null = json.null
local open, schema, message_of, eventually = fixture.open, fixture.schema, fixture.message_of, fixture.eventually

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
    assert(reading:wait(20))
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
    assert(reading:wait(20))
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
    assert.equal("a", first:wait(20))
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
    assert.equal("over", waiting:wait(20))
    db:close()
  end)

  it("refuses what is no channel", function()
    local db = open()
    assert.matches("postgres_stream_spec.lua:%d+: db:listen", message_of(function() db:listen "" end))
    assert.matches("postgres_stream_spec.lua:%d+: db:notify", message_of(function() db:notify(("x"):rep(64)) end))
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
    assert.matches("postgres_stream_spec.lua:%d+: db:copy_in: the statement must be a COPY", message_of(function() db:copy_in("select 1", {}) end))
    assert.matches("postgres_stream_spec.lua:%d+: db:copy_in: the rows", message_of(function() db:copy_in("copy t from stdin", 7) end))
    reader = assert(db:copy_out "copy (select 1/(1500 - g) from generate_series(1, 100000) g) to stdout")
    local text, why = reader:all()
    assert.is_nil(text)
    assert.matches("division by zero", why.message)
  end)
end)
