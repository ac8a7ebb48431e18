---@meta srv.core.log
-- luacheck: ignore 212 241

--- srv.log (src/bind/llog.c): a line with fields. The request id comes by itself; what is called `password`,
--- `token`, `secret`, `authorization` or `cookie` is masked.
---@class srv.Log
local log = {}

---@param message string
---@param fields table<string, any>?
function log.trace(message, fields) end

---@param message string
---@param fields table<string, any>?
function log.debug(message, fields) end

---@param message string
---@param fields table<string, any>?
function log.info(message, fields) end

---@param message string
---@param fields table<string, any>?
function log.warn(message, fields) end

---@param message string
---@param fields table<string, any>?
function log.error(message, fields) end

---@param message string
---@param fields table<string, any>?
function log.fatal(message, fields) end

--- The same functions, with FIELDS in each line.
---@param fields table<string, any>
---@return srv.Log
function log.with(fields) end

--- Whether a line of this level would be written.
---@param level "trace"|"debug"|"info"|"warn"|"error"|"fatal"
---@return boolean
function log.wants(level) end

--- For srv.test: FN gets each line of this VM; nil: nobody.
---@param fn fun(level: string, message: string, fields: table?)?
function log.tap(fn) end

--- What the global `print` is: a line of level info.
---@param ... any
function log.print(...) end

return log
