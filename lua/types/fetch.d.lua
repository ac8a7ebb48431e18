---@meta srv.core.fetch
-- luacheck: ignore 212 241

--- Calls of other HTTP servers (src/bind/lfetch.c); times are milliseconds. Apps use srv.http
--- (lua/srv/async/fetch.lua), which adds options, redirects and retries.
local fetch = {}

---@class srv.core.fetch.Tls
---@field id string            tells settings apart
---@field name string          whom the server's certificate must be for
---@field offers_h2 boolean?
---@field is_bare boolean?    what follows is not HTTP: `alpn` is offered, names that end with NUL each
---@field alpn string?
---@field trusts_all boolean
---@field ca string?
---@field cert string?
---@field key string?
---@field pins string?

---@class srv.core.fetch.Spec
---@field key string            all that tells connections apart
---@field host string           what is dialled
---@field port integer
---@field path string?          a Unix socket
---@field tls srv.core.fetch.Tls?
---@field is_h2 boolean?       HTTP/2 without TLS, taken for granted
---@field proxy_tls srv.core.fetch.Tls?  of a proxy of https, inside which `tls` lies
---@field tunnel string?        the head that has the proxy, which is dialled, open one
---@field head string           request line and fields with the empty line
---@field fields integer        how many fields that are
---@field body string|integer|true|nil  whole; the length of what is written; of unknown length
---@field answers_head boolean  the method is HEAD
---@field fresh boolean         over no kept connection
---@field decodes boolean
---@field limit integer?        bytes of a whole body
---@field connect_ms integer?
---@field first_byte_ms integer?
---@field total_ms integer?
---@field paces boolean?        total_ms is for each step of a body that is written

---@return srv.core.fetch.Call
function fetch.call() end

--- Bounds of this worker's connections.
---@param total integer
---@param per_origin integer
---@param idle_ms number
function fetch.configure(total, per_origin, idle_ms) end

---@return { open: integer, idle: integer, waiting: integer, opened: integer, reused: integer }
function fetch.stats() end

--- 0 to 1, other than every other's.
---@return number
function fetch.random() end

---@class srv.core.fetch.Call
local Call = {}

--- "connected": true. "head": status, headers, several, length, decoded. "whole": these, body, trailers.
--- Else nil, the error, and "unsent", "for_h1" (and to be sent in HTTP/1.1), "stale" or "sent".
---@param spec srv.core.fetch.Spec
---@param wanted "connected"|"head"|"whole"
function Call:open(spec, wanted) end

--- As open(spec, "head").
function Call:head() end

---@param bytes_max integer
---@param timeout number?  seconds
---@return string?
---@return srv.Error?
---@return table<string, string>? trailers  at the end
function Call:read(bytes_max, timeout) end

--- True and a number: so many bytes of CHUNK are written, come again.
---@param chunk string
---@param from integer
---@return boolean? more  false: nobody wants more
---@return integer|srv.Error|nil at
function Call:write(chunk, from) end

---@return boolean  false: the body is shorter than was announced
function Call:finish() end

--- The request's body cannot be had.
---@param message string
function Call:fail(message) end

function Call:close() end

return fetch
