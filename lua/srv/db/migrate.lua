--- Migrations: each file of a folder runs once, in the order of the numbers, each in a transaction of
--- its own. That transaction is the lock (SQLite), or holds one (PostgreSQL): workers and processes
--- that start at once find, when it is theirs, what another has done. A file that was edited after it
--- ran is an error, since the tables are no longer what the file says.
local errors = require "srv.base.errors"

local migrate = {}

local CREATE = [[create table if not exists srv_migrations (
  number bigint primary key, file text not null, digest text not null,
  applied_at timestamp not null default current_timestamp)]]

-- A migration takes the time it takes; what waits for it has its own limits.
local NO_LIMIT = 0

--- "migrations/002_tags.sql:14: no such table: tag"
local function blame(folder, file, err)
  local place = folder .. "/" .. file.file
  local told = type(err.cause) == "string" and err.cause or err.message
  local line, rest = told:match("^(%d+): (.*)$")
  local message = line and ("%s:%s: %s"):format(place, line, rest) or place .. ": " .. told
  return errors.new(err.status, message, { code = err.code, expose = false })
end

local function edited(folder, file)
  return errors.new(500, ("%s/%s was changed after it had run: restore it, and put the change into a new file")
    :format(folder, file.file), { code = "migration" })
end

--- True: it is done already | false | nil, err.
local function is_applied(db, lease, folder, file)
  local rows, err = db.core:query(lease, NO_LIMIT, "select digest from srv_migrations where number = $1", file.number)
  if not rows then return nil, err end
  if not rows[1] then return false end
  if rows[1].digest ~= file.digest then return nil, edited(folder, file) end
  return true
end

local function apply(db, lease, file)
  local ok, err = lease:script(file.text, NO_LIMIT)
  if not ok then return nil, err end
  return db.core:exec(lease, NO_LIMIT,
    "insert into srv_migrations (number, file, digest) values ($1, $2, $3)", file.number, file.file, file.digest)
end

--- A transaction that no other migration runs beside.
local function begin(db)
  local lease = db.driver.lease()
  local ok, err = lease:begin(db.core, "migrate", NO_LIMIT)
  if ok == db.driver.refused then error("srv.db: " .. err, 0) end
  if ok and db.driver.lock_migrations then ok, err = db.driver.lock_migrations(db.core, lease) end
  if ok then return lease end
  if lease:is_open() then lease:rollback(NO_LIMIT) end
  return nil, err
end

--- Number of migrations that ran: 1, or 0 if another process was quicker | nil, err.
local function run_one(db, folder, file)
  local lease, err = begin(db)
  if not lease then return nil, err end
  local applied, fault = is_applied(db, lease, folder, file)
  if applied == false then
    local ok
    ok, fault = apply(db, lease, file)
    if ok then ok, fault = lease:commit(NO_LIMIT) end
    if ok then return 1 end
    fault = blame(folder, file, fault)
  end
  if lease:is_open() then lease:rollback(NO_LIMIT) end
  if fault then return nil, fault end
  return 0
end

--- Two who create a table at once get into each other's way in PostgreSQL, "if not exists" or not.
local function create_table(db)
  if not db.driver.lock_migrations then return db.core:exec(nil, NO_LIMIT, CREATE) end
  local lease, err = begin(db)
  if not lease then return nil, err end
  local ok
  ok, err = db.core:exec(lease, NO_LIMIT, CREATE)
  if ok then return lease:commit(NO_LIMIT) end
  if lease:is_open() then lease:rollback(NO_LIMIT) end
  return nil, err
end

--- Those that have not run. A file that is in the table and not in the folder is left alone: an older
--- version of the app meets a database that a newer one has seen.
local function pending_of(db, folder, files)
  local ok, err = create_table(db)
  if not ok then return nil, err end
  local rows
  rows, err = db.core:query(nil, NO_LIMIT, "select number, digest from srv_migrations")
  if not rows then return nil, err end
  local digests, pending = {}, {}
  for _, row in ipairs(rows) do digests[row.number] = row.digest end
  for _, file in ipairs(files) do
    local digest = digests[file.number]
    if not digest then
      pending[#pending + 1] = file
    elseif digest ~= file.digest then
      return nil, edited(folder, file)
    end
  end
  return pending
end

--- Runs what is new in FOLDER. A folder that the app did not name itself may be missing.
---@param db srv.Db
---@param folder string
---@param must_exist boolean
---@return integer? count  of migrations that ran
---@return srv.Error?
function migrate.run(db, folder, must_exist)
  local files, err = db.driver.migrations(folder, db.dialect)
  if not files then
    if errors.is(err, "not_found") and not must_exist then return 0 end
    return nil, err
  end
  if #files == 0 then return 0 end
  local pending
  pending, err = pending_of(db, folder, files)
  if not pending then return nil, err end
  local count = 0
  for _, file in ipairs(pending) do
    local ran
    ran, err = run_one(db, folder, file)
    if not ran then return nil, err end
    count = count + ran
  end
  return count
end

return migrate
