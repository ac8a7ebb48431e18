---@meta srv
-- luacheck: ignore 212 241 631

--- What `require "srv"` gives. Not loaded by anything: it tells an editor what there is
--- (docs/guide/editor.md). Durations are seconds or "250ms" "5s" "10m" "2h" "7d"; sizes bytes or "64KiB" "1MiB".
---@class srv
---@field error srv.ErrorModule
---@field schema srv.SchemaModule
---@field template srv.TemplateModule
---@field test srv.TestModule
---@field json srv.JsonModule
---@field null lightuserdata       JSON's null; true as a condition
---@field time srv.TimeModule
---@field format srv.FormatModule
---@field url srv.UrlModule
---@field html srv.HtmlModule
---@field crypto srv.CryptoModule
---@field http srv.Http
---@field tcp srv.TcpModule
---@field unix srv.UnixModule
---@field udp srv.UdpModule
---@field dns srv.DnsModule
---@field fs srv.FsModule
---@field exec srv.ExecModule
---@field cache srv.Shared         64 MiB, shared by all workers; in Redis where REDIS_URL is set
---@field bus srv.BusModule
---@field metrics srv.MetricsModule
---@field env srv.EnvModule
---@field config srv.Config        the settings in force, read only
---@field log srv.Log
---@field version string
---@field root string              the app's folder
---@field dev boolean              started with --dev
---@field worker { id: integer, count: integer, pid: integer, generation: integer }
local srv = {}

-- Applications ----------------------------------------------------------------------------------------

---@param opts srv.RouterOptions?
---@return srv.Router
function srv.app(opts) end

---@param opts srv.RouterOptions?
---@return srv.Router
function srv.router(opts) end

--- What a plugin was given, checked by rules: `srv.options("stamp", opts, { header = "string = X-Stamp" })`.
---@param name string  the plugin's, for messages
---@param opts table?
---@param rules table<string, srv.Rule>
---@return table
function srv.options(name, opts, rules) end

--- The request that this code runs for.
---@return srv.Request?
function srv.current() end

-- WebSockets ------------------------------------------------------------------------------------------

--- A socket to another server; it ends with the task that opens it.
---@param address string  "wss://host/path"
---@param opts srv.WebSocketOptions?
---@return srv.WebSocket?
---@return srv.Error? err  refused, timeout, dns, unavailable, closed, bad_response, unexpected_status, tls, invalid
function srv.websocket(address, opts) end

-- Tasks -----------------------------------------------------------------------------------------------

--- Waits, and lets others run: `srv.sleep "250ms"`.
---@param t srv.Duration
function srv.sleep(t) end

--- Starts FN at our next wait; it ends with the task that started it.
---@param fn function
---@param ... any  its arguments
---@return srv.Task
function srv.spawn(fn, ...) end

--- Runs all at once; the first value of each. The first error, or `nil, err`, cancels the others.
---@param ... function|table  each a function, or { function, arguments... }
---@return any ...
function srv.all(...) end

--- fn(item) for each, `limit` at once (8); the first value of each, in order.
---@param items any[]
---@param fn fun(item: any): any, any
---@param opts { limit: integer? }?
---@return any[]? results
---@return srv.Error? err
function srv.map(items, fn, opts) end

--- What the first to end gives or raises; the others are cancelled.
---@param ... function|table
---@return any ...
function srv.race(...) end

--- fn's values, or `nil, err` (`timeout`) when it takes longer; it is cancelled then.
---@param t srv.Duration
---@param fn function
---@param ... any  its arguments
---@return any ...
function srv.timeout(t, fn, ...) end

--- A function for the end of the task, however it comes; the last one runs first. It gets the cause, or nil.
---@param fn fun(err: srv.Error?)
function srv.defer(fn) end

--- Room for N values that nobody has taken yet; 0: sender and receiver meet.
---@param n integer?
---@return srv.Channel
function srv.channel(n) end

---@return srv.Event
function srv.event() end

---@param n integer
---@return srv.Semaphore
function srv.semaphore(n) end

---@return srv.Mutex
function srv.mutex() end

-- Data ------------------------------------------------------------------------------------------------

--- Opens by scheme: "sqlite:news.db", "sqlite::memory:", "postgres://...". DATABASE_URL overrides the URL.
---@param url string?
---@param opts srv.DbOptions?
---@return srv.Db
function srv.db(url, opts) end

---@param url string?
---@param opts srv.DbOptions?
---@return srv.Db
function srv.sqlite(url, opts) end

---@param url string?
---@param opts srv.DbOptions?
---@return srv.Db
function srv.postgres(url, opts) end

---@param url string?  redis://[[user:]password@]host[:port][/db], the same with rediss:, unix:/path; nil: REDIS_URL
---@param opts { timeout?: srv.Duration, connect_timeout?: srv.Duration, queue?: integer, pool?: integer, tls?: srv.ClientTlsOptions }?
---@return srv.Redis
function srv.redis(url, opts) end

--- A dictionary that all workers share; it outlives reloads.
---@param name string
---@param opts { bytes?: srv.Size }?  "16MiB"
---@return srv.Shared
function srv.shared(name, opts) end

-- Plugins: each for app:use, a router, or a route ------------------------------------------------------

---@param opts srv.HelmetOptions?
---@return srv.Plugin
function srv.helmet(opts) end

---@param opts srv.CorsOptions?
---@return srv.Plugin
function srv.cors(opts) end

---@param opts srv.CompressOptions?
---@return srv.Plugin
function srv.compress(opts) end

---@param opts srv.EtagOptions?
---@return srv.Plugin
function srv.etag(opts) end

---@param opts srv.RequestIdOptions?
---@return srv.Plugin
function srv.request_id(opts) end

---@param opts srv.RateLimitOptions?
---@return srv.Plugin
function srv.rate_limit(opts) end

---@param opts srv.SessionOptions?
---@return srv.Plugin
function srv.session(opts) end

---@param opts srv.CsrfOptions?
---@return srv.Plugin
function srv.csrf(opts) end

---@param opts srv.BasicAuthOptions
---@return srv.Plugin
function srv.basic_auth(opts) end

---@param opts srv.BearerOptions
---@return srv.Plugin
function srv.bearer(opts) end

---@param opts srv.JwtOptions
---@return srv.Plugin
function srv.jwt(opts) end

--- Networks as CIDRs, "loopback", "private"; and `header = "forwarded"` or "x-forwarded" to believe that one alone.
---@param list srv.ProxyTrust
---@return srv.Plugin
function srv.proxy_trust(list) end

---@param opts srv.HealthOptions?
---@return srv.Plugin
function srv.health(opts) end

---@param opts srv.OpenapiOptions?
---@return srv.Plugin
function srv.openapi(opts) end

-- Surroundings ------------------------------------------------------------------------------------------

--- Names a file or folder whose edit loads the app anew, besides Lua files, views and migrations.
---@param path string  in the app's folder: "locales"
function srv.watch(path) end

--- Declares a global: all others are errors.
---@param name string
---@param value any
function srv.global(name, value) end

--- Seconds since 1970, UTC.
---@return number
function srv.now() end

--- Seconds since some moment; never goes back.
---@return number
function srv.monotonic() end

return srv
