---@meta srv.core.json
-- luacheck: ignore 212 241

--- JSON (src/bind/ljson.c). Apps use srv.json and srv.null.
local json = {
  null = nil,       ---@type lightuserdata  true as a condition, the same in all VMs
  object_mark = {}, ---@type table  the metatable of what is an object, also when it is empty
  array_mark = {},  ---@type table
}

---@param v any
---@param pretty boolean?
---@return string|false|nil text  nil: misuse; false: a __tojson is in it, which is Lua's to call
---@return string? message
function json.encode(v, pretty) end

---@param text string
---@param depth integer?    64
---@param strict boolean?   objects and arrays only
---@return any v
---@return srv.Error? err  bad_json
function json.decode(text, depth, strict) end

---@generic T: table
---@param t T
---@param order string[]?  of its keys, in the text
---@return T
function json.object(t, order) end

---@generic T: table
---@param t T
---@return T
function json.array(t) end

--- Whether encode() would make one of it.
---@param v any
---@return boolean
function json.is_object(v) end

---@param v any
---@return boolean
function json.is_array(v) end

return json
