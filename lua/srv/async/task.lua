--- Waiting (API, section 7): srv.sleep, spawn, all, map, race, timeout, defer.
---
--- Each function runs in a task that is a child of the caller's. C (srv.core.task) starts them and
--- tells how they ended; here is what that means.
local core = require "srv.core.task"
local core_group = require "srv.core.group"
local errors = require "srv.base.errors"
local options = require "srv.base.options"
local trace = require "srv.base.trace"
local units = require "srv.base.units"

local type, select, unpack = type, select, unpack
local misuse = core.misuse
local new_group, start, room, gather = core_group.new, core_group.start, core_group.room, core_group.gather
local next_end, cancel = core_group.next, core_group.cancel

local task = {}

local MAP_LIMIT = 8
local MAP_OPTIONS = { limit = "1.." }

-- Arguments ------------------------------------------------------------------------------------------

--- Seconds of a duration; nil stays nil.
---@param where string  the function, for the message
---@param t number|string|nil
---@return number?
local function seconds(where, t)
  if t == nil or type(t) == "number" and t >= 0 then return t end
  return units.duration(t)
    or misuse(('%s: %s is no duration: give seconds or a text like "250ms"'):format(where, tostring(t)))
end
task.seconds = seconds

local function is_callable(f)
  if type(f) == "function" then return true end
  local meta = getmetatable(f)
  return type(meta) == "table" and meta.__call ~= nil
end

local function check_function(where, f)
  if not is_callable(f) then misuse(("%s: a function was expected, not a %s"):format(where, type(f))) end
end

-- One task -------------------------------------------------------------------------------------------

--- Waits, and lets others run: `srv.sleep("250ms")`.
---@param t number|string
function task.sleep(t)
  return core.sleep(seconds("srv.sleep", t) or misuse "srv.sleep: for how long?")
end

--- A function for the end of the task, however it comes; the last one runs first.
---@param fn fun(err: srv.Error?)
function task.defer(fn)
  check_function("srv.defer", fn)
  return core.defer(fn)
end

--- From an outcome (bind/ltask.h) to what a caller gets.
local function values(ok, ...)
  if ok then return ... end
  if ok == false then return core.raise(...) end
  return nil, (...)
end

---@class srv.Task
---@field state "running"|"done"|"failed"|"cancelled"
local Task, methods = core.Task, {}
local wait, state = Task.wait, core.state

function Task:__index(key)
  if key == "state" then return state(self) end
  return methods[key]
end

--- What the function returned; raises what it raised; nil and an error if it was cancelled, or is
--- not over in time.
---@param t number|string|nil
function methods:wait(t)
  return values(wait(self, seconds("task:wait", t)))
end

methods.cancel = Task.cancel

--- Starts FN at our next wait.
---@param fn function
---@param ... any  its arguments
---@return srv.Task
function task.spawn(fn, ...)
  check_function("srv.spawn", fn)
  return core.spawn(fn, ...)
end

-- Several --------------------------------------------------------------------------------------------

--- Cancels the rest and waits until they are gone.
local function finish(group)
  cancel(group)
  while next_end(group) do end
end

--- `{ f, g }` is f with the argument g; whoever means both has an array of functions in mind.
local function check_arguments(where, spec)
  for i = 2, #spec do
    if type(spec[i]) ~= "function" then return end
  end
  if #spec > 1 then
    misuse(("%s: { f, g } calls f with g as its argument: give %s(f, g), or %s(unpack(list))"):format(where, where, where))
  end
end

--- Holds each of "a function, or { function, arguments... }" to what it should be, before one is started.
local function check_functions(where, count, ...)
  for i = 1, count do
    local spec = select(i, ...)
    if type(spec) == "table" and not is_callable(spec) then
      if count == 1 then check_arguments(where, spec) end
      spec = spec[1]
    end
    check_function(where, spec)
  end
end

local function start_all(group, count, ...)
  for i = 1, count do
    local spec = select(i, ...)
    if type(spec) == "table" and not is_callable(spec) then
      start(group, i, unpack(spec, 1, spec.n or #spec))
    else
      start(group, i, spec)
    end
  end
end

--- From what gather() gives to the values in an array, or nil and an error.
local function gathered(ok, found, err, ...)
  if ok == false then return core.raise(found, err, ...) end
  if ok then return found, err end
  return nil, found
end

--- Runs all at once; the first value of each. The first error or `nil, err` cancels the others.
function task.all(...)
  local count = select("#", ...)
  check_functions("srv.all", count, ...)
  local group = new_group(count, count)
  start_all(group, count, ...)
  local results, err = gathered(gather(group))
  if results == nil then return nil, err end
  return unpack(results, 1, count)
end

local function map_limit(opts)
  return opts and options.check("srv.map", opts, MAP_OPTIONS).limit or MAP_LIMIT
end

--- fn(item) for each, `limit` at once; the first value of each, in order. Ends as `all` does.
---@param items any[]
---@param fn fun(item: any): any
---@param opts { limit: integer? }?
---@return any[]? results
---@return srv.Error? err
function task.map(items, fn, opts)
  if type(items) ~= "table" then misuse("srv.map: an array was expected, not a " .. type(items)) end
  check_function("srv.map", fn)
  local count, limit = #items, map_limit(opts)
  local group = new_group(limit < count and limit or count, count)
  for i = 1, count do
    if i > limit and not room(group) then break end
    start(group, i, fn, items[i])
  end
  return gathered(gather(group))
end

local function won(group, _, ...)
  finish(group)
  return values(...)
end

--- What the first to end gives or raises; the others are cancelled.
function task.race(...)
  local count = select("#", ...)
  if count == 0 then misuse "srv.race: nobody would ever win" end
  check_functions("srv.race", count, ...)
  local group = new_group(count)
  start_all(group, count, ...)
  return won(group, next_end(group))
end

local function in_time(group, fn, limit, index, ...)
  if index then return values(...) end
  finish(group)
  local place = trace.place_of(fn)
  return nil, errors.coded("timeout", ("%s was not over within %s"):format(
    place and "the function at " .. place or "this", units.duration_text(limit)))
end

--- fn's values, or nil and a `timeout` error when it takes longer.
---@param t number|string
---@param fn function
---@param ... any  its arguments
function task.timeout(t, fn, ...)
  local limit = seconds("srv.timeout", t) or misuse "srv.timeout: after how long?"
  check_function("srv.timeout", fn)
  local group = new_group(1)
  start(group, 1, fn, ...)
  return in_time(group, fn, limit, next_end(group, limit))
end

return task
