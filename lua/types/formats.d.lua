---@meta srv.core.formats
-- luacheck: ignore 212 241

--- What a text is that claims to be an address, a date or an identifier (src/base/format.h).
---@class srv.core.formats
local formats = {}

---@param text string
---@return boolean
function formats.host(text) end
---@param text string
---@return boolean
function formats.ipv4(text) end
---@param text string
---@return boolean
function formats.ipv6(text) end
---@param text string
---@return boolean
function formats.email(text) end
---@param text string
---@return boolean
function formats.url(text) end
---@param text string
---@return boolean
function formats.date(text) end
---@param text string
---@return boolean
function formats.time(text) end
---@param text string
---@return boolean
function formats.datetime(text) end
---@param text string
---@return boolean
function formats.uuid(text) end
---@param text string
---@return boolean
function formats.slug(text) end
---@param text string
---@return boolean
function formats.hex(text) end
---@param text string
---@return boolean
function formats.base64(text) end

return formats
