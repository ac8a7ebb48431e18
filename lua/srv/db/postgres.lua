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

--- Up to the last @: a password may have one in it, by mistake.
local function password_in(url)
  return url:match "^%a[%w+.-]*://[^/@:?]*:([^?]*)@"
end

--- The whole URL: libpq reads it, and would take what stands behind a / for a database.
function postgres.path_of(_, url)
  local password = password_in(url)
  if password and password:find "[/@]" and not password:find "^%d+/" then
    return nil, "has a password with / or @ in it: write %2F and %40"
  end
  return url
end

--- A URL, or what libpq says of it, as it may be shown.
function postgres.hide(url)
  return (url:gsub("^(%a[%w+.-]*://[^/@:?]*):[^?]*@", "%1:***@"):gsub("([?&]password=)[^&]*", "%1***")
    :gsub("(percent%-encoded token: ).*", "%1***"))
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
