--- srv.cache (API, section 10): in shared memory, and with REDIS_URL in Redis, for all machines. Methods
--- and what they mean are those of srv.shared. In Redis each of them may wait and may fail
--- (`unavailable`, `timeout`): then get gives nil, which is a miss to who does not look further.
---
--- One task of each process asks Redis for the right to compute a value, the others wait in memory. While
--- Redis is away get_or_compute keeps what it has computed in memory, for a second.
local async = require "srv.async.task"
local core = require "srv.core.redis"
local crypto = require "srv.core.crypto"
local env = require "srv.core.env"
local errors = require "srv.base.errors"
local local_cache = require "srv.async.cache"
local log = require "srv.core.log"
local machines = require "srv.db.machines"
local misuse = require "srv.core.task".misuse
local units = require "srv.base.units"

if not machines.are_linked() then return local_cache end

local KEY_BYTES_MAX = 4096
local AWAY_TTL = 1          -- seconds that a value is kept in memory while Redis is away
local LEASE_MS = 10000      -- the right to compute, if its holder's machine dies; a longer fn may run twice
local POLL_FIRST, POLL_MAX = 0.01, 0.2

local redis = machines.redis()
local VALUES, LEASES = machines.prefix() .. "cache:", machines.prefix() .. "lease:"
-- In the local dictionary: who of this process is about to compute. No key of an app begins so.
local COMPUTING = "\0computing:"

---@class srv.RedisCache: srv.Shared
local Cache = { __name = "srv.RedisCache" }
Cache.__index = Cache

-- Arguments --------------------------------------------------------------------------------------------------

local function check_key(where, key)
  if type(key) ~= "string" and type(key) ~= "number" then misuse(where .. ": a key is a string") end
  if #tostring(key) > KEY_BYTES_MAX then
    misuse(("%s: a key has at most %d bytes: use a hash of what is longer"):format(where, KEY_BYTES_MAX))
  end
  return VALUES .. key
end

--- Milliseconds, or nothing.
local function check_ttl(where, ttl)
  if ttl == nil then return nil end
  local seconds = units.duration(ttl)
  if not seconds or seconds == 0 then
    misuse(where .. ': the time to live is a number of seconds above 0 or a text like "5m"; without one a value '
      .. "is kept until room is needed")
  end
  return math.max(1, math.ceil(seconds * 1000))
end

local function encode(where, v)
  if v == nil then misuse(where .. ": nil cannot be kept: shared:delete(key) takes a value away") end
  return core.encode(v, where)
end

local function decode(bytes) return bytes and core.decode(bytes) end

-- Values -----------------------------------------------------------------------------------------------------

---@param key string
---@return any? v  nil: there is none
---@return srv.Error? err
function Cache:get(key)
  local bytes, err = redis:get(check_key("shared:get", key))
  if err then return nil, err end
  return decode(bytes)
end

local function store(where, key, v, ttl, condition)
  local name, ms = check_key(where, key), check_ttl(where, ttl)
  local bytes, err = encode(where, v)
  if not bytes then return nil, err end
  local words = { name, bytes }
  if ms then words[3], words[4] = "PX", ms end
  words[#words + 1] = condition
  return redis:set(unpack(words))
end

---@param key string
---@param v any
---@param ttl number|string|nil
---@return true?
---@return srv.Error? err
function Cache:set(key, v, ttl)
  local ok, err = store("shared:set", key, v, ttl)
  return ok and true, err
end

--- Only if there is none.
---@param key string
---@param v any
---@param ttl number|string|nil
---@return boolean?
---@return srv.Error? err
function Cache:add(key, v, ttl)
  local ok, err = store("shared:add", key, v, ttl, "NX")
  if err then return nil, err end
  return ok ~= nil
end

--- Only if there is one.
---@param key string
---@param v any
---@param ttl number|string|nil
---@return boolean?
---@return srv.Error? err
function Cache:replace(key, v, ttl)
  local ok, err = store("shared:replace", key, v, ttl, "XX")
  if err then return nil, err end
  return ok ~= nil
end

---@param key string
---@return boolean? was_there
---@return srv.Error? err
function Cache:delete(key)
  local count, err = redis:del(check_key("shared:delete", key))
  if err then return nil, err end
  return count == 1
end

-- A time to live counts from the first incr, and stays.
local INCR = redis:script [[
local fresh = redis.call("EXISTS", KEYS[1]) == 0
local sum = redis.call("INCRBYFLOAT", KEYS[1], ARGV[1])
if fresh and ARGV[2] ~= "" then redis.call("PEXPIRE", KEYS[1], ARGV[2]) end
return sum]]

---@param key string
---@param by number?  1
---@param ttl number|string|nil  of one that was not there
---@return number? sum
---@return srv.Error? err
function Cache:incr(key, by, ttl)
  local name, ms = check_key("shared:incr", key), check_ttl("shared:incr", ttl)
  if by ~= nil and (type(by) ~= "number" or by ~= by) then misuse "shared:incr: what is added is a number" end
  local sum, err = INCR:call({ name }, { by or 1, ms or "" })
  if err and err.message:find("not a valid float", 1, true) then
    misuse "shared:incr: what is kept under this key is no number"
  end
  if not sum then return nil, err end
  return tonumber(sum)
end

-- Numbers are compared as numbers: Redis writes sums in its own way.
local CAS = redis:script [[
local now = redis.call("GET", KEYS[1])
local same
if ARGV[1] == "0" then
  same = not now
else
  same = now == ARGV[2] or (now and tonumber(now) ~= nil and tonumber(now) == tonumber(ARGV[2]))
end
if not same then return 0 end
if ARGV[3] == "0" then redis.call("DEL", KEYS[1]) else redis.call("SET", KEYS[1], ARGV[4], "KEEPTTL") end
return 1]]

--- NEW if what is there equals OLD; nil stands for no value. The time to live stays.
---@param key string
---@param old any
---@param new any
---@return boolean?
---@return srv.Error? err
function Cache:cas(key, old, new)
  local name = check_key("shared:cas", key)
  local before, after, err = "", "", nil
  if old ~= nil then before, err = encode("shared:cas", old) end
  if before and new ~= nil then after, err = encode("shared:cas", new) end
  if not before or not after then return nil, err end
  local done, fault = CAS:call({ name }, { old == nil and 0 or 1, before, new == nil and 0 or 1, after })
  if not done then return nil, fault end
  return done == 1
end

-- Waiting ----------------------------------------------------------------------------------------------------

--- The value after the next change; with SEEN (nil too) at once if it differs from that. Redis is asked
--- every 10 to 200 ms: what was changed and changed back between is not seen.
---@param key string
---@param t number|string|nil
---@param ... any  seen
---@return any? v
---@return srv.Error? err  timeout, unavailable
function Cache:wait(key, t, ...)
  local name, limit = check_key("shared:wait", key), async.seconds("shared:wait", t)
  local seen, looks, err = ..., select("#", ...) > 0, nil
  if seen ~= nil then seen, err = encode("shared:wait", seen) end
  if not looks then seen, err = redis:get(name) end
  if err then return nil, err end
  local ends, pause = limit and env.monotonic() + limit, POLL_FIRST
  while true do
    local bytes, fault = redis:get(name)
    if fault then return nil, fault end
    if bytes ~= seen then return decode(bytes) end
    local left = ends and ends - env.monotonic() or pause
    if left <= 0 then return nil, errors.coded("timeout", "the value did not change in time") end
    async.sleep(math.min(pause, left))
    pause = math.min(pause * 2, POLL_MAX)
  end
end

-- Computing --------------------------------------------------------------------------------------------------

local GIVE_BACK = redis:script [[
if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end
return 0]]

--- Waits until this machine may compute; a value instead, if another one had it first. Nobody is kept
--- from computing by a Redis that is away.
local function claim_of_all(self, key, token)
  local pause = POLL_FIRST
  while true do
    local ok, err = redis:set(LEASES .. key, token, "NX", "PX", LEASE_MS)
    local v = self:get(key)
    if v ~= nil or ok or err then return v end
    async.sleep(pause)
    pause = math.min(pause * 2, POLL_MAX)
  end
end

local function keep(self, key, v, ttl)
  local ok, err = self:set(key, v, ttl)
  if not ok then log.warn("computed value is not kept", { key = key, err = err }) end
end

--- In a task of its own, whose end gives back what it holds, however it comes.
local function compute(self, key, ttl, fn)
  local place = COMPUTING .. crypto.hash("sha256", tostring(key), "raw") -- no longer than a key may be
  while true do
    local lease, err = local_cache:claim(place)
    if lease == nil then return nil, err end
    local v
    if lease == true then
      v = self:get(key)
      if v ~= nil then return v end
    else
      local token = crypto.random(16, "hex")
      async.defer(function() GIVE_BACK:call({ LEASES .. key }, { token }) end)
      v = claim_of_all(self, key, token)
      if v ~= nil then return v end
      v, err = fn(key)
      if v ~= nil then keep(self, key, v, ttl) end
      return v, err
    end
  end
end

--- The value under KEY; if there is none, what FN(key) returns, which is kept for TTL. One computes at
--- a time, of all machines; the others wait for it. `nil, err` is not kept: the next one tries.
---@param key string
---@param ttl number|string|nil
---@param fn fun(key: string): any, srv.Error?
---@return any? v
---@return srv.Error? err
function Cache:get_or_compute(key, ttl, fn)
  if type(fn) ~= "function" then misuse("shared:get_or_compute: a function was expected, not a " .. type(fn)) end
  local ms = check_ttl("shared:get_or_compute", ttl)
  local v, err = self:get(key)
  if v ~= nil then return v end
  if err then
    return local_cache:get_or_compute(key, math.min(ms and ms / 1000 or AWAY_TTL, AWAY_TTL), fn)
  end
  return async.spawn(compute, self, key, ttl, fn):wait()
end

return setmetatable({}, Cache)
