---@meta srv.core.certificate
-- luacheck: ignore 212 241

--- Certificates for development (src/bind/lcertificate.c). All is PEM.
local certificate = {}

---@param subject string  its common name
---@param days integer
---@return string? certificate
---@return string|srv.Error key_or_err
function certificate.authority(subject, days) end

---@param subject string
---@param days integer
---@param names string[]  hosts and addresses
---@param ca_certificate string
---@param ca_key string
---@return string? certificate
---@return string|srv.Error key_or_err
function certificate.server(subject, days, names, ca_certificate, ca_key) end

---@param text string
---@return boolean
function certificate.is_name(text) end

--- A new one is its owner's alone, one that is there stays as it is.
---@param path string
---@return true?
---@return srv.Error?
function certificate.folder(path) end

--- A new file in the place of what was there.
---@param path string
---@param text string
---@param is_private boolean  its owner's alone
---@return true?
---@return srv.Error?
function certificate.save(path, text, is_private) end

return certificate
