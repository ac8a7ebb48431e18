---@meta srv.core.load
-- luacheck: ignore 212 241

--- The load generator of `srv bench` (src/load, src/bind/lload.c); times are seconds, those in histograms
--- microseconds.
local load = {}

---@class srv.core.load.Origin
---@field host string?    an IP address
---@field port integer?
---@field path string?    a Unix socket
---@field tls boolean?
---@field name string?    with TLS: whom the certificate must be for

---@class srv.core.load.Request
---@field bytes string
---@field fields integer[]?  HTTP/2: the lengths of names and values at the beginning of `bytes`
---@field head integer?      WebSocket: the length of a handshake's head, before the message
---@field origin integer
---@field is_head boolean?
---@field expect string?
---@field ids integer[]?

---@class srv.core.load.Plan
---@field origins srv.core.load.Origin[]
---@field tls { ca: string?, cert: string?, key: string?, insecure: boolean?, full: boolean? }?  paths of files
---@field requests srv.core.load.Request[]
---@field http2 boolean?
---@field websocket boolean?
---@field binary boolean?       messages are no text
---@field wheel integer[]  the order in which connections go through requests
---@field connections integer
---@field threads integer
---@field pipelining integer    with HTTP/2: streams
---@field duration number       0: until `amount` is used up
---@field amount integer?
---@field rate number?          requests a second in all, evenly spaced
---@field timeout number
---@field per_connection integer?
---@field reconnect integer?
---@field bailout integer?
---@field only_ok boolean?

--- Starts at once.
---@param plan srv.core.load.Plan
---@return srv.core.Load?
---@return srv.Error?
function load.start(plan) end

---@class srv.core.Load
load.Load = {}

--- What has been done so far: sent = the statuses + faults + what is under way.
---@return table totals  elapsed sent statuses faults mismatched late backlog connections cpu bytes_in bytes_out latency service
function load.Load:read() end

---@param seconds number?
---@return true?
---@return srv.Error? err  timeout; or the load came to nothing, since no connection gets as far as a request
function load.Load:wait(seconds) end

---@return srv.core.Load
function load.Load:stop() end

---@class srv.core.Hist
load.Hist = {}

---@return integer
function load.Hist:count() end

---@param percent number
---@return number
function load.Hist:percentile(percent) end

---@return number
function load.Hist:mean() end

---@return number
function load.Hist:deviation() end

--- What was counted after OLDER was read.
---@param older srv.core.Hist
---@return srv.core.Hist
function load.Hist:since(older) end

--- Those that are not empty, in order.
---@return { low: number, high: number, count: integer }[]
function load.Hist:buckets() end

return load
