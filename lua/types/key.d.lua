---@meta srv.core.key
-- luacheck: ignore 212 241

--- Signatures of key pairs, on a thread of the pool (src/bind/lkey.c). Schemes are those of JSON Web
--- Tokens: "RS256", "ES384".
local key = {}

---@param scheme string
---@param pem string  the private key
---@param bytes string
---@return string? signature
---@return srv.Error? err  bad_key, busy
function key.sign(scheme, pem, bytes) end

---@param scheme string
---@param pem string  the public key
---@param bytes string
---@param signature string
---@return boolean?
---@return srv.Error? err  bad_key, busy
function key.verify(scheme, pem, bytes, signature) end

return key
