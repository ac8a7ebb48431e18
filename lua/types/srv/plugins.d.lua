---@meta _
-- luacheck: ignore 212 241 631

---@class srv.HelmetOptions  each the header's text, or false for none
---@field csp string|false|nil       Content-Security-Policy; helmet 8's
---@field hsts string|false|nil      "365d"; on TLS only
---@field frame string|false|nil     "SAMEORIGIN"
---@field referrer string|false|nil  "no-referrer"
---@field coop string|false|nil      "same-origin"
---@field corp string|false|nil      "same-origin"
---@field coep string|false|nil      false

---@class srv.CorsOptions
---@field origins "*"|string[]|(fun(origin: string, req: srv.Request): any, any)|nil  "*"
---@field methods string[]?          GET HEAD PUT PATCH POST DELETE
---@field headers string[]?          those that are asked for
---@field expose string[]?
---@field credentials boolean?       false; needs origins
---@field max_age srv.Duration?

---@class srv.CompressOptions
---@field min srv.Size?         "1KiB"
---@field encodings string[]?   { "zstd", "br", "gzip" }
---@field types string[]?       "html", "image/*", "+json"

---@class srv.EtagOptions
---@field weak boolean?     true
---@field limit srv.Size?   "1MiB"

---@class srv.RequestIdOptions
---@field header string?    "X-Request-Id"
---@field trust string[]?   networks whose ids are taken

---@class srv.RateLimitOptions
---@field limit integer?         60
---@field window srv.Duration?   "1m"
---@field key (fun(req: srv.Request): string|number|nil)?  whom to count; nil: not at all
---@field cost integer|(fun(req: srv.Request): integer)|nil  1
---@field name string?           limits of one name count together

---@class srv.SessionOptions
---@field name string?              "sid"
---@field ttl srv.Duration?         "14d" from the last use on; "browser": until it is closed
---@field store "cache"|"cookie"|nil
---@field cookie srv.CookieOptions?
---@field csrf boolean?             true

---@class srv.CsrfOptions
---@field origins string[]?  besides our own

---@class srv.BasicAuthOptions
---@field users table<string, string>?   passwords by name
---@field check (fun(user: string, password: string, req: srv.Request): any, any)?  gives the user, or true
---@field realm string?                  "api"
---@field optional boolean?              false

---@class srv.BearerOptions
---@field check fun(token: string, req: srv.Request): any, any  gives the user
---@field realm string?
---@field optional boolean?

---@class srv.JwtOptions
---@field key string               a secret of 32 bytes and more, or the public key in PEM
---@field alg string               "HS256", "RS256", "ES256"
---@field issuer string?
---@field audience string?
---@field leeway srv.Duration?     "30s"
---@field cookie string?           where the token is if there is none in Authorization
---@field realm string?
---@field optional boolean?

---@class srv.ProxyTrust
---@field [integer] string         CIDRs, "loopback", "private"
---@field header "auto"|"x-forwarded"|"forwarded"|nil

---@class srv.HealthOptions
---@field live string?             "/livez"
---@field ready string?            "/readyz"
---@field checks table<string, fun(): any, any>?
---@field timeout srv.Duration?    "2s" of them

---@class srv.MetricsOptions
---@field path string?             "/metrics"
---@field allow string[]?          { "loopback", "private" }

---@class srv.OpenapiOptions
---@field title string?            "API"
---@field version string?          "1.0.0"
---@field path string?             "/openapi.json"
---@field docs string|false|nil    "/docs"
---@field servers (string|table)[]?

--- Called: the plugin with the page for a scraper.
---@class srv.MetricsModule
---@overload fun(opts?: srv.MetricsOptions): srv.Plugin
local metrics = {}

---@param name string  "orders_total"
---@param help string
---@param labels string[]?
---@return srv.Counter
function metrics.counter(name, help, labels) end

---@param name string
---@param help string
---@param labels string[]?
---@return srv.Gauge
function metrics.gauge(name, help, labels) end

---@param name string
---@param help string
---@param labels string[]?
---@param buckets number[]?  seconds unless given
---@return srv.Histogram
function metrics.histogram(name, help, labels, buckets) end

---@class srv.Counter
local Counter = {}

---@param n number?  1
---@param values table<string, string>|string[]|nil  by label, or in the labels' order
---@return srv.Counter
function Counter:add(n, values) end

---@class srv.Gauge
local Gauge = {}

---@param value number
---@param values table<string, string>|string[]|nil
---@return srv.Gauge
function Gauge:set(value, values) end

---@param n number?
---@param values table<string, string>|string[]|nil
---@return srv.Gauge
function Gauge:add(n, values) end

---@class srv.Histogram
local Histogram = {}

---@param value number
---@param values table<string, string>|string[]|nil
---@return srv.Histogram
function Histogram:observe(value, values) end
