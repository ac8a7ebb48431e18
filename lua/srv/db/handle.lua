--- What srv.db gives, and a transaction's function: the methods of API section 9, over the driver of
--- one kind of database.
---
--- A driver is a table: `dialect`, `open(path, pool, queue, timeout_ms) -> core | nil, err`, `lease()`,
--- `cursor()`, `migrations(folder, dialect)`, `blob(s)`, `refused`, and where the database has them
--- `listen notify copy_in copy_out (db, ...)` and `lock_migrations(core, lease)`. Objects and
--- outcomes are as those of srv.core.sqlite (bind/lsqlite.h): `refused, message` is misuse by our
--- caller.
local errors = require "srv.base.errors"
local migrate = require "srv.db.migrate"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local statement = require "srv.db.statement"
local suggest = require "srv.base.suggest"
local unseen = require "srv.base.unseen"

---@class srv.Db
---@field dialect "sqlite"|"postgres"
---@field url string?                 that it was opened with
---@field private driver table
---@field private core table
---@field private lease table?         in a transaction
---@field private depth integer        of savepoints
---@field private timeout_ms number    a statement
---@field private folder string|false? migrations that have to run before the first statement
local Db = { __name = "srv.Db" }
Db.__index = setmetatable(Db, { __index = suggest.foreign "db" })

local handle = {}

local TX_OPTIONS = {
  retries = "0..", readonly = "boolean",
  isolation = "read committed|repeatable read|serializable",
}

--- Values with a __tojson in them become plain ones (that may call Lua, which C does not), and the
--- statement is tried again.
local function resolved(...)
  local json = require "srv.base.json"
  local values, count = { ... }, select("#", ...)
  for i = 1, count do
    if type(values[i]) == "table" then values[i] = json.resolve(values[i]) end
  end
  return unpack(values, 1, count)
end

--- `db.query("...")` has the text where the handle belongs.
local function refuse_dot(method)
  misuse(("db.%s: methods of a database stand behind a colon: db:%s(...)"):format(method, method))
end

local function check_self(self, method)
  if getmetatable(self) ~= Db then refuse_dot(method) end
end

--- Called in place of its caller, a method: level 2 is who called that.
local function refused(message)
  misuse("srv.db: " .. message)
end

local function settle(self)
  local folder = self.folder
  if not folder then return true end
  local count, err = migrate.run(self, folder, self.folder_given)
  if not count then return nil, err end
  self.folder = false
  return true
end

--- Runs the migrations that the handle was opened with, unless that is done.
---@param db srv.Db
---@return true?
---@return srv.Error?
handle.settle = settle

for _, method in ipairs { "query", "one", "value", "exec" } do
  Db[method] = function(self, sql, ...)
    if getmetatable(self) ~= Db then refuse_dot(method) end
    if self.folder then
      local ok, err = settle(self)
      if not ok then return nil, err end
    end
    local core, refusal = self.core, self.driver.refused
    local result, err = core[method](core, self.lease, self.timeout_ms, sql, ...)
    if result == refusal and not err then
      result, err = core[method](core, self.lease, self.timeout_ms, sql, resolved(...))
    end
    if err == nil then return result end
    if result == refusal then return refused(err) end
    return nil, err
  end
end

--- An array of rows, maybe empty | nil, err.
---@class srv.Db
---@field query fun(self: srv.Db, sql: string, ...: any): table[]?, srv.Error?
---@field one fun(self: srv.Db, sql: string, ...: any): table?, srv.Error?    the first row; `no_row`
---@field value fun(self: srv.Db, sql: string, ...: any): any, srv.Error?     its first column
---@field exec fun(self: srv.Db, sql: string, ...: any): integer?, srv.Error? number of rows changed

--- What db:rows gives: called, the next row. A table and no closure: a compiled loop holds on to the
--- closure that it calls, and with it would keep the connection.
---@class srv.Rows
---@overload fun(): table?
local Rows = { __name = "srv.Rows" }
Rows.__index = Rows

local function take(rows, level, batch, done)
  if batch == rows.db.driver.refused then
    error("srv.db: " .. (done or "a value with a __tojson in it: encode it first"), level + 1)
  end
  if not batch then error(done, 0) end
  rows.batch, rows.done, rows.at = batch, done, 0
end

local function open(rows)
  local db = rows.db
  if db.folder then assert(settle(db)) end
  rows.cursor = db.driver.cursor()
  take(rows, 3, rows.cursor:open(db.core, db.lease, db.timeout_ms, rows.sql, unpack(rows.values, 1, rows.count)))
end

function Rows:__call()
  if not self.batch then open(self) end
  if self.at == #self.batch and not self.done then take(self, 2, self.cursor:fetch(self.db.timeout_ms)) end
  self.at = self.at + 1
  return self.batch[self.at]
end

--- Gives the connection back; there are no more rows.
function Rows:close()
  if self.cursor then self.cursor:close() end
  self.batch, self.at, self.done = {}, 0, true
end

--- A loop over rows, 100 read ahead; what goes wrong is raised. One that is left in the middle keeps its
--- connection until the task ends, or rows:close().
---@param sql string
---@param ... any
---@return srv.Rows
function Db:rows(sql, ...)
  check_self(self, "rows")
  return setmetatable({ db = self, sql = sql, values = { ... }, count = select("#", ...) }, Rows)
end

local function run(self, returning, sql, values, count)
  if returning then return self:one(sql, unpack(values, 1, count)) end
  return self:exec(sql, unpack(values, 1, count))
end

--- Number of rows; with RETURNING ("*", "id, title") the first row | nil, err.
---@param t string
---@param row table<string, any>
---@param returning string?
function Db:insert(t, row, returning)
  check_self(self, "insert")
  return run(self, returning, statement.insert(t, row, returning))
end

---@param t string
---@param match table<string, any>  never empty
---@param values table<string, any>
---@param returning string?
function Db:update(t, match, values, returning)
  check_self(self, "update")
  return run(self, returning, statement.update(t, match, values, returning))
end

---@param t string
---@param match table<string, any>  never empty
---@param returning string?
function Db:delete(t, match, returning)
  check_self(self, "delete")
  return run(self, returning, statement.delete(t, match, returning))
end

--- Runs what is new in FOLDER (from the app's). Number of migrations that ran | nil, err.
---@param folder string
---@return integer?
---@return srv.Error?
function Db:migrate(folder)
  check_self(self, "migrate")
  if type(folder) ~= "string" then misuse("db:migrate: the folder must be a string") end
  if self.lease then misuse("db:migrate: not inside a transaction") end
  return migrate.run(self, folder, true)
end

function Db:close()
  check_self(self, "close")
  if self.lease then misuse("db:close: this is a transaction's handle") end
  self.folder = false
  self.core:close()
  if self.on_close then self.on_close(self) end
end

for _, method in ipairs { "listen", "notify", "copy_in", "copy_out" } do
  Db[method] = function(self, ...)
    check_self(self, method)
    local driven = self.driver[method]
    if not driven then misuse(("db:%s: PostgreSQL has it, %s does not"):format(method, self.dialect)) end
    if self.folder then
      local ok, err = settle(self)
      if not ok then return nil, err end
    end
    local result, err = driven(self, ...)
    return result, err
  end
end

-- Transactions ------------------------------------------------------------------------------------

--- A traceback goes with error objects; another value passes as it is.
local function keep_trace(raised)
  if errors.is(raised) and not rawget(raised, "trace") then raised.trace = debug.traceback("", 2) end
  return raised
end

local function inner_handle(self, lease, depth)
  return setmetatable({
    dialect = self.dialect, driver = self.driver, core = self.core, blob = self.blob,
    timeout_ms = self.timeout_ms, lease = lease, depth = depth,
  }, Db)
end

--- What became of the function: `outcome` is "commit", "raised" or "failed" (nil, err).
local function judge(returned, ...)
  local first, second = ...
  if not returned then return "raised", first end
  if first == nil and second ~= nil then return "failed", second end
  return "commit", { n = select("#", ...), ... }
end

--- Ends the transaction by what became of its function: `outcome, what` as they are for the caller.
local function conclude(self, lease, outcome, what)
  if outcome ~= "commit" then
    if lease:is_open() then lease:rollback(self.timeout_ms) end
    return outcome, what
  end
  local ok, err = lease:commit(self.timeout_ms)
  if not ok then return "failed", err end
  return outcome, what
end

local function attempt(self, kind, isolation, fn)
  local lease = self.driver.lease()
  local ok, err = lease:begin(self.core, kind, self.timeout_ms, isolation)
  if ok == self.driver.refused then return "misuse", err end
  if not ok then return "failed", err end
  return conclude(self, lease, judge(xpcall(fn, keep_trace, inner_handle(self, lease, 0))))
end

--- A savepoint of the transaction that SELF is the handle of.
local function attempt_inside(self, fn)
  local lease, depth, timeout = self.lease, self.depth + 1, self.timeout_ms
  local ok, err = lease:mark("set", depth, timeout)
  if ok == self.driver.refused then return "misuse", err end
  if not ok then return "failed", err end
  local tx = inner_handle(self, lease, depth)
  self.inner = true
  local outcome, what = judge(xpcall(fn, keep_trace, tx))
  self.inner = nil
  tx.lease = self.driver.lease() -- one that is not begun: the handle is over
  if not lease:is_open() then return outcome, what end
  ok, err = lease:mark(outcome == "commit" and "release" or "undo", depth, timeout)
  if not ok and outcome == "commit" then return "failed", err end
  return outcome, what
end

local function check_inner(self, opts)
  if next(opts) then misuse("tx:tx: its options are those of the outer transaction") end
  if self.inner then misuse("tx:tx: an inner transaction of this one is open: use its handle") end
end

local function check_options(opts)
  local checked = options.check("db:tx", opts, TX_OPTIONS)
  return checked, checked.retries or 0
end

--- fn(tx) with a handle that has the same methods; commits and gives fn's values. An error (raised
--- again), `nil, err` (given back) and cancellation roll back. Inside another: a savepoint.
---@param opts { retries: integer?, readonly: boolean?, isolation: string? }?
---@param fn fun(tx: srv.Db): ...
function Db:tx(opts, fn)
  check_self(self, "tx")
  if fn == nil then opts, fn = nil, opts end
  if type(fn) ~= "function" then misuse("db:tx: the last argument must be a function") end
  local retries, outcome, what
  opts, retries = check_options(opts)
  if self.lease then
    check_inner(self, opts)
    outcome, what = attempt_inside(self, fn)
  else
    local ok, err = settle(self)
    if not ok then return nil, err end
    local left = retries
    repeat
      outcome, what = attempt(self, opts.readonly and "read" or "write", opts.isolation, fn)
      left = left - 1
    until left < 0 or outcome == "commit" or not errors.is(what, "conflict")
  end
  if outcome == "commit" then return unpack(what, 1, what.n) end
  if outcome == "failed" then return nil, what end
  if outcome == "misuse" then misuse("db:tx: " .. what) end
  error(what, 0)
end

-- Opening -----------------------------------------------------------------------------------------

---@class srv.DbOptions
---@field url string
---@field path string
---@field pool integer
---@field queue integer
---@field timeout number       seconds
---@field folder string|false  migrations
---@field folder_given boolean named by the app: then it must be there
---@field on_close fun(db: srv.Db)

--- Does not wait: what is wrong shows in the first statement.
---@param driver table
---@param opts srv.DbOptions
---@return srv.Db?
---@return srv.Error?
function handle.open(driver, opts)
  local core, err = driver.open(opts.path, opts.pool, opts.queue, opts.timeout * 1000)
  if not core then return nil, err end
  return setmetatable({
    dialect = driver.dialect, url = opts.url, driver = driver, core = core, blob = driver.blob,
    timeout_ms = opts.timeout * 1000, depth = 0,
    folder = opts.folder, folder_given = opts.folder_given, on_close = opts.on_close,
  }, Db)
end

unseen.watch(Db, {
  "query", "one", "value", "exec", "insert", "update", "delete", "tx", "migrate", "notify", "copy_in",
})

return handle
