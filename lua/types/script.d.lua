---@meta srv.core.script
-- luacheck: ignore 212 241

--- What require() and the guard of globals need from C (src/bind/script.c).
---@class srv.core.script
---@field root string         the app's folder
---@field lua_folders string  of the system's modules in Lua, parted by ":"
---@field c_folders string    of those in C
local script = {}

--- The file's function; in errors a file of the app is named relative to its folder.
---@param path string
---@return function?
---@return string? message
function script.load(path) end

--- A function of a shared object; those of the app's folder are loaded from a copy of this VM's own.
---@param path string
---@param symbol string
---@return function?
---@return string? message
---@return boolean? only_missing  the object is fine, but has no such function
function script.native(path, symbol) end

--- A warning in the log.
---@param message string
---@param name string
---@param where string
function script.warn(message, name, where) end

return script
