--- Whose turn a timer of the app is, where several machines run it: with REDIS_URL, one of them takes
--- each run. lua/srv/web/timer.lua asks, since it may not know databases; lua/srv/boot.lua introduces
--- the two.
---
--- A run at a fixed time (cron) is one key, by that time: whoever sets it first runs. A run by an interval
--- holds its key for most of the interval, since machines count from different moments. While a run
--- lasts it holds another key, which is renewed, so that no machine begins the next before its end.
local async = require "srv.async.task"
local crypto = require "srv.core.crypto"
local log = require "srv.core.log"
local machines = require "srv.db.machines"

local turns = {}

local CRON_KEPT_MS = 300000      -- longer than clocks of machines may differ
local SHARE_OF_INTERVAL = 0.9    -- the holder's own next run must find its key gone
local RUNNING_MS, RENEW = 10000, 3

local RENEW_SCRIPT = [[
if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end
return 0]]
local END_SCRIPT = [[
if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end
return 0]]

local function key_of(kind, name) return ("%stimer:%s:%s"):format(machines.prefix(), kind, name) end

--- Whether we are the first. Nobody runs while Redis is away: twice is worse than late.
local function set_first(key, token, ms)
  local ok, err = machines.redis():set(key, token, "NX", "PX", math.max(1, math.floor(ms)))
  if err then log.warn("timer skipped: Redis cannot say whose turn it is", { err = err }) end
  return ok == "OK"
end

local function renew(key, token)
  local script = machines.redis():script(RENEW_SCRIPT)
  while true do
    async.sleep(RENEW)
    script:call({ key }, { token, RUNNING_MS })
  end
end

--- RUN while nobody else does. A child of this task renews the claim, and ends with it.
local function run_alone(name, token, run)
  local key = key_of("running", name)
  if not set_first(key, token, RUNNING_MS) then return end
  async.spawn(function()
    async.defer(function() machines.redis():script(END_SCRIPT):call({ key }, { token }) end)
    async.spawn(renew, key, token)
    run()
  end):wait()
end

--- Runs RUN if it is our turn.
---@param name string       the timer's, the same on all machines
---@param at number?        when it was due, of a cron expression
---@param interval number?  seconds, of the others
---@param overlap boolean?  may begin while the last run still lasts
---@param run fun()
function turns.take(name, at, interval, overlap, run)
  local token = crypto.random(16, "hex")
  local ours
  if at then
    ours = set_first(key_of(("%d"):format(at), name), token, CRON_KEPT_MS)
  else
    ours = set_first(key_of("every", name), token, interval * 1000 * SHARE_OF_INTERVAL)
  end
  if not ours then return end
  if overlap then return run() end
  run_alone(name, token, run)
end

--- Makes TIMER ask, where machines are linked.
---@param timer { take_turn: function? }  srv.web.timer
function turns.introduce(timer)
  if machines.are_linked() then timer.take_turn = turns.take end
end

return turns
