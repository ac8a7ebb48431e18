--- Channels, events, semaphores and mutexes between tasks of one worker (API, section 7).
local core = require "srv.core.sync"
local core_task = require "srv.core.task"
local task = require "srv.async.task"

local misuse, seconds = core_task.misuse, task.seconds

local sync = {}

local function check_count(where, n, least)
  if type(n) ~= "number" or n < least or n % 1 ~= 0 or n > 2 ^ 30 then
    misuse(("%s: a whole number from %d on was expected, not %s"):format(where, least, tostring(n)))
  end
  return n
end

-- Channels -------------------------------------------------------------------------------------------

---@class srv.Channel
local Channel = core.Channel
local send, receive = Channel.send, Channel.receive

--- True when somebody has it, or it has a place; waits until then.
---@param v any  not nil
---@param t number|string|nil
---@return true?
---@return srv.Error? err  closed, timeout
function Channel:send(v, t)
  if v == nil then misuse "channel:send: nil cannot be sent, it would read as the end" end
  return send(self, v, seconds("channel:send", t))
end

---@param t number|string|nil
---@return any? v
---@return srv.Error? err  closed, timeout
function Channel:receive(t)
  return receive(self, seconds("channel:receive", t))
end

--- `for v in channel:each() do`, until it is closed and empty.
function Channel:each()
  return function() return (receive(self)) end
end

--- A channel with room for N values that nobody has taken yet; 0: sender and receiver meet.
---@param n integer?
---@return srv.Channel
function sync.channel(n)
  return core.channel(check_count("srv.channel", n or 0, 0))
end

-- Events ---------------------------------------------------------------------------------------------

---@class srv.Event
local Event = core.Event
local wait = Event.wait

---@param t number|string|nil
---@return true?
---@return srv.Error? err  timeout
function Event:wait(t)
  return wait(self, seconds("event:wait", t))
end

---@return srv.Event
function sync.event() return core.event() end

-- Semaphores and mutexes -----------------------------------------------------------------------------

--- Gives the permit back and passes the function's values or error on.
local function done(give_back, self, ok, ...)
  give_back(self)
  if ok then return ... end
  error((...), 0)
end

--- FN runs while we hold one; a cancelled task's is given back by itself.
local function with(take, give_back, where)
  return function(self, fn, ...)
    if type(fn) ~= "function" then misuse(where .. ": a function was expected, not a " .. type(fn)) end
    take(self)
    return done(give_back, self, xpcall(fn, core_task.keep_trace, ...))
  end
end

---@class srv.Semaphore
local Semaphore = core.Semaphore
local acquire = Semaphore.acquire

---@param t number|string|nil
---@return true?
---@return srv.Error? err  timeout
function Semaphore:acquire(t)
  return acquire(self, seconds("semaphore:acquire", t))
end

Semaphore.with = with(acquire, Semaphore.release, "semaphore:with")

---@param n integer
---@return srv.Semaphore
function sync.semaphore(n)
  return core.semaphore(check_count("srv.semaphore", n, 1))
end

---@class srv.Mutex
local Mutex = core.Mutex
local lock = Mutex.lock

---@param t number|string|nil
---@return true?
---@return srv.Error? err  timeout
function Mutex:lock(t)
  return lock(self, seconds("mutex:lock", t))
end

Mutex.with = with(lock, Mutex.unlock, "mutex:with")

---@return srv.Mutex
function sync.mutex() return core.mutex() end

return sync
