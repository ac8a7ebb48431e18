---@meta srv.core.fs
-- luacheck: ignore 212 241

--- What srv.async.fs checks the arguments of (src/bind/lfs.c). Each call gives nil and an error when the
--- world does not let it.
local fs = {}

---@param path string
---@param limit integer
---@return string?, srv.Error?
function fs.read(path, limit) end

---@param path string
---@return srv.FileStat?, srv.Error?
function fs.stat(path) end

---@param path string
---@return string[]?, srv.Error?
function fs.list(path) end

---@param path string
---@param s string
---@return true?, srv.Error?
function fs.write(path, s) end

---@param path string
---@param s string
---@return true?, srv.Error?
function fs.append(path, s) end

---@param path string
---@return true?, srv.Error?
function fs.mkdir(path) end

---@param path string
---@param recursive boolean?
---@return true?, srv.Error?
function fs.remove(path, recursive) end

---@param from string
---@param to string
---@return true?, srv.Error?
function fs.rename(from, to) end

---@param from string
---@param to string
---@param as_new boolean?  it gets a new file's mode, or keeps its own
---@return true?, srv.Error?
function fs.copy(from, to, as_new) end

---@param path string
---@return true?, srv.Error?
function fs.touch(path) end

return fs
