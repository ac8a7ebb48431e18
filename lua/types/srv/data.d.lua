---@meta _
-- luacheck: ignore 212 241 631

---@class srv.DbOptions
---@field pool integer?              20, of the process
---@field queue integer?             100 that wait, then `busy`
---@field timeout srv.Duration?      "5s" a statement
---@field migrations string|false|nil "migrations"
---@field env string|false|nil       "DATABASE_URL"

--- A database; the handle of a transaction has the same methods. Values go by $1, $2, ...
---@class srv.Db
---@field dialect "sqlite"|"postgres"
---@field url string?
local Db = {}

---@param sql string
---@param ... any
---@return table[]?
---@return srv.Error? err
function Db:query(sql, ...) end

--- The first row; none is `nil, err` too: `no_row`, 404.
---@param sql string
---@param ... any
---@return table?
---@return srv.Error? err
function Db:one(sql, ...) end

--- The first row's first column.
---@param sql string
---@param ... any
---@return any
---@return srv.Error? err
function Db:value(sql, ...) end

---@param sql string
---@param ... any
---@return integer? changed  rows
---@return srv.Error? err
function Db:exec(sql, ...) end

--- `for row in db:rows(sql) do`; what goes wrong is raised.
---@param sql string
---@param ... any
---@return srv.Rows
function Db:rows(sql, ...) end

---@param t string
---@param row table<string, any>
---@param returning string?  "*", "id, title"
---@return integer|table|nil  rows; with RETURNING the first row
---@return srv.Error? err
function Db:insert(t, row, returning) end

---@param t string
---@param match table<string, any>  never empty
---@param values table<string, any>
---@param returning string?
---@return integer|table|nil
---@return srv.Error? err
function Db:update(t, match, values, returning) end

---@param t string
---@param match table<string, any>  never empty
---@param returning string?
---@return integer|table|nil
---@return srv.Error? err
function Db:delete(t, match, returning) end

--- fn(tx); commits and gives fn's values. An error, `nil, err` or cancellation rolls back.
---@param opts { retries?: integer, readonly?: boolean, isolation?: string }|fun(tx: srv.Db): any, any
---@param fn (fun(tx: srv.Db): any, any)?
---@return any ...
function Db:tx(opts, fn) end

---@param folder string
---@return integer? ran
---@return srv.Error? err
function Db:migrate(folder) end

function Db:close() end

--- Bytes as a parameter.
---@param s string
---@return any
function Db.blob(s) end

--- PostgreSQL: `for text in db:listen "news" do`.
---@param ... any  channel
---@return srv.DbListener
function Db:listen(...) end

--- PostgreSQL.
---@param ... any  channel, text
---@return true?
---@return srv.Error? err
function Db:notify(...) end

--- PostgreSQL: COPY ... FROM STDIN.
---@param ... any  sql, rows
---@return integer?
---@return srv.Error? err
function Db:copy_in(...) end

--- PostgreSQL: COPY ... TO STDOUT.
---@param ... any  sql
---@return srv.Reader?
---@return srv.Error? err
function Db:copy_out(...) end

---@class srv.Rows
---@overload fun(): table?
local Rows = {}

--- Gives the connection back; there are no more rows.
function Rows:close() end

---@class srv.DbListener
---@overload fun(): string?

--- Each command is a method: `r:set("k", "v", "EX", 60)`.
---@class srv.Redis
---@field [string] fun(self: srv.Redis, ...: string|number): any, srv.Error?
local Redis = {}

---@param command string
---@param ... string|number
---@return any reply
---@return srv.Error? err
function Redis:call(command, ...) end

--- Commands that run together, with nobody's between.
---@param opts { watch?: string|string[], retries?: integer }|fun(m: srv.RedisMulti): any
---@param fn (fun(m: srv.RedisMulti, now: srv.Redis): any, any)?
---@return any[]? results
---@return srv.Error? err
function Redis:multi(opts, fn) end

---@param text string  Lua, as Redis runs it
---@return srv.RedisScript
function Redis:script(text) end

--- `for message, channel in r:subscribe("a", "b") do`
---@param ... string
---@return srv.RedisSubscription
function Redis:subscribe(...) end

---@param ... string  patterns: "news.*"
---@return srv.RedisSubscription
function Redis:psubscribe(...) end

function Redis:close() end

---@class srv.RedisMulti
---@field [string] fun(self: srv.RedisMulti, ...: string|number): srv.RedisMulti

---@class srv.RedisScript
local Script = {}

---@param keys string[]?
---@param args (string|number)[]?
---@return any reply
---@return srv.Error? err
function Script:call(keys, args) end

---@class srv.RedisSubscription
---@overload fun(): string, string, string?
local RedisSubscription = {}

---@param t srv.Duration?
---@return string? text
---@return string|srv.Error channel_or_err
---@return string? pattern
function RedisSubscription:receive(t) end

function RedisSubscription:close() end

--- Strings, numbers, booleans, tables of these.
---@class srv.Shared
local Shared = {}

---@param key string
---@return any v
function Shared:get(key) end

---@param key string
---@param v any  not nil
---@param ttl srv.Duration?
---@return true?
---@return srv.Error? err  too_large
function Shared:set(key, v, ttl) end

--- Only if it is new.
---@param key string
---@param v any
---@param ttl srv.Duration?
---@return boolean?
---@return srv.Error? err
function Shared:add(key, v, ttl) end

---@param key string
---@return boolean
function Shared:delete(key) end

---@param key string
---@param by number?  1
---@param ttl srv.Duration?
---@return number? sum
---@return srv.Error? err
function Shared:incr(key, by, ttl) end

--- Puts NEW in OLD's place if that is what is there.
---@param key string
---@param old any
---@param new any
---@return boolean?
---@return srv.Error? err
function Shared:cas(key, old, new) end

--- Until there is a value.
---@param key string
---@param t srv.Duration?
---@return any v
---@return srv.Error? err  timeout
function Shared:wait(key, t) end

--- The value; if there is none, what FN(key) returns. One computes, the others wait; `nil, err` is not kept.
---@param key string
---@param ttl srv.Duration?
---@param fn fun(key: string): any, srv.Error?
---@return any v
---@return srv.Error? err
function Shared:get_or_compute(key, ttl, fn) end

---@class srv.BusModule
local bus = {}

--- To every subscriber of TOPIC, on every worker; with Redis on every machine.
---@param topic string
---@param v any
---@return true?
---@return srv.Error? err  too_large
function bus.publish(topic, v) end

---@param topic string  "room.*"
---@param opts { limit?: integer, overflow?: "drop"|"close" }?  256; "drop"
---@return srv.Subscription
function bus.subscribe(topic, opts) end

---@class srv.Subscription
---@field dropped integer  messages lost because nobody read them in time
local Subscription = {}

---@param t srv.Duration?
---@return any v
---@return string|srv.Error topic_or_err
function Subscription:receive(t) end

--- `for v, topic in sub:each() do`
---@return fun(): any, string
function Subscription:each() end

---@return srv.Subscription
function Subscription:close() end
