---@meta srv.core.password
-- luacheck: ignore 212 241

--- argon2id, on a thread of the pool (src/bind/lpassword.c).
local password = {}

---@param s string
---@return string? hash
---@return srv.Error? err  invalid, busy, unavailable
function password.hash(s) end

---@param s string
---@param hash string
---@return boolean?
---@return srv.Error? err  bad_hash, invalid, busy, unavailable
function password.verify(s, hash) end

return password
