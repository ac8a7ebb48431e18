---@meta _
-- luacheck: ignore 212 241 631

---@class srv.CookieOptions
---@field path string?                              "/"
---@field http_only boolean?                        true
---@field same_site "lax"|"strict"|"none"|false|nil "lax"
---@field secure boolean|"auto"|nil                 "auto": on TLS
---@field max_age srv.Duration?
---@field domain string?
---@field signed boolean?                           false
---@field partitioned boolean?                      false

---@class srv.FileOptions
---@field root string?          the app's folder; nothing outside it
---@field type string?
---@field max_age srv.Duration? 0
---@field immutable boolean?    false
---@field dotfiles boolean?     false

--- Setters return res; without a value they read.
---@class srv.Response
---@field error srv.Error?   the error answered with
---@field answered boolean   an answer is recorded
---@field committed boolean  the head is out
local Response = {}

---@param n integer
---@return srv.Response
---@overload fun(self: srv.Response): integer?
function Response:status(n) end

---@param name string
---@param v string|number|string[]|false  false removes
---@return srv.Response
---@overload fun(self: srv.Response, name: string): string?
function Response:header(name, v) end

--- Adds a line.
---@param name string
---@param v string|number
---@return srv.Response
function Response:append(name, v) end

---@param name string
---@return srv.Response
function Response:remove(name) end

---@param t string  "json" "html" "text" "xml" "css" "js" "csv" "bin", an extension, a media type
---@return srv.Response
---@overload fun(self: srv.Response): string?
function Response:type(t) end

---@param v any
---@return srv.Response
function Response:json(v) end

---@param s string|number
---@return srv.Response
function Response:html(s) end

---@param s string|number
---@return srv.Response
function Response:text(s) end

---@param s string|number
---@return srv.Response
function Response:bytes(s) end

--- Records what a handler might return.
---@param v any
---@return srv.Response
function Response:send(v) end

--- views/NAME.html, filled.
---@param view string
---@param data table?
---@return srv.Response
function Response:render(view, data) end

---@param url string
---@param status 301|302|303|307|308|nil  302
---@return srv.Response
function Response:redirect(url, status) end

---@param path string
---@param opts srv.FileOptions?
---@return srv.Response
function Response:file(path, opts) end

---@param path string
---@param name string?  that the browser saves it as
---@param opts srv.FileOptions?
---@return srv.Response
function Response:download(path, name, opts) end

--- Reads or replaces what was recorded; for middleware.
---@param ... any
---@return any
function Response:body(...) end

--- Sends the head, then streams; waits while the client is slower.
---@param chunk string
---@return srv.Response?
---@return srv.Error? err
function Response:write(chunk) end

--- What was written goes out now.
---@return srv.Response
function Response:flush() end

--- Server-sent events; the head goes out at once.
---@param opts { heartbeat?: srv.Duration|false }?  "15s"
---@return srv.EventStream
function Response:sse(opts) end

--- A 103 now.
---@param headers table<string, string|string[]>
---@return srv.Response
function Response:early_hints(headers) end

--- A field behind a streamed body; a function is called at its end.
---@param name string
---@param value string|number|fun(): string|number|nil
---@return srv.Response
function Response:trailer(name, value) end

---@param name string
---@param value string|number|table  a table is sent as JSON
---@param opts srv.CookieOptions?
---@return srv.Response
function Response:cookie(name, value, opts) end

---@param name string
---@param opts srv.CookieOptions?  path and domain that it was set with
---@return srv.Response
function Response:clear_cookie(name, opts) end

---@param tag string
---@param opts { weak?: boolean }?
---@return srv.Response
---@overload fun(self: srv.Response): string?
function Response:etag(tag, opts) end

---@param t number  seconds since 1970
---@return srv.Response
---@overload fun(self: srv.Response): number?
function Response:last_modified(t) end

---@param ... string  names of request headers
---@return srv.Response
function Response:vary(...) end

--- `res:links { next = "/news?page=2" }`
---@param links table<string, string>
---@return srv.Response
function Response:links(links) end

--- Picks by Accept, sets type and Vary; 406 if none fits.
---@param ... string  "json", "html"
---@return string
function Response:negotiate(...) end

---@class srv.EventStream
---@field last_id string?  of a client that comes back
local EventStream = {}

---@param data any  a table is JSON
---@param opts { event?: string, id?: string|number, retry?: srv.Duration }?
---@return true?
---@return srv.Error? err
function EventStream:send(data, opts) end

---@param text string
---@return true?
---@return srv.Error? err
function EventStream:comment(text) end
