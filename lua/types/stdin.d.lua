---@meta srv.core.stdin
-- luacheck: ignore 212 241

--- The standard input of a command (src/bind/lstdin.c), read by a thread of the pool.
local stdin = {}

---@return string? bytes  nil: the end, or an error
---@return srv.Error?
function stdin.read() end

return stdin
