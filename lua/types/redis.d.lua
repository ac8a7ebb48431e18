---@meta srv.core.redis
-- luacheck: ignore 212 241

--- Redis for srv.redis, srv.cache and srv.bus (src/bind/lredis.c). Apps use those.
---
--- Misuse is raised, blamed on the innermost line that is not srv's own.
local redis = {}

---@class srv.core.redis.Client
local Client = {}

---@param command string
---@param ... string|number
---@return any reply
---@return srv.Error? err
function Client:call(command, ...) end

--- Commands side by side, in one write; what Redis refuses is an error object in the array.
---@param commands (string|number)[][]
---@return any[]? replies
---@return srv.Error? err
function Client:batch(commands) end

---@return string  "127.0.0.1:6379"
function Client:place() end

function Client:close() end

--- A connection that stays with the task from the first batch on, until LAST or the task's end.
---@class srv.core.redis.Lease
local Lease = {}

---@param client srv.core.redis.Client
---@param commands (string|number)[][]
---@param last boolean?
---@return any[]? replies
---@return srv.Error? err
function Lease:batch(client, commands, last) end

function Lease:close() end

---@class srv.core.redis.Subscription
local Subscription = {}

---@return true?
---@return srv.Error? err
function Subscription:confirm() end

---@param seconds number?
---@return string? text  nil alone: it was closed
---@return string|srv.Error channel_or_err
---@return string? pattern
function Subscription:receive(seconds) end

function Subscription:close() end

--- What other processes publish comes to srv.core.bus while this lives.
---@class srv.core.redis.Bus
local Bus = {}

---@param topic string
---@param v any
function Bus:publish(topic, v) end

---@return { hears: boolean, up: boolean, sent: integer, unsent: integer, heard: integer }
function Bus:stats() end

---@param url string
---@param options { timeout: number, connect: number, queue: integer, pool: integer }  milliseconds
---@return srv.core.redis.Client?
---@return srv.Error? err
function redis.open(url, options) end

---@return srv.core.redis.Lease
function redis.lease() end

---@param client srv.core.redis.Client
---@param is_pattern boolean
---@param words string[]
---@return srv.core.redis.Subscription
function redis.subscribe(client, is_pattern, words) end

---@param client srv.core.redis.Client
---@param prefix string  of the names of channels
---@return srv.core.redis.Bus
function redis.bus(client, prefix) end

--- A value as srv.cache keeps it in Redis.
---@param v any
---@param where string  begins messages of misuse
---@return string?
---@return srv.Error? err
function redis.encode(v, where) end

---@param bytes string
---@return any? v  nil: another version of srv has written it
function redis.decode(bytes) end

---@return { connections: integer, pending: integer, calls: integer, lost: integer }
function redis.stats() end

return redis
