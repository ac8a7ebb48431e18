--- Databases of the PostgreSQL server that the specs run beside, and how to wait for it.
local pool = require "srv.db.pool"
local task = require "srv.async.task"

local URL = os.getenv "TEST_POSTGRES_URL"
local schemas = 0

local fixture = { URL = URL }

function fixture.open(opts)
  opts = opts or {}
  opts.migrations, opts.env = opts.migrations or false, false
  local url = opts.url or URL
  opts.url = nil
  return pool.open(url, opts)
end

--- A schema of its own, gone with `remove`.
function fixture.schema(opts)
  schemas = schemas + 1
  local name = ("spec_%d_%d"):format(os.time(), schemas)
  local admin = fixture.open()
  assert(admin:exec("create schema " .. name))
  opts = opts or {}
  opts.url = URL .. "?options=-csearch_path%3D" .. name
  local db = fixture.open(opts)
  return db, function()
    db:close()
    assert(admin:exec(("drop schema %s cascade"):format(name)))
    admin:close()
  end
end

function fixture.message_of(fn, ...)
  local ok, err = pcall(fn, ...)
  assert(not ok, "it raised nothing")
  return tostring(err)
end

function fixture.elapsed(fn)
  local clock = require "srv.core.env".monotonic
  local before = clock()
  fn()
  return clock() - before
end

--- Waits until FN says so: events on the server have no other bell.
function fixture.eventually(fn)
  for _ = 1, 2000 do
    if fn() then return end
    task.sleep(0.01)
  end
  error("it did not come to be within 20 s", 2)
end

return fixture
