---@meta srv.core.gzip
-- luacheck: ignore 212 241

--- Compression for commands that write pages (src/bind/lgzip.c); apps have the plugin `compress`.
local gzip = {}

--- Blocks while it works.
---@param text string
---@return string? bytes  nil: no memory
function gzip.pack(text) end

return gzip
