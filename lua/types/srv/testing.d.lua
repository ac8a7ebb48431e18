---@meta _
-- luacheck: ignore 212 241 631

--- `srv.test(app)`: a client of the app, without a socket.
---@class srv.TestModule
---@overload fun(tested: srv.Router): srv.TestClient
local test = {}

--- Time stands until the test is over, but for advance().
---@return srv.TestClock
function test.clock() end

--- Answers srv.http in the place of other servers: "METHOD URL" -> { status, headers, json, body }, text or function.
---@param doubles table<string, string|table|(fun(request: table): any, any)>
function test.upstream(doubles) end

--- A fresh migrated database.
---@param opts srv.DbOptions?
---@return srv.Db
function test.db(opts) end

--- Variables as srv.env reads them; false: not set.
---@param values table<string, string|false>
function test.env(values) end

--- FN in the place of T[NAME] until the test is over.
---@param t table
---@param name any
---@param fn any
function test.stub(t, name, fn) end

---@class srv.TestOptions
---@field query table<string, any>?
---@field headers table<string, string|string[]>?
---@field json any
---@field form table<string, any>?
---@field multipart table?
---@field body string?
---@field auth { [1]: string, [2]: string }?
---@field cookies table<string, string>?
---@field ip string?
---@field tls true|srv.TlsInfo|nil  it came over TLS; of the fields, those that are given
---@field host string?

---@class srv.TestSocketOptions: srv.TestOptions
---@field protocols string[]?
---@field compress boolean?    true

--- The client's end of a WebSocket.
---@class srv.TestSocket
---@field status integer                   101
---@field headers table<string, string>    of the switch; any case reads
---@field protocol string?
---@field close_code integer?              once it is closed
---@field close_reason string?
local TestSocket = {}

---@param v any  a table is JSON
---@param kind "text"|"binary"|nil
---@return true?
---@return srv.Error? err  closed
function TestSocket:send(v, kind) end

--- The next message of the app.
---@param t srv.Duration?  at most so long: 5 s; while srv.test.clock() stands, what is there
---@return string?
---@return "text"|"binary"|srv.Error|nil kind_or_err  err: timeout, closed
function TestSocket:receive(t) end

--- All that come, until the app closes.
---@return fun(): string?, ("text"|"binary")?
function TestSocket:messages() end

--- Closes as a client that has had enough, and waits until the app has agreed.
---@param code integer?  1000
---@param reason string?
---@return srv.TestSocket
function TestSocket:close(code, reason) end

--- Closes and does not wait: its test is over.
function TestSocket:leave() end

---@class srv.TestClient
local Client = {}

---@param path string
---@param opts srv.TestOptions?
---@return srv.TestAnswer
function Client:get(path, opts) end

---@param path string
---@param opts srv.TestOptions?
---@return srv.TestAnswer
function Client:post(path, opts) end

---@param path string
---@param opts srv.TestOptions?
---@return srv.TestAnswer
function Client:put(path, opts) end

---@param path string
---@param opts srv.TestOptions?
---@return srv.TestAnswer
function Client:patch(path, opts) end

---@param path string
---@param opts srv.TestOptions?
---@return srv.TestAnswer
function Client:delete(path, opts) end

---@param path string
---@param opts srv.TestOptions?
---@return srv.TestAnswer
function Client:head(path, opts) end

---@param path string
---@param opts srv.TestOptions?
---@return srv.TestAnswer
function Client:options(path, opts) end

---@param method string
---@param path string
---@param opts srv.TestOptions?
---@return srv.TestAnswer
function Client:request(method, path, opts) end

--- An answer that is read as it comes.
---@param method string
---@param path string
---@param opts srv.TestOptions?
---@return srv.TestStream
function Client:open(method, path, opts) end

--- A WebSocket of the app, in memory.
---@param path string
---@param opts srv.TestSocketOptions?
---@return srv.TestSocket?
---@return srv.TestAnswer? refusal  what was answered instead
function Client:ws(path, opts) end

--- A real port until close().
---@return string url
function Client:listen() end

--- Ends timers, open answers and the port; hooks `stop` run.
function Client:close() end

---@class srv.TestAnswer
---@field status integer
---@field headers table<string, string>   any case reads
---@field body string
---@field cookies table<string, string>   set by this answer
---@field log { level: integer|string, message: string, fields: table }[]  lines logged meanwhile
---@field interim integer[]               1xx before it
---@field cut boolean                     it breaks off
local Answer = {}

--- A status; a header and its value (a pattern if it begins with "^"; false: absent); a body; a part of the JSON; a function.
---@param want integer|string|table|fun(answer: srv.TestAnswer): any, string?
---@param header_value string|false|nil
---@return srv.TestAnswer
function Answer:expect(want, header_value) end

---@return any
function Answer:json() end

---@return string[]
function Answer:chunks() end

---@return { id: string?, event: string?, data: string }[]
function Answer:events() end

---@class srv.TestStream
---@field status integer
---@field headers table<string, string>
---@field cookies table<string, string>
local Stream = {}

---@param t srv.Duration?  "5s"
---@return string?
---@return srv.Error? err  timeout, closed
function Stream:chunk(t) end

---@param t srv.Duration?  "5s"
---@return { id: string?, event: string?, data: string }?
---@return srv.Error? err  timeout, closed
function Stream:event(t) end

---@param want integer|string
---@param header_value string|false|nil
---@return srv.TestStream
function Stream:expect(want, header_value) end

--- To the app the client leaves.
function Stream:close() end

---@class srv.TestClock
local Clock = {}

---@param t srv.Duration
---@return srv.TestClock
function Clock:advance(t) end
