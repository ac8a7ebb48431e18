---@meta _
-- luacheck: ignore 212 241 631

---@class srv.JsonModule
local json = {}

---@param value any
---@param opts { pretty?: boolean }?
---@return string
function json.encode(value, opts) end

---@param text string
---@param opts { depth?: integer }?  64
---@return any value
---@return srv.Error? err  bad_json: line, column, path
function json.decode(text, opts) end

--- An empty table that is written as {}.
---@generic T: table
---@param t T
---@param order string[]?  of its keys
---@return T
function json.object(t, order) end

---@generic T: table
---@param t T
---@return T
function json.array(t) end

---@class srv.TimeModule
local time = {}

--- "2024-05-01T10:00:00Z"
---@param t number?  now
---@return string
function time.iso(t) end

---@param t number?  now
---@return string
function time.http(t) end

---@param t number?  now
---@return string
function time.rfc2822(t) end

---@param t number
---@param text string   "%d %B %Y, %H:%M"
---@param name string?  "UTC", "local", "+02:00", "Europe/Berlin"
---@return string
function time.date(t, text, name) end

---@param text string  RFC 3339, RFC 2822, HTTP
---@return number?
---@return srv.Error? err
function time.parse(text) end

---@class srv.FormatModule
local format = {}

---@param n number
---@return string  "1.5 MB"
function format.bytes(n) end

---@param t number  seconds
---@return string  "2 h 5 min"
function format.duration(t) end

---@param t number      seconds since 1970
---@param from number?  now
---@return string  "3 minutes ago"
function format.ago(t, from) end

---@class srv.Url
---@field scheme string?
---@field user string?
---@field password string?
---@field host string?
---@field port integer?
---@field path string       encoded
---@field query string?     encoded
---@field fragment string?  encoded

---@class srv.UrlModule
local url = {}

---@param value string
---@return srv.Url?
---@return srv.Error? err
function url.parse(value) end

---@param parts srv.Url|table
---@return string
function url.build(parts) end

---@param value string|number
---@return string
function url.encode(value) end

---@param value string
---@return string?
---@return srv.Error? err
function url.decode(value) end

--- A table as a query, a query as a table.
---@param values table<string, any>|string
---@return string|table
function url.query(values) end

---@class srv.HtmlModule
local html = {}

---@param value string|number
---@return string
function html.escape(value) end

---@alias srv.crypto.Hash "sha256"|"sha384"|"sha512"|"sha1"|"md5"
---@alias srv.crypto.Encoding "hex"|"base64"|"base64url"|"raw"

---@class srv.CryptoModule
local crypto = {}

---@param alg srv.crypto.Hash
---@param s string
---@param enc srv.crypto.Encoding?  "hex"
---@return string
function crypto.hash(alg, s, enc) end

---@param alg srv.crypto.Hash
---@param key string
---@param s string
---@param enc srv.crypto.Encoding?  "hex"
---@return string
function crypto.hmac(alg, key, s, enc) end

---@param n integer
---@return string  bytes
function crypto.random(n) end

---@param bytes integer?  16
---@return string  of URL-safe characters
function crypto.token(bytes) end

---@return string  version 7
function crypto.uuid() end

--- In a time that tells nothing.
---@param a string
---@param b string
---@return boolean
function crypto.equal(a, b) end

---@param key string  32 bytes or more
---@param s string
---@param aad string?  what decrypt() must be given too
---@return string
function crypto.encrypt(key, s, aad) end

---@param key string
---@param s string
---@param aad string?
---@return string?
---@return srv.Error? err
function crypto.decrypt(key, s, aad) end

--- argon2id, on the pool.
---@param s string
---@return string?
---@return srv.Error? err
function crypto.password_hash(s) end

---@param s string
---@param hash string
---@return boolean?
---@return srv.Error? err
function crypto.password_verify(s, hash) end

---@param claims table<string, any>
---@param opts { key: string, alg: string, expires?: srv.Duration }
---@return string?
---@return srv.Error? err
function crypto.jwt_sign(claims, opts) end

---@param token string
---@param opts { key: string, alg: string, issuer?: string, audience?: string, leeway?: srv.Duration }
---@return table? claims
---@return srv.Error? err
function crypto.jwt_verify(token, opts) end

---@param enc "hex"|"base64"|"base64url"
---@param s string
---@return string
function crypto.encode(enc, s) end

---@param enc "hex"|"base64"|"base64url"
---@param s string
---@return string?
---@return srv.Error? err
function crypto.decode(enc, s) end

---@class srv.TemplateModule
local template = {}

---@param name string  "news/show": views/news/show.html
---@param data table?
---@return string
function template.render(name, data) end

---@param text string
---@param opts { kind?: "html"|"xml"|"json"|"txt", name?: string }?
---@return fun(data?: table): string
function template.compile(text, opts) end
