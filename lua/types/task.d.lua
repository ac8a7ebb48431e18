---@meta srv.core.task
-- luacheck: ignore 212 241

--- Tasks (src/bind/ltask.c). Apps use srv.sleep, srv.spawn and the like (lua/srv/async/task.lua).
---
--- An *outcome* is what an ended task gave: true and its results; false, the error and its traceback;
--- nil and an error object.
local task = {}

---@param seconds number
function task.sleep(seconds) end

--- A child of the running task.
---@param fn function
---@return srv.core.task.Task
function task.spawn(fn, ...) end

--- A task that is nobody's child; its errors are logged.
---@param what "require"|"background"  for the log
---@param fn function
---@return srv.core.task.Task
function task.background(what, fn, ...) end

---@param handle srv.core.task.Task
---@return "running"|"done"|"failed"|"cancelled"
function task.state(handle) end

--- FN runs when the running task ends, with the cause.
---@param fn function
function task.defer(fn) end

--- As error(err, 0); TRACE stands before the traceback of this place.
---@param err any
---@param trace string?
function task.raise(err, trace) end

--- The stack from its caller's caller on, through all coroutines; of the error's own way too. For
--- message handlers, which are no part of it.
---@param err any
---@return string
function task.traceback(err) end

--- A message handler for who raises the error again.
function task.keep_trace(err) return err end

--- An error blamed on the innermost line that is not srv's own.
---@param message string
function task.misuse(message) end

--- Tells one request, timer or background task from another; nil outside of tasks.
---@return lightuserdata?
function task.scope() end

---@class srv.core.task.Task
task.Task = {}

---@param seconds number?
---@return boolean? ok
---@return any ...
function task.Task:wait(seconds) end

function task.Task:cancel() end

return task
