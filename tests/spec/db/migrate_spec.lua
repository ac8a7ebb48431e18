local pool = require "srv.db.pool"

--- A folder of files { [name] = text }; `remove()` takes it away.
local function folder_of(files)
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder) == 0)
  local function write(name, text)
    local file = assert(io.open(folder .. "/" .. name, "w"))
    file:write(text)
    file:close()
  end
  for name, text in pairs(files) do write(name, text) end
  return folder, write, function() os.execute("rm -r " .. folder) end
end

local opened = 0

local function memory(folder)
  opened = opened + 1
  return pool.open("sqlite::memory:migrate-" .. opened, { env = false, migrations = folder })
end

describe("migrations", function()
  it("run once, in the order of their numbers, before the first statement", function()
    local folder, write, remove = folder_of {
      ["002_rows.sql"] = "insert into t values (1); -- a comment;\ninsert into t values (2);",
      ["1_table.sql"] = "create table t (n);",
      ["003_other.postgres.sql"] = "this is not SQLite",
      ["003_other.sqlite.sql"] = "insert into t values (3)",
    }
    local db = memory(folder)
    assert.equal(3, db:value "select count(*) from t")
    assert.equal(0, db:migrate(folder))
    write("010_more.sql", "insert into t values (4)")
    assert.equal(1, db:migrate(folder))
    assert.equal(4, db:value "select count(*) from t")
    assert.same({ "1_table.sql", "002_rows.sql", "003_other.sqlite.sql", "010_more.sql" },
      (function(rows) for i, row in ipairs(rows) do rows[i] = row.file end return setmetatable(rows, nil) end)(db:query "select file from srv_migrations order by number"))
    db:close()
    remove()
  end)

  it("run when the app is ready, even if nobody asks yet", function()
    local folder, _, remove = folder_of { ["001_table.sql"] = "create table t (n)" }
    local db = memory(folder)
    pool.ready()
    local other = pool.open("sqlite::memory:migrate-" .. opened, { env = false, migrations = false })
    assert.equal(0, other:value "select count(*) from t")
    other:close()
    db:close()
    remove()
  end)

  it("name file, line and statement of a wrong one, and keep those before it", function()
    local folder, write, remove = folder_of {
      ["001_a.sql"] = "create table a (n)",
      ["002_b.sql"] = "create table b (n);\n\n-- here:\ninsert into nope values (1);",
    }
    local db = memory(folder)
    local rows, err = db:query "select 1"
    assert.is_nil(rows)
    assert.equal("sql", err.code)
    assert.matches(folder .. "/002_b.sql:4: no such table: nope, in: insert into nope values (1)", err.message, 1, true)
    local ok, raised = pcall(pool.ready)
    assert.is_false(ok)
    assert.equal(err.message, raised.message)

    write("002_b.sql", "create table b (n)")
    assert.same({ { name = "a" }, { name = "b" } }, db:query "select name from sqlite_schema where name in ('a', 'b') order by name")
    db:close()
    remove()
  end)

  it("refuse a file that was edited after it ran", function()
    local folder, write, remove = folder_of { ["001_a.sql"] = "create table a (n)" }
    local db = memory(folder)
    assert(db:query "select 1")
    write("001_a.sql", "create table a (n, m)")
    local count, err = db:migrate(folder)
    assert.is_nil(count)
    assert.equal("migration", err.code)
    assert.matches("001_a.sql was changed after it had run", err.message, 1, true)
    db:close()
    remove()
  end)

  it("may rebuild a table that others refer to", function()
    local folder, _, remove = folder_of {
      ["001_a.sql"] = "create table a (id integer primary key); create table b (a_id references a on delete cascade); insert into a values (1); insert into b values (1)",
      ["002_a.sql"] = "create table c (id integer primary key, n); insert into c select id, 0 from a; drop table a; alter table c rename to a",
    }
    local db = memory(folder)
    assert.equal(1, db:value "select count(*) from b")
    db:close()
    remove()
  end)

  it("may be missing unless the app names the folder", function()
    opened = opened + 1
    local db = pool.open("sqlite::memory:migrate-" .. opened, { env = false })
    assert.equal(7, db:value "select 7")
    db:close()
    local named = memory("/nowhere/migrations")
    local rows, err = named:query "select 1"
    assert.is_nil(rows)
    assert.equal("not_found", err.code)
    named:close()
  end)
end)
