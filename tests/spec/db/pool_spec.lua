local env = require "srv.core.env"
local pool = require "srv.db.pool"

local function message_of(fn, ...)
  local ok, err = pcall(fn, ...)
  assert.is_false(ok)
  return tostring(err)
end

describe("srv.db", function()
  it("opens without touching the file", function()
    local db = pool.open("sqlite:/nowhere/at/all.db", { env = false, migrations = false })
    assert.equal("sqlite", db.dialect)
    local rows, err = db:query "select 1"
    assert.is_nil(rows)
    assert.equal("unavailable", err.code)
    assert.equal(503, err.status)
    assert.matches("cannot open /nowhere/at/all.db", err.message, 1, true)
    db:close()
  end)

  it("gives one database in memory to all who open it", function()
    local one = pool.open("sqlite::memory:shared", { env = false, migrations = false })
    local two = pool.sqlite(":memory:shared", { migrations = false })
    assert(one:exec "create table t (n)")
    assert.equal(0, two:value "select count(*) from t")
    one:close()
    assert.equal(0, two:value "select count(*) from t")
    two:close()
  end)

  it("keeps in memory, in specs, what would be a file of the app's folder", function()
    local options = { env = false, migrations = false }
    local one, same = pool.open("sqlite:pool_spec.db", options), pool.sqlite("./pool_spec.db", { migrations = false })
    local other = pool.open("sqlite:pool_spec_other.db", options)
    assert(one:exec "create table t (n)")
    assert.equal(0, same:value "select count(*) from t")
    assert.equal("sql", select(2, other:value "select count(*) from t").code)
    assert.is_nil(io.open(env.root .. "/pool_spec.db"))
    assert.equal("sqlite:pool_spec.db", one.url)
    for _, db in ipairs { one, same, other } do db:close() end
  end)

  it("takes the file that a variable names, in specs too", function()
    local path = os.tmpname()
    local real = env.getenv
    env.getenv = function(name) return name == "POOL_SPEC" and "sqlite:" .. path or real(name) end
    local db = pool.open("sqlite:pool_spec.db", { env = "POOL_SPEC", migrations = false })
    env.getenv = real
    assert(db:exec "create table t (n)")
    db:close()
    assert.is_true(io.open(path):seek "end" > 0)
    os.remove(path)
  end)

  it("blames the app's line for a wrong URL or option", function()
    local cases = {
      { { "sqllite:news.db" }, 'srv.db: "sqllite:news.db": unknown kind of database, did you mean "sqlite"?' },
      { { "news.db" }, 'srv.db: "news.db": unknown kind of database;' },
      { { "sqlite:" }, 'srv.db: "sqlite:" names no file' },
      { { "sqlite:a.db?mode=ro" }, "takes no parameters" },
      { { "postgres://me:secret@localhost/news?nothing=1" }, 'srv.db: "postgres://me:***@localhost/news?nothing=1": invalid URI query parameter: "nothing"' },
      { { 7 }, "the URL must be a string" },
      { { "sqlite:a.db", { time_out = 1 } }, 'unknown option "time_out", did you mean "timeout"?' },
      { { "sqlite:a.db", { timeout = "soon" } }, "a duration" },
      { { "sqlite:a.db", { pool = 1 } }, 'option "pool" must be a whole number from 2 to' },
      { { "sqlite:a.db", { queue = 0.5 } }, 'option "queue" must be a whole number from 1 to' },
      { { "sqlite:a.db", { migrations = true } }, 'option "migrations" must be a folder or false' },
    }
    for _, case in ipairs(cases) do
      local url, opts = case[1][1], case[1][2] or {}
      if opts.env == nil then opts.env = false end
      local message = message_of(function() pool.open(url, opts) end)
      assert.matches("pool_spec.lua:%d+: srv.db: ", message)
      assert.matches(case[2], message, 1, true)
    end
    assert.matches("pool_spec.lua:%d+: srv.db: no URL", message_of(function() pool.open(nil, { env = false }) end))
    assert.matches("pool_spec.lua:%d+: srv.sqlite: .* is no URL of sqlite", message_of(function() pool.sqlite "postgres://localhost/news" end))
    assert.matches("pool_spec.lua:%d+: srv.postgres: .* is no URL of postgres", message_of(function() pool.postgres "sqlite:a.db" end))
  end)

  it("takes the URL from the environment, and says so when that is wrong", function()
    local getenv = env.getenv
    env.getenv = function(name) return name == "NEWS_URL" and "mysql://x" or getenv(name) end
    local message = message_of(function() pool.open("sqlite:a.db", { env = "NEWS_URL" }) end)
    env.getenv = getenv
    assert.matches('srv.db: NEWS_URL is "mysql://x": unknown kind of database', message, 1, true)
  end)
end)
