---@meta srv.core.fs_file
-- luacheck: ignore 212 241

--- Open files, of which srv.async.file makes readers (src/bind/lfs_file.c).
local file = {}

---@param path string
---@param mode string
---@return userdata? file
---@return srv.Error?
function file.open(path, mode) end

---@param suffix string
---@param of_root boolean?  it ends with the request, not with the task
---@return userdata? file
---@return string|srv.Error path
function file.temp(suffix, of_root) end

---@param handle userdata
---@param bytes integer
---@return string?, srv.Error?
function file.read(handle, bytes) end

---@param handle userdata
---@param s string
---@return true?, srv.Error?
function file.write(handle, s) end

---@param handle userdata
---@param whence "set"|"cur"|"end"
---@param offset integer
---@return integer?, srv.Error?
function file.seek(handle, whence, offset) end

---@param handle userdata
---@return true?, srv.Error?
function file.close(handle) end

---@param handle userdata
---@return boolean  a call of another task is under way
function file.is_busy(handle) end

return file
