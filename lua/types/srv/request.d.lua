---@meta _
-- luacheck: ignore 212 241 631

--- What a TLS connection is.
---@class srv.TlsInfo
---@field version string        "TLSv1.2"
---@field cipher string         "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
---@field sni string?           the name that the client asked for
---@field resumed boolean       taken up again without a full handshake
---@field client { subject: string, serial: string, fingerprint: string }?  its certificate, which was verified

---@class srv.Request
---@field method string         "GET"
---@field path string           as sent, still encoded
---@field original_url string   path and query as sent
---@field base_url string       what the mounts took
---@field url string            what is left of the path, and the query
---@field params table<string, any>                      strings; numbers where the type is int or number
---@field query table<string, string|string[]>
---@field cookies table<string, string>
---@field headers table<string, string>                  any case reads
---@field valid { params: any, query: any, headers: any, cookies: any, body: any }  checked by the route's schemas
---@field ip string             the client, as trusted proxies tell
---@field ips string[]          the trusted chain, client first
---@field proto "http"|"https"
---@field secure boolean
---@field host string           with its port
---@field hostname string
---@field peer { ip: string, port: integer }             the socket
---@field id string
---@field log srv.Log           bound to this request
---@field state table           your own
---@field route { path: string, name: string?, method: string }?
---@field protocol string       "HTTP/1.1", "HTTP/2"
---@field tls srv.TlsInfo?      nil: it came over plain HTTP
---@field aborted boolean       the client has gone
---@field session srv.Session   with the plugin `session`
local Request = {}

--- Any case; several lines joined by ", ".
---@param name string
---@return string?
function Request:header(name) end

---@param name string
---@return string[]
function Request:header_lines(name) end

---@param name string
---@param opts { signed?: boolean, json?: boolean }?
---@return any  nil: not sent; false: forged
function Request:cookie(name, opts) end

--- The best of these by Accept; without Accept the first.
---@param ... string  "json", "html", media types
---@return string?
function Request:accepts(...) end

---@param ... string  "en", "de-AT"
---@return string?
function Request:accepts_language(...) end

---@param ... string  "gzip", "br"
---@return string?
function Request:accepts_encoding(...) end

--- The one that fits Content-Type.
---@param ... string  "json", "image/*"
---@return string?
function Request:is(...) end

--- Would the validators set on res give 304?
---@return boolean
function Request:fresh() end

--- Seconds to the deadline.
---@return number?
function Request:time_left() end

--- Nil without a body. 415, 400, 413, 408 are raised, as by all that read it.
---@param opts { strict?: boolean, depth?: integer }?  true: objects and arrays only; 64
---@return any
function Request:json(opts) end

---@param opts { nested?: boolean, depth?: integer, fields?: integer }?  false; 32; 1000
---@return table<string, any>?
function Request:form(opts) end

---@return string?
function Request:text() end

---@return string?
function Request:bytes() end

---@param opts { file_limit?: srv.Size, files?: integer, fields?: integer, memory?: srv.Size }?  body_limit; 10; 1000; "256KiB"
---@return table<string, any>? fields
---@return srv.Upload[]? files
function Request:multipart(opts) end

--- `for part in req:parts() do`, as they arrive.
---@param opts { part_limit?: srv.Size }?
---@return fun(): srv.Part?
function Request:parts(opts) end

--- The body as it comes; nothing else can read it then.
---@param opts { chunk?: srv.Size }?  "64KiB"
---@return srv.Reader?
function Request:stream(opts) end

--- A file of a form.
---@class srv.Upload
---@field field string  the form's name for it
---@field name string   the file's, safe: no path, no control characters
---@field type string   as the client says
---@field size integer
---@field path string?  of the temporary file; nil while it is in memory
local Upload = {}

---@return string?
---@return srv.Error? err
function Upload:bytes() end

---@return srv.Reader?
---@return srv.Error? err
function Upload:reader() end

--- Makes the file PATH of it, or replaces that in one step.
---@param path string
---@return true?
---@return srv.Error? err
function Upload:save(path) end

---@class srv.Part: srv.Reader
---@field name string
---@field filename string?               safe; nil: no file
---@field type string?
---@field headers table<string, string>  by lower-case names

--- A visitor's table; saved when it was changed.
---@class srv.Session
---@field [string] any
local Session = {}

--- A new id for the same session: at login.
---@return srv.Session
function Session:rotate() end

--- Forgets all that is in it, here and in the browser.
---@return srv.Session
function Session:destroy() end

--- With a value: keeps it for the next one who asks. Without: gives it, once.
---@param key string
---@param value any
---@return any
function Session:flash(key, value) end
