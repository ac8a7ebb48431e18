---@meta _
-- luacheck: ignore 212 241 631

--- A line with fields; the request id comes by itself.
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

--- The same, with FIELDS on each line.
---@param fields table<string, any>
---@return srv.Log
function log.with(fields) end

--- `srv.env.NAME`, or checked by a rule: `srv.env("LIMIT", "integer 1..64 = 4")`.
---@class srv.EnvModule
---@field [string] string?
---@overload fun(name: string, rule?: srv.Rule): any

---@class srv.Config
---@field host string
---@field port integer
---@field workers integer
---@field dev boolean
---@field timeout number         seconds
---@field drain_timeout number   seconds
---@field body_limit integer     bytes
---@field [string] any           the others of `srv --help`
