---@meta srv.core.sqlite
-- luacheck: ignore 212 241

--- SQLite for srv.db (src/bind/lsqlite.c). Apps use srv.db.
---
--- TIMEOUT is in milliseconds, 0: none. Each call that has an outcome gives its result, or nil and an
--- error object, or `refused` and a message: misuse, for our caller to blame on its own. Without a
--- message a value with a __tojson stands among the parameters.
local sqlite = {}

--- The first of two results, instead of a result.
---@type lightuserdata
sqlite.refused = nil

---@class srv.core.sqlite.Db
local Db = {}

---@param lease srv.core.sqlite.Lease?
---@param timeout number
---@param sql string
---@param ... any
---@return table[]?
---@return srv.Error?
function Db:query(lease, timeout, sql, ...) end

--- The first row; `no_row`.
---@return table?
---@return srv.Error?
function Db:one(lease, timeout, sql, ...) end

--- The first column of the first row; `no_row`.
---@return any
---@return srv.Error?
function Db:value(lease, timeout, sql, ...) end

--- Number of rows changed.
---@return integer?
---@return srv.Error?
function Db:exec(lease, timeout, sql, ...) end

function Db:close() end

--- A transaction; rolled back when its task ends.
---@class srv.core.sqlite.Lease
local Lease = {}

---@param db srv.core.sqlite.Db
---@param kind "write"|"read"|"migrate"
---@param timeout number
---@return true?
---@return srv.Error?
function Lease:begin(db, kind, timeout) end

--- Over in any case: an error says that it was rolled back.
---@return true?
---@return srv.Error?
function Lease:commit(timeout) end

---@return true?
---@return srv.Error?
function Lease:rollback(timeout) end

--- Savepoints, named by their depth.
---@param what "set"|"release"|"undo"
---@param depth integer
---@param timeout number
---@return true?
---@return srv.Error?
function Lease:mark(what, depth, timeout) end

--- Statements without parameters. The message of an error begins with the line ("14: ").
---@param sql string
---@param timeout number
---@return true?
---@return srv.Error?
function Lease:script(sql, timeout) end

---@return boolean
function Lease:is_open() end

--- A result in batches of 100 rows; keeps a connection until `done`, close() or the end of its task.
---@class srv.core.sqlite.Cursor
local Cursor = {}

---@param db srv.core.sqlite.Db
---@param lease srv.core.sqlite.Lease?
---@param timeout number
---@param sql string
---@param ... any
---@return table[]? rows
---@return boolean|srv.Error done
function Cursor:open(db, lease, timeout, sql, ...) end

---@param timeout number
---@return table[]? rows
---@return boolean|srv.Error done
function Cursor:fetch(timeout) end

function Cursor:close() end

--- Does not touch the file.
---@param path string          from the app's folder; ":memory:", ":memory:name"
---@param connections integer  at least 2
---@param waiting integer      then `busy`
---@return srv.core.sqlite.Db?
---@return srv.Error?
function sqlite.open(path, connections, waiting) end

---@return srv.core.sqlite.Lease
function sqlite.lease() end

---@return srv.core.sqlite.Cursor
function sqlite.cursor() end

--- S as bytes and not text, where a value is wanted.
---@param s string
function sqlite.blob(s) end

return sqlite
