---@meta srv.core.terminal
-- luacheck: ignore 212 241

--- What is asked of a terminal (src/bind/lterminal.c); lua/srv/cli/terminal.lua draws on it.
local terminal = {}

---@param fd integer
---@return boolean
function terminal.is_terminal(fd) end

---@param fd integer
---@return integer? columns
function terminal.width(fd) end

return terminal
