---@meta srv.core.dict
-- luacheck: ignore 212 241

--- Shared dictionaries (src/bind/ldict.c). Apps use srv.shared and srv.cache (lua/srv/async/shared.lua),
--- which add get_or_compute. Times are seconds or texts like "5m"; misuse is raised at the caller's line.
local dict = {}

--- The dictionary NAME of the process, made with BYTES (0: the default) if there is none, and what it has.
---@param name string
---@param bytes integer
---@return srv.Shared?
---@return integer|srv.Error bytes_or_err
function dict.open(name, bytes) end

---@class srv.Shared
dict.Dict = {}

---@param key string
---@return any? v
function dict.Dict:get(key) end

---@param key string
---@param v any  not nil
---@param ttl number|string|nil
---@return true?
---@return srv.Error? err  too_large
function dict.Dict:set(key, v, ttl) end

--- False: there is a value already.
---@param key string
---@param v any  not nil
---@param ttl number|string|nil
---@return boolean?
---@return srv.Error? err  too_large
function dict.Dict:add(key, v, ttl) end

--- False: there is none.
---@param key string
---@param v any  not nil
---@param ttl number|string|nil
---@return boolean?
---@return srv.Error? err  too_large
function dict.Dict:replace(key, v, ttl) end

---@param key string
---@return boolean there_was_one
function dict.Dict:delete(key) end

--- TTL is for a number that is not there yet.
---@param key string
---@param by number?
---@param ttl number|string|nil
---@return number? sum
---@return srv.Error? err
function dict.Dict:incr(key, by, ttl) end

--- NEW stands in the place of OLD, or false; nil is no value.
---@param key string
---@param old any
---@param new any
---@return boolean?
---@return srv.Error? err  too_large
function dict.Dict:cas(key, old, new) end

--- The value after the next change; with SEEN, also nil, at once if it is another by now.
---@param key string
---@param t number|string|nil
---@param seen any
---@return any? v
---@return srv.Error? err  timeout, busy
function dict.Dict:wait(key, t, seen) end

--- The right to compute KEY; true: look again, there may be a value.
---@param key string
---@return srv.core.dict.Lease|true|nil
---@return srv.Error? err  busy
function dict.Dict:claim(key) end

---@class srv.core.dict.Lease
dict.Lease = {}

--- False: it was held too long, and somebody else computes.
---@return boolean
function dict.Lease:holds() end

--- What was computed is there by now, or one of those who wait may compute.
function dict.Lease:give_back() end

return dict
