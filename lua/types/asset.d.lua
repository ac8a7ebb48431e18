---@meta srv.core.asset
-- luacheck: ignore 212 241

--- Files that the binary carries as they are (src/bind/lasset.c): pages/, templates/, lua/types/.
local asset = {}

---@param name string  "pages/bench.html"
---@return string? bytes
function asset.read(name) end

---@param prefix string  "templates/api/"
---@return string[] names
function asset.list(prefix) end

return asset
