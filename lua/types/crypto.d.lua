---@meta srv.core.crypto
-- luacheck: ignore 212 241

--- Keyed digests for signed cookies (src/bind/lcrypto.c).
local crypto = {}

---@param key string
---@param value string
---@return string  HMAC-SHA256 as base64url
function crypto.sign(key, value) end

--- In a time that tells nothing.
---@param key string
---@param value string
---@param signature string
---@return boolean
function crypto.verify(key, value, signature) end

---@param n integer  1 to 1024
---@return string  bytes that nobody can guess
function crypto.random(n) end

return crypto
