---@meta srv.core.error
-- luacheck: ignore 212 241

--- What C and Lua share of error objects (src/bind/lerror.c). Apps use srv.error.
local core = {
  metatable = {}, ---@type table  of all error objects
}

---@param code string
---@return integer  the status that one of srv's own codes stands for; 500 for an unknown one
function core.status_of(code) end

---@param status integer
---@return string  "Not Found"
function core.reason(status) end

return core
