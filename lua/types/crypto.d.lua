---@meta srv.core.crypto
-- luacheck: ignore 212 241

--- What srv.base.crypto checks the arguments of (src/bind/lcrypto.c).
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

---@param name string
---@param s string
---@param enc string?
---@return string
function crypto.hash(name, s, enc) end

---@param name string
---@param key string
---@param s string
---@param enc string?
---@return string
function crypto.hmac(name, key, s, enc) end

---@param n integer     1 to 65536
---@param enc string?   "raw"
---@return string  bytes that nobody can guess
function crypto.random(n, enc) end

---@return string
function crypto.uuid() end

---@param a string
---@param b string
---@return boolean
function crypto.equal(a, b) end

---@param secret string  32 bytes or more
---@param s string
---@param aad string?
---@return string  base64url
function crypto.seal(secret, s, aad) end

---@param secret string
---@param sealed string
---@param aad string?
---@return string?
function crypto.unseal(secret, sealed, aad) end

---@param enc string
---@param s string
---@return string
function crypto.encode(enc, s) end

---@param enc string
---@param s string
---@return string?
function crypto.decode(enc, s) end

return crypto
