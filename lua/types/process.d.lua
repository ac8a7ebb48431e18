---@meta srv.core.process
-- luacheck: ignore 212 241

--- What the system tells of processes (src/bind/lprocess.c), for commands that start servers.
local process = {}

--- Where it and all that it has started listen. Blocks for a moment.
---@param pid integer
---@return integer[] ports
function process.ports(pid) end

--- The binary that runs this.
---@return string? path
function process.program() end

return process
