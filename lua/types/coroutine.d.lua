---@meta srv.core.coroutine
-- luacheck: ignore 212 241

--- Coroutines that may wait inside (src/vm/coroutine.c); lua/srv/async/coroutine.lua puts them in the
--- place of Lua's own.
local core = {}

---@param co thread
---@return boolean ok
---@return any ...
function core.resume(co, ...) end

--- As resume(), but nil and a message where CO cannot be resumed.
---@param co thread
---@return boolean? ok
---@return any ...
function core.step(co, ...) end

---@param co thread
---@return "running"|"suspended"|"normal"|"dead"
function core.status(co) end

---@return thread?
function core.running() end

--- Raises on a task's own level, where nobody takes what is yielded.
---@return any ...
function core.yield(...) end

--- Whether a wait would pass from here up to the task.
---@return boolean
function core.can_wait() end

return core
