---@meta srv.core.pg
-- luacheck: ignore 212 241

--- PostgreSQL for srv.db (src/bind/lpg.c). Apps use srv.db.
---
--- TIMEOUT is in milliseconds; 0: none, in a lease. Outcomes are as those of srv.core.sqlite: the
--- result, or nil and an error object, or `refused` and a message.
local pg = {}

--- The first of two results, instead of a result.
---@type lightuserdata
pg.refused = nil

---@class srv.core.pg.Db
local Db = {}

---@param lease srv.core.pg.Lease?
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

--- A connection of its task's own; given back when that ends, rolled back.
---@class srv.core.pg.Lease
local Lease = {}

---@param db srv.core.pg.Db
---@param kind "write"|"read"|"migrate"|"none"
---@param timeout number
---@param isolation "read committed"|"repeatable read"|"serializable"|nil
---@return true?
---@return srv.Error?
function Lease:begin(db, kind, timeout, isolation) end

---@return true?
---@return srv.Error?
function Lease:commit(timeout) end

---@return true?
---@return srv.Error?
function Lease:rollback(timeout) end

--- A savepoint.
---@param what "set"|"release"|"undo"
---@param depth integer
---@return true?
---@return srv.Error?
function Lease:mark(what, depth, timeout) end

--- Statements without parameters.
---@param sql string
---@return true?
---@return srv.Error?
function Lease:script(sql, timeout) end

--- A statement of ours: any.
---@param sql string
---@return true?
---@return srv.Error?
function Lease:command(sql, timeout) end

---@return boolean
function Lease:is_open() end

--- At once, without waiting; SPOILED: the connection is not used again.
---@param spoiled boolean?
function Lease:close(spoiled) end

--- Keeps notifications from here on, a thousand at most.
---@return true
function Lease:listen() end

--- The text of the next notification.
---@return string?
---@return srv.Error?
function Lease:note() end

--- A COPY, up to where data flows.
---@param sql string
---@return true?
---@return srv.Error?
function Lease:copy(sql, timeout) end

--- False: the server takes no more.
---@param text string
---@return boolean?
---@return srv.Error?
function Lease:copy_write(text) end

--- Nil: the end; nil, nil, true: ask again.
---@return string?
---@return srv.Error?
---@return true?
function Lease:copy_read() end

--- Number of rows.
---@param error string?  breaks it off
---@return integer?
---@return srv.Error?
function Lease:copy_end(error) end

--- Does not wait.
---@param url string
---@param connections integer  of the process
---@param waiting integer      then `busy`
---@param timeout number       of a statement, in ms
---@return srv.core.pg.Db?
---@return srv.Error?  `invalid`: the URL
function pg.open(url, connections, waiting, timeout) end

---@return srv.core.pg.Lease
function pg.lease() end

--- Whether a cursor can be declared for it, going by its first word.
---@param sql string
---@return boolean
function pg.reads(sql) end

--- S as bytes and not text, where a value is wanted.
---@param s string
function pg.blob(s) end

--- Of this worker's connections.
---@return table<"open"|"idle"|"leased"|"connecting"|"waiting"|"in_flight", integer> now
---  and since the start: statements orphaned cancelled connects connects_failed
function pg.stats() end

return pg
