---@meta srv.core.multipart
-- luacheck: ignore 212 241

--- Forms with files, of which srv.web.multipart makes fields and files (src/bind/lmultipart.c).
local multipart = {}

---@class srv.core.Part
---@field name string
---@field filename string?               safe; nil: no file
---@field type string?                   "image/png"
---@field unnamed boolean                a file whose name was sent as ""
---@field headers table<string, string>  by lower-case names

---@param content_type string
---@return userdata|false parser
---@return integer? status
---@return string? why
function multipart.new(content_type) end

--- nil: CHUNK is taken whole.
---@param parser userdata
---@param chunk string
---@param at integer  bytes of it that were taken before
---@return "part"|"data"|"end"|false|nil what
---@return integer at                       or the status
---@return srv.core.Part|string|nil value   or why
function multipart.next(parser, chunk, at) end

---@param parser userdata
---@return boolean
---@return integer? status
---@return string? why
function multipart.finish(parser) end

return multipart
