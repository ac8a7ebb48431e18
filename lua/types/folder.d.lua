---@meta srv.core.folder
-- luacheck: ignore 212 241

--- What lies in a folder of the app (src/bind/lfolder.c).
---@class srv.core.folder
local folder = {}

--- The files below PATH, relative to it, in no order. Hidden ones are left out; links are followed, but not back to
--- where one came from, nor to the folder WITHIN, in which PATH lies. Blocks: for what is read while an app loads.
---@param path string
---@param within string?
---@return string[]? names
---@return srv.Error? err  not_found, fs
function folder.files(path, within) end

--- Whether it is a folder, and no link, of this user's that is closed to others.
---@param path string
---@return boolean
function folder.is_private(path) end

--- Changes when the file does; nil where there is none. Asks the kernel, at once.
---@param path string
---@return string?
function folder.version(path) end

--- Edits of this file or folder, which may be below the app's, load the app anew.
---@param path string
function folder.watch(path) end

return folder
