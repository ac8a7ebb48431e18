---@meta srv.core.migrations
-- luacheck: ignore 212 241

--- Folders of migrations for srv.db (src/bind/lmigrations.c).
local migrations = {}

---@param folder string   from the app's folder
---@param dialect string
---@return { number: integer, file: string, text: string, digest: string }[]?
---@return srv.Error?  `not_found`, `fs`, `busy`
function migrations.read(folder, dialect) end

return migrations
