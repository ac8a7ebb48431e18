--- srv.test (API, section 16): an app called without a socket.
---
--- A request goes through the same router, tasks and limits as one from the wire; only the wire is
--- a piece of memory (bind/lhttp_test.c). Cookies are kept between requests, as a browser would.
local app = require "srv.web.app"
local async = require "srv.async.task"
local clock = require "srv.core.clock"
local env = require "srv.core.env"
local fetch_request = require "srv.async.fetch_request"
local fetch_send = require "srv.async.fetch_send"
local fetch_stub = require "srv.async.fetch_stub"
local handle = require "srv.db.handle"
local http = require "srv.core.http"
local json = require "srv.base.json"
local log = require "srv.core.log"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local pool = require "srv.db.pool"
local text = require "srv.base.text"
local views = require "srv.web.views"

local answers = require "srv.testing.answer"
local socket = require "srv.testing.socket"
local stream = require "srv.testing.stream"

local testing = {}

-- Requests -----------------------------------------------------------------------------------------------

local REQUEST_OPTIONS = {
  query = "table", headers = "table", json = "any", form = "table", multipart = "table", body = "string",
  auth = "table", cookies = "table", ip = "string", tls = "any", host = "string",
}

local function sorted_pairs(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  local i = 0
  return function()
    i = i + 1
    return names[i], t[names[i]]
  end
end

local function encode_form(form)
  local parts = {}
  for name, value in sorted_pairs(form) do
    for _, one in ipairs(type(value) == "table" and value or { value }) do
      parts[#parts + 1] = text.percent_encode(name) .. "=" .. text.percent_encode(tostring(one))
    end
  end
  return table.concat(parts, "&")
end

local function body_of(opts)
  if opts.json ~= nil then return json.encode(opts.json), "application/json" end
  if opts.form then return encode_form(opts.form), "application/x-www-form-urlencoded" end
  if opts.multipart then return fetch_request.multipart("srv.test", opts.multipart) end
  return opts.body, nil
end

local function cookie_header(kept, own)
  local parts = {}
  for name, value in sorted_pairs(kept) do if not own[name] then parts[#parts + 1] = name .. "=" .. value end end
  for name, value in sorted_pairs(own) do parts[#parts + 1] = name .. "=" .. value end
  return #parts > 0 and table.concat(parts, "; ") or nil
end

local function header_list(opts, content_type, cookies)
  local list, seen = {}, {}
  for name, value in sorted_pairs(opts.headers or {}) do
    seen[name:lower()] = true
    for _, one in ipairs(type(value) == "table" and value or { value }) do list[#list + 1] = { name, tostring(one) } end
  end
  if content_type and not seen["content-type"] then list[#list + 1] = { "content-type", content_type } end
  if opts.auth and not seen.authorization then
    list[#list + 1] = { "authorization", fetch_request.basic(unpack(opts.auth, 1, 2)) }
  end
  if cookies and not seen.cookie then list[#list + 1] = { "cookie", cookies } end
  return list
end

---@class srv.TestClient
---@field private site userdata
---@field private cookies table<string, string>
---@field private open_streams srv.TestStream[]
---@field private open_sockets srv.TestSocket[]
---@field private port userdata?
local Client = { __name = "srv.TestClient" }
Client.__index = Client

--- Keeps what an answer sets, and forgets what it takes back.
local function keep_cookies(self, fields)
  local set = {}
  for _, field in ipairs(fields) do
    if field[1]:lower() == "set-cookie" then
      local name, value = field[2]:match("^([^=]+)=([^;]*)")
      local gone = field[2]:find("Max%-Age=0%f[%D]")
      self.cookies[name] = not gone and value or nil
      set[name] = text.percent_decode(value)
    end
  end
  return set
end

--- Runs FN and returns its value and what was logged meanwhile.
local function with_log(fn)
  local lines = {}
  log.tap(function(level, message, fields)
    lines[#lines + 1] = { level = level, message = message, fields = fields or {} }
  end)
  local ok, value = pcall(fn)
  log.tap(nil)
  if not ok then error(value, 0) end
  return value, lines
end

local TLS_OPTIONS = { version = "string", cipher = "string", sni = "string", resumed = "boolean", client = "table" }
local TLS_CLIENT_OPTIONS = { subject = "string", serial = "string", fingerprint = "string" }

--- What the request is said to have come over; `true`: TLS, whatever that is.
local function tls_of(opts)
  local tls = opts.tls
  if not tls then return nil end
  if tls == true then return {} end
  options.check("srv.test: tls", tls, TLS_OPTIONS)
  if tls.client then options.check("srv.test: tls.client", tls.client, TLS_CLIENT_OPTIONS) end
  return tls
end

local function request_of(self, method, path, opts)
  opts = options.check("srv.test", opts, REQUEST_OPTIONS, 5)
  local body, content_type = body_of(opts)
  local target = path .. (opts.query and "?" .. encode_form(opts.query) or "")
  return {
    method = method, target = target, host = opts.host or "test.local", body = body, ip = opts.ip,
    tls = tls_of(opts),
    headers = header_list(opts, content_type, cookie_header(self.cookies, opts.cookies or {})),
    body_limit = env.settings().body_limit or 1024 * 1024,
  }
end

local function site_of(self)
  return self.site or misuse "srv.test: this client was closed"
end

---@param method string
---@param path string
---@param opts table?
---@return srv.TestAnswer
function Client:request(method, path, opts)
  local request = request_of(self, method, path, opts)
  local site = site_of(self)
  local answer, lines = with_log(function() return http.test_request(site, request) end)
  answer.log = lines
  answer.cookies = keep_cookies(self, answer.fields)
  return answers.new(answer, request)
end

--- An answer that is read as it comes, for those that do not end by themselves: comes back when its head is
--- there. The client stays until close(), or until the test is over.
---@param method string
---@param path string
---@param opts table?
---@return srv.TestStream
function Client:open(method, path, opts)
  local request = request_of(self, method, path, opts)
  local opened = stream.open(http.test_open(site_of(self), request), request)
  opened.cookies = keep_cookies(self, opened.fields)
  self.open_streams[#self.open_streams + 1] = opened
  return opened
end

local SOCKET_OPTIONS = { protocols = "table", compress = "boolean" }
for name, kind in pairs(REQUEST_OPTIONS) do SOCKET_OPTIONS[name] = kind end

--- A WebSocket of the app, which is told that its client leaves when the test is over, or by close().
---@param path string
---@param opts table?  those of a request, `protocols`, `compress`
---@return srv.TestSocket?
---@return srv.TestAnswer? refusal  what was answered instead
function Client:ws(path, opts)
  opts = options.check("t:ws", opts, SOCKET_OPTIONS)
  local rules, ask = socket.plan(opts)
  opts.protocols, opts.compress = nil, nil
  local request = request_of(self, "GET", path, opts)
  local opened, refused = socket.open(request, rules, ask, function()
    local core = http.test_open(site_of(self), request)
    local answered = stream.open(core, request)
    keep_cookies(self, answered.fields)
    return answered, core
  end)
  if opened then self.open_sockets[#self.open_sockets + 1] = opened end
  return opened, refused
end

--- A real port of this machine at which the app answers until close(), for other programs and srv.http.
---@return string url  "http://127.0.0.1:40001"
function Client:listen()
  local site = site_of(self)
  if not self.port then
    local port, err = http.test_listen(site)
    if not port then error(err, 2) end
    self.port = port
  end
  return self.port:url()
end

for _, method in ipairs { "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS" } do
  Client[method:lower()] = function(self, path, opts) return self:request(method, path, opts) end
end

local function leave_streams(client)
  for _, opened in ipairs(client.open_streams) do opened:close() end
  for _, opened in ipairs(client.open_sockets) do opened:leave() end
  client.open_streams, client.open_sockets = {}, {}
end

--- Ends the app's timers and background tasks; its hooks `stop` run. Streams that are open break off, and
--- the port is closed.
function Client:close()
  if not self.site then return end
  self.site = nil
  leave_streams(self)
  if self.port then self.port:close() end
  app.stop(self.app)
end

-- Doubles -------------------------------------------------------------------------------------------------

local busted = package.loaded.busted

-- Those that somebody still has.
local clients = setmetatable({}, { __mode = "k" })

local TEST = {}
local IS_SETUP = { strict_setup = true, lazy_setup = true }
local IS_BLOCK = { describe = true, file = true }

--- How long a double stays that is made now: in a test or a before_each until that test is over, in a setup or
--- between tests until the block is, which is what comes back then.
local function scope_now()
  local current = busted and busted.current_element -- by `srv test` (srv.cli.test)
  local element = current and current()
  if not element then return TEST end
  if IS_SETUP[element.descriptor] then element = busted.parent(element) end
  return IS_BLOCK[element.descriptor] and element or TEST
end

--- What was stubbed, newest last, until its scope is over.
local stubs = {}

--- Puts FN in place of TABLE[NAME] until the test is over, or the block in whose setup it is called.
---@param t table
---@param name any
---@param fn any
function testing.stub(t, name, fn)
  stubs[#stubs + 1] = { table = t, name = name, value = rawget(t, name), scope = scope_now() }
  rawset(t, name, fn)
end

--- Takes back the stubs of SCOPE; nil: all of them.
local function take_back(scope)
  local kept = {}
  for i = #stubs, 1, -1 do
    local stub = stubs[i]
    if scope and stub.scope ~= scope then
      table.insert(kept, 1, stub)
    else
      rawset(stub.table, stub.name, stub.value)
    end
  end
  stubs = kept
end

--- Variables as srv.env reads them, as long as a stub stays; false: not set.
---@param values table<string, string|false>
function testing.env(values)
  local real = env.getenv
  testing.stub(env, "getenv", function(name)
    local value = values[name]
    if value == nil then return real(name) end
    return value or nil
  end)
end

--- Answers srv.http in the place of other servers, as long as a stub stays: "METHOD URL" -> { status,
--- headers, json, body }, a text, or a function of { method, url, headers, body } that gives one of these.
--- "*" stands for anything; what fits nothing is refused.
---@param doubles table<string, string|table|fun(request: table): any, any>
function testing.upstream(doubles) testing.stub(fetch_send, "stub", fetch_stub(doubles)) end

-- Time ----------------------------------------------------------------------------------------------------

---@class srv.TestClock
local Clock = { __name = "srv.TestClock" }
Clock.__index = Clock

-- Until when it is this file's, or nil: each file of specs has a copy of this module, the process one clock.
local clock_scope

--- Moves time on: what is due by then wakes on the way, in order, and sees the time it was due at. Returns
--- when nothing more is to run; answers of other machines are not waited for.
---@param t number|string  "5m"
---@return srv.TestClock
function Clock:advance(t)
  clock.advance(async.seconds("clock:advance", t) or misuse "clock:advance: by how long?")
  return self
end

--- Time stands as long as a stub stays, but for advance(): sleeps, timeouts, timers, TTLs, srv.now() and
--- srv.monotonic() follow it.
---@return srv.TestClock
function testing.clock()
  clock.hold()
  clock_scope = clock_scope or scope_now()
  return setmetatable({}, Clock)
end

local function release_clock(scope)
  if clock_scope == nil or scope and clock_scope ~= scope then return end
  clock.release()
  clock_scope = nil
end

-- Databases -----------------------------------------------------------------------------------------------

-- Schemas that were made, by the server's URL: dropped when the specs are over. The handles are kept: a
-- database in memory lives as long as one.
local schemas, kept = {}, {}

local function admin_of(url)
  return pool.postgres(url, { migrations = false, pool = 2 })
end

--- The URL with SCHEMA for its search path.
local function url_in(url, schema)
  return url .. (url:find("?", 1, true) and "&" or "?") .. "options=-csearch_path%3D" .. schema
end

local function postgres_db(url, opts)
  local schema = pool.fresh_name()
  local admin = admin_of(url)
  assert(admin:exec("create schema " .. schema))
  admin:close()
  schemas[#schemas + 1] = { url = url, name = schema }
  return pool.postgres(url_in(url, schema), opts)
end

--- A fresh database with the app's migrations; srv.db's options but `env`. In memory, or where DATABASE_URL
--- names a PostgreSQL a schema of its own there. As DATABASE_URL, its `url` gives it to the app.
---@param opts table?
---@return srv.Db
function testing.db(opts)
  local url = env.getenv "DATABASE_URL"
  local on_postgres = url and url:find "^postgres"
  local db = on_postgres and postgres_db(url, opts) or pool.sqlite("sqlite::memory:" .. pool.fresh_name(), opts)
  kept[#kept + 1] = db
  local ok, err = handle.settle(db)
  if not ok then error(err, 0) end
  return db
end

--- Closes what db() opened and drops its schemas; under busted that happens at the end by itself.
function testing.drop_dbs()
  for _, db in ipairs(kept) do db:close() end
  for _, schema in ipairs(schemas) do
    local admin = admin_of(schema.url)
    admin:exec(("drop schema %s cascade"):format(schema.name))
    admin:close()
  end
  kept, schemas = {}, {}
end

local function leave_all_streams()
  for client in pairs(clients) do leave_streams(client) end
end

--- Takes all doubles back; under busted that happens by itself when their test or block is over.
function testing.restore()
  take_back()
  leave_all_streams()
  release_clock()
end

local function end_block(block)
  take_back(block)
  release_clock(block)
  return nil, true
end

if busted and busted.subscribe then
  -- `true`: to be told to the others who wait for it, too.
  busted.subscribe({ "test", "end" }, function()
    leave_all_streams()
    return end_block(TEST)
  end)
  busted.subscribe({ "describe", "end" }, end_block)
  busted.subscribe({ "file", "end" }, end_block)
  busted.subscribe({ "suite", "end" }, function()
    testing.drop_dbs()
    return nil, true
  end)
end

--- A client of the app, which is started as it would be by the server.
---@param tested srv.Router
---@return srv.TestClient
local function new(tested)
  local site = app.install(tested, "srv.test's argument")
  views.prepare(tested)
  app.start(tested)
  local client = setmetatable({ app = tested, site = site, cookies = {}, open_streams = {}, open_sockets = {} }, Client)
  clients[client] = true
  return client
end

local function unknown(_, name)
  misuse("srv.test: " .. options.unknown("name", name, testing))
end

return setmetatable(testing, { __call = function(_, tested) return new(tested) end, __index = unknown })
