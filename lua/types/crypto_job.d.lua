---@meta srv.core.crypto_job
-- luacheck: ignore 212 241

--- Functions of srv.core.crypto for what is large, on a thread of the pool (src/bind/lcrypto_job.c).
local job = {}

---@return boolean  code runs here that may be suspended
function job.can_wait() end

---@param name string
---@param s string
---@param enc string?
---@return string?, srv.Error?
function job.hash(name, s, enc) end

---@param name string
---@param key string
---@param s string
---@param enc string?
---@return string?, srv.Error?
function job.hmac(name, key, s, enc) end

---@param secret string
---@param s string
---@param aad string?
---@return string?, srv.Error?
function job.seal(secret, s, aad) end

---@param secret string
---@param sealed string
---@param aad string?
---@return string?, srv.Error?
function job.unseal(secret, sealed, aad) end

return job
