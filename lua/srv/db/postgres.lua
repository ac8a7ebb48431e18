--- PostgreSQL's driver: srv.core.pg as handle.lua wants it.
local core = require "srv.core.pg"
local cursor = require "srv.db.postgres_cursor"
local migrations = require "srv.core.migrations"
local stream = require "srv.db.postgres_stream"

local postgres = {
  dialect = "postgres",
  lease = core.lease,
  cursor = cursor.new,
  migrations = migrations.read,
  blob = core.blob,
  refused = core.refused,
  listen = stream.listen,
  notify = stream.notify,
  copy_in = stream.copy_in,
  copy_out = stream.copy_out,
}

--- The whole URL: libpq reads it.
function postgres.path_of(_, url) return url end

--- A URL as it may be shown.
function postgres.hide(url)
  return (url:gsub("^(%a[%w+.-]*://[^/@:]*):[^/@]*@", "%1:***@"):gsub("([?&]password=)[^&]*", "%1***"))
end

---@param url string
---@param connections integer
---@param waiting integer
---@param timeout_ms number
function postgres.open(url, connections, waiting, timeout_ms)
  return core.open(url, connections, waiting, timeout_ms)
end

-- However many workers and machines start at once: one of them migrates this schema, the others wait
-- for it, as long as it takes.
local NO_LIMIT = "set local statement_timeout = 0"
local LOCK = "select pg_advisory_xact_lock(hashtext('srv_migrations'), coalesce(hashtext(current_schema()), 0))"

--- In a lease that was begun to migrate.
---@return integer?
---@return srv.Error?
function postgres.lock_migrations(db, lease)
  local ok, err = lease:command(NO_LIMIT, 0)
  if not ok then return nil, err end
  return db:query(lease, 0, LOCK)
end

return postgres
