--- What srv.cache, srv.bus and timers of several machines have in common: REDIS_URL names the server,
--- and REDIS_PREFIX keeps apps apart that share one.
local env = require "srv.core.env"
local redis = require "srv.db.redis"

local machines = {}

-- A cache that takes longer is none.
local TIMEOUT = 2

--- Whether there is a Redis that links them.
---@return boolean
function machines.are_linked()
  local url = env.getenv "REDIS_URL"
  return url ~= nil and url ~= ""
end

--- What goes before the names of all keys and channels that srv itself makes.
---@return string
function machines.prefix()
  local prefix = env.getenv "REDIS_PREFIX"
  return prefix and prefix ~= "" and prefix or "srv:"
end

local handle

--- This VM's handle.
---@return srv.Redis
function machines.redis()
  handle = handle or redis.open(nil, { timeout = TIMEOUT })
  return handle
end

return machines
