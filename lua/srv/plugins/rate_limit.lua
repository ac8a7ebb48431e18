--- srv.rate_limit (API, section 14): so many requests of a client in a window that begins with its first.
---
--- All workers count in one number, in shared memory or in Redis, so one atomic addition must tell both how
--- many there were and when the window ends: the whole is the end, in seconds, times COUNTS, plus the count. Who
--- begins a window adds its end; until that is there the window counts as new.
local cidr = require "srv.core.cidr"
local crypto = require "srv.core.crypto"
local env = require "srv.core.env"
local errors = require "srv.base.errors"
local factory = require "srv.base.factory"
local http = require "srv.core.http"
local log = require "srv.core.log"
local machines = require "srv.db.machines"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local shared = require "srv.async.shared"

local OPTIONS = { limit = "1..1000000", window = "duration", key = "function", cost = "any", name = "string" }

local COUNTS = 2 ^ 20
local LIMIT_MAX = 1000000      -- below COUNTS, with room for what is counted at once and given back
local KEY_BYTES_MAX = 256      -- longer ones stand as their hash: tokens begin alike
local STORE_BYTES = "16MiB"    -- some 100,000 clients; the least recently seen are forgotten first
local IPV6_BITS = 64           -- what one subscriber has at least
local WARN_SECONDS = 10

-- Counting --------------------------------------------------------------------------------------------

--- Where to count: shared memory, or with REDIS_URL what all machines share.
local function open_store()
  if machines.are_linked() then return require "srv.db.cache" end
  local store, err = shared.open("srv.rate_limit", { bytes = STORE_BYTES })
  return store or error(err, 0)
end

--- What costs nothing only looks: it begins no window.
local function add(store, key, cost, window)
  if cost > 0 then return store:incr(key, cost, window) end
  local value, err = store:get(key)
  return value or (not err and 0 or nil), err
end

--- Adds COST to the window of KEY.
---@return number? count
---@return number|srv.Error left  seconds until the window ends
local function count(store, key, cost, window)
  local value, err = add(store, key, cost, window)
  if not value then return nil, err end
  local now = env.now()
  if value >= COUNTS then
    return value % COUNTS, math.min(math.max(math.ceil(math.floor(value / COUNTS) - now), 0), window)
  end
  if value == cost and cost > 0 then store:incr(key, math.ceil(now + window) * COUNTS, window) end
  return value, window
end

--- Refused requests do not count: else they would run over into the window's end. If the window has ended
--- meanwhile there is nothing to give back, or the next one would begin with a credit.
local function give_back(store, key, cost, window)
  if cost == 0 then return end
  local value = store:incr(key, -cost, window)
  if value and value < 0 then store:delete(key) end
end

-- The plugin ------------------------------------------------------------------------------------------

local function client_of(req) return cidr.client(req.ip, IPV6_BITS) end

local function check_key(key)
  if key == nil then return nil end
  if type(key) ~= "string" and type(key) ~= "number" then
    errors.raise(500, "srv.rate_limit: a key is a string or a number, not a " .. type(key))
  end
  local text = tostring(key)
  return #text <= KEY_BYTES_MAX and text or crypto.hash("sha256", text, "base64url")
end

local function is_cost(v) return type(v) == "number" and v >= 0 and v % 1 == 0 and v <= LIMIT_MAX end

local function check_options(opts)
  opts = options.check("srv.rate_limit", opts, OPTIONS)
  if opts.window and opts.window < 1 then misuse "srv.rate_limit: window must be a second or more" end
  if opts.cost ~= nil and type(opts.cost) ~= "function" and not is_cost(opts.cost) then
    misuse "srv.rate_limit: cost must be a whole number, or a function of the request that gives one"
  end
  if opts.name and (opts.name == "" or opts.name:find '["\\%c\128-\255]') then
    misuse "srv.rate_limit: name must be plain text without quotes"
  end
  return opts, opts.limit or 60
end

--- Two limits count apart unless they have one name; in every worker the same line is the same limit.
local function prefix_of(opts, limit, window)
  return ("%s:%d:%d:"):format(opts.name or http.where(), limit, window)
end

local function cost_of(cost, req)
  if type(cost) ~= "function" then return cost end
  local value = cost(req)
  if not is_cost(value) then errors.raise(500, "srv.rate_limit: cost gave " .. tostring(value)) end
  return value
end

--- Nobody is refused because the counter cannot be reached.
local function warner()
  local quiet_until = 0
  return function(err)
    if env.monotonic() < quiet_until then return end
    quiet_until = env.monotonic() + WARN_SECONDS
    log.warn("rate limit cannot count", { err = err })
  end
end

---@class srv.RateLimitOptions
---@field limit integer?           60
---@field window number|string?    "1m"
---@field key (fun(req: srv.Request): string|number|nil)?  whom to count; nil: not at all
---@field cost integer|(fun(req: srv.Request): integer)?   1
---@field name string?             limits of one name count together

--- Answers 429 with Retry-After beyond `limit`; tells all others what is left.
---@param opts srv.RateLimitOptions?
---@return table plugin
return factory.name("srv.rate_limit", function(opts)
  local checked, limit = check_options(opts)
  local window = math.ceil(checked.window or 60)
  local key_of, cost, name = checked.key or client_of, checked.cost or 1, checked.name or "default"
  local prefix, policy = prefix_of(checked, limit, window), ('"%s"; q=%d; w=%d'):format(name, limit, window)
  local warn, store = warner(), nil

  return {
    name = "rate_limit",
    use = function(req, res, next)
      local key = check_key(key_of(req))
      if not key then return next() end
      store = store or open_store()
      local own_cost = cost_of(cost, req)
      local used, left = count(store, prefix .. key, own_cost, window)
      if not used then
        warn(left)
        return next()
      end
      res:append("RateLimit-Policy", policy)
      res:append("RateLimit", ('"%s"; r=%d; t=%d'):format(name, math.max(limit - used, 0), left))
      if used <= limit then return next() end
      give_back(store, prefix .. key, own_cost, window)
      errors.raise(429, "too many requests; try again later", { headers = { ["Retry-After"] = math.max(left, 1) } })
    end,
  }
end, '{ limit = 100 }')
