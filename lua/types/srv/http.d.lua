---@meta _
-- luacheck: ignore 212 241 631

---@class srv.HttpOptions
---@field query table<string, any>|string|nil
---@field headers table<string, string|number|string[]>?
---@field json any
---@field form table<string, any>?
---@field multipart table?
---@field body string|srv.Reader|(fun(): string?)|nil
---@field timeout srv.Duration?             "10s", and never past the request's deadline
---@field connect_timeout srv.Duration?     "3s"
---@field first_byte_timeout srv.Duration?
---@field read_timeout srv.Duration?        of each read of a streamed body
---@field expect integer|string|(integer|string)[]|nil  200, "2xx"; else `unexpected_status`
---@field redirects integer?                5
---@field retries integer?                  2, of idempotent methods
---@field limit srv.Size?                   "10MiB"
---@field stream boolean?                   false: only the head is read
---@field unix string?
---@field proxy string|false|nil
---@field auth { [1]: string, [2]: string }?
---@field tls srv.ClientTlsOptions?
---@field http2 boolean|"prior"|nil         true: if https agrees to it; "prior": http too, taken for granted

--- How a server is verified, and what it is shown. What is PEM is the text or the path of a file.
---@class srv.ClientTlsOptions
---@field ca string?              instead of the system's authorities
---@field cert string?            our own
---@field key string?             nil: beside it
---@field verify boolean?         true
---@field server_name string?     nil: the host of the URL
---@field pin string|string[]|nil "sha256/BASE64" of a public key

---@class srv.HttpClientOptions: srv.HttpOptions
---@field base string?

---@class srv.ForwardOptions
---@field headers table<string, string|false>?
---@field host "origin"|"client"|string|nil
---@field path string?
---@field timeout srv.Duration?             "10s"
---@field connect_timeout srv.Duration?     "3s"
---@field first_byte_timeout srv.Duration?
---@field read_timeout srv.Duration?        "60s"
---@field unix string?
---@field tls srv.ClientTlsOptions?
---@field http2 boolean|"prior"|nil

--- `srv.http`, or what `srv.http.client(opts)` gives: the same with defaults.
---@class srv.HttpClient
local client = {}

---@param address string
---@param opts srv.HttpOptions?
---@return srv.HttpResponse?
---@return srv.Error? err  refused, dns, timeout, unexpected_status, too_large, ...
function client.get(address, opts) end

---@param address string
---@param opts srv.HttpOptions?
---@return srv.HttpResponse?
---@return srv.Error? err
function client.head(address, opts) end

---@param address string
---@param opts srv.HttpOptions?
---@return srv.HttpResponse?
---@return srv.Error? err
function client.post(address, opts) end

---@param address string
---@param opts srv.HttpOptions?
---@return srv.HttpResponse?
---@return srv.Error? err
function client.put(address, opts) end

---@param address string
---@param opts srv.HttpOptions?
---@return srv.HttpResponse?
---@return srv.Error? err
function client.patch(address, opts) end

---@param address string
---@param opts srv.HttpOptions?
---@return srv.HttpResponse?
---@return srv.Error? err
function client.delete(address, opts) end

---@param method string
---@param address string
---@param opts srv.HttpOptions?
---@return srv.HttpResponse?
---@return srv.Error? err
function client.request(method, address, opts) end

---@param opts srv.HttpClientOptions
---@return srv.HttpClient
function client.client(opts) end

---@class srv.Http: srv.HttpClient
local http = {}

--- The reverse proxy: a response to return.
---@param req srv.Request
---@param origins string|string[]
---@param opts srv.ForwardOptions?
---@return srv.HttpResponse?
---@return srv.Error? err
function http.forward(req, origins, opts) end

--- Bounds of this worker's connections.
---@param opts { total?: integer, per_origin?: integer, idle?: srv.Duration }?  256; 64; "60s"
---@return table
function http.pool(opts) end

---@class srv.HttpResponse
---@field status integer
---@field ok boolean                       200-299
---@field headers table<string, string>    any case reads
---@field url string                       the one that answered, after redirects
---@field trailers table<string, string>   empty until the body has ended
---@field body string?                     nil with `stream = true`
---@field length integer?                  the announced size of a body that is streamed
local Response = {}

---@param name string
---@return string?
function Response:header(name) end

---@param name string
---@return string[]
function Response:header_lines(name) end

---@return any
---@return srv.Error? err  bad_response
function Response:json() end

---@return srv.Reader
function Response:stream() end

--- Seconds that a shared cache may keep it (RFC 9111).
---@return number
function Response:fresh_for() end

--- Nothing more is wanted: an open stream is closed. Idempotent.
function Response:close() end
