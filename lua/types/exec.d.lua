---@meta srv.core.exec
-- luacheck: ignore 212 241

--- What srv.async.exec makes srv.exec of (src/bind/lexec.c).
local exec = {}

---@param argv string[]
---@param cwd string
---@param env string[]?  "NAME=value"; nil: as ours
---@param has_input boolean
---@return userdata? process
---@return srv.Error?
function exec.start(argv, cwd, env, has_input) end

---@param process userdata
---@param which "stdout"|"stderr"
---@param bytes integer
---@return string?, srv.Error?
function exec.read(process, which, bytes) end

---@param process userdata
---@param which "stdin"
---@param s string
---@return true?, srv.Error?
function exec.write(process, which, s) end

---@param process userdata
---@param which "stdin"|"stdout"|"stderr"
function exec.close(process, which) end

---@param process userdata
---@param which "stdin"|"stdout"|"stderr"
---@return boolean
function exec.is_busy(process, which) end

---@param process userdata
---@param seconds number?
---@return integer|string|nil, srv.Error?
function exec.wait(process, seconds) end

---@param process userdata
---@param signal string
---@return boolean
function exec.kill(process, signal) end

---@param process userdata
---@return integer
function exec.pid(process) end

---@return table<string, string>
function exec.environ() end

return exec
