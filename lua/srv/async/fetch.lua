--- The HTTP client (API, section 8): srv.http.
---
---     local r, err = srv.http.get("http://api.example/items", { query = { page = 2 } })
---     local api = srv.http.client { base = "http://api.example", timeout = "2s", expect = "2xx" }
---     local item = api.get("/items/7"):json()
local core = require "srv.core.fetch"
local core_task = require "srv.core.task"
local errors = require "srv.base.errors"
local fetch_forward = require "srv.async.fetch_forward"
local fetch_request = require "srv.async.fetch_request"
local fetch_send = require "srv.async.fetch_send"
local fetch_url = require "srv.async.fetch_url"
local monotonic = require "srv.core.env".monotonic
local now = require "srv.core.env".now
local options = require "srv.base.options"
local unseen = require "srv.base.unseen"
local parse_time = require "srv.base.time_parse"
local tls = require "srv.async.tls"
local sleep = core_task.sleep

local misuse = core_task.misuse

-- Expectations ----------------------------------------------------------------------------------------

local function check_expected(where, one)
  local kind = type(one)
  if kind == "number" and one >= 100 and one <= 599 and one % 1 == 0 then return end
  if kind == "string" and (one:find("^[1-5]xx$") or one:find("^[1-5]%d%d$")) then return end
  misuse(('%s: option "expect" must be a status like 200, a class like "2xx" or a list of these'):format(where))
end

local function check_expect(where, expect)
  if expect == nil then return end
  for _, one in ipairs(type(expect) == "table" and expect or { expect }) do check_expected(where, one) end
end

local function fits(status, expect)
  for _, one in ipairs(type(expect) == "table" and expect or { expect }) do
    if tostring(one) == tostring(status) or one == tostring(status):sub(1, 1) .. "xx" then return true end
  end
  return false
end

local function judge(response, opts)
  if opts.expect == nil or fits(response.status, opts.expect) then return response end
  local message = ("%s %s answered %d"):format(response.method, fetch_url.shown(response.url), response.status)
  return nil, errors.coded("unexpected_status", message, { data = { response = response } })
end

-- Retries ----------------------------------------------------------------------------------------------

local BACKOFF_FIRST, BACKOFF_MAX = 0.1, 5 -- seconds
local RETRIED_STATUS = { [502] = true, [503] = true, [504] = true }
local RETRIED_CODE = { refused = true, closed = true }

--- Exponential, and none of a crowd at the same time as another.
local function backoff(attempt)
  local longest = math.min(BACKOFF_FIRST * 2 ^ (attempt - 1), BACKOFF_MAX)
  return longest * (0.5 + core.random() / 2)
end

--- Seconds that Retry-After asks for, or nil.
local function asked_delay(response)
  local value = response and response:header "retry-after"
  if not value then return nil end
  if not value:find("%D") then return tonumber(value) end
  local at = parse_time(value)
  return at and math.max(0, at - now())
end

local function is_worth_a_retry(request, response, err, sent)
  if not fetch_request.can_repeat(request) or not request.idempotent then return false end
  if response then return RETRIED_STATUS[response.status] end
  return RETRIED_CODE[err.code] or err.code == "timeout" and sent == "unsent"
end

--- One hop of redirects with its retries.
local function send_with_retries(request, deadline)
  local attempt = 0
  while true do
    local response, err, sent = fetch_send.send(request, deadline)
    attempt = attempt + 1
    if attempt > request.opts.retries or not is_worth_a_retry(request, response, err, sent) then return response, err end
    local delay = math.max(backoff(attempt), asked_delay(response) or 0)
    if monotonic() + delay >= deadline then return response, err end
    if response then response:close() end
    sleep(delay)
  end
end

-- Redirects ---------------------------------------------------------------------------------------------

local REDIRECTS = { [301] = true, [302] = true, [303] = true, [307] = true, [308] = true }

--- Where RESPONSE sends us, or nil: it is an answer.
local function redirection(request, response)
  local location = REDIRECTS[response.status] and response:header "location"
  if not location or request.opts.redirects == 0 then return nil end
  if (response.status == 307 or response.status == 308) and not fetch_request.can_repeat(request) then return nil end
  local target, err = fetch_url.resolve(request.target, location)
  if target then return target end
  return nil, errors.coded("bad_response", fetch_url.shown(response.url) .. " redirects to what is no URL", { cause = err })
end

local function send(request)
  local deadline, left = monotonic() + request.opts.timeout, request.opts.redirects
  while true do
    local response, err = send_with_retries(request, deadline)
    if not response then return nil, err end
    local target, fault = redirection(request, response)
    if fault then return nil, fault end
    if not target then return response end
    response:close()
    if left == 0 then
      return nil, errors.coded("too_many_redirects",
        ("%s: more than %d redirects"):format(fetch_url.shown(response.url), request.opts.redirects))
    end
    left = left - 1
    request = fetch_request.follow(request, response.status, target)
  end
end

-- The module --------------------------------------------------------------------------------------------

local METHODS = { get = "GET", head = "HEAD", post = "POST", put = "PUT", patch = "PATCH", delete = "DELETE" }

local function join(base, address)
  if address:find("^%a[%w+.-]*://") or not base then return address end
  if address == "" or address:find("^[?#]") then return base .. address end
  return (base:gsub("/$", "")) .. (address:sub(1, 1) == "/" and address or "/" .. address)
end

--- A client's credentials are for its base; a URL that leads elsewhere gets none of them.
local function defaults_for(defaults, address)
  if not defaults.base or not address:find("^%a[%w+.-]*://") then return defaults end
  local base, target = fetch_url.target(defaults.base), fetch_url.target(address)
  if base and target and fetch_url.is_same_origin(base, target) then return defaults end
  local fewer = {}
  for name, value in pairs(defaults) do fewer[name] = value end
  fewer.auth, fewer.unix, fewer.query, fewer.headers = nil, nil, nil, {} -- a query often holds a key
  fewer.tls = defaults.tls and tls.elsewhere(defaults.tls)
  for name, value in pairs(defaults.headers or {}) do
    local lower = tostring(name):lower()
    if lower ~= "authorization" and lower ~= "cookie" and lower ~= "host" then fewer.headers[name] = value end
  end
  return fewer
end

local function request(where, defaults, method, address, opts)
  if type(address) ~= "string" then misuse(where .. ": the URL must be a string, not a " .. type(address)) end
  opts = fetch_request.check(where, opts)
  check_expect(where, opts.expect)
  local merged = fetch_request.merge(defaults_for(defaults, address), opts)
  local made, err = fetch_request.new(where, method, join(defaults.base, address), merged)
  if not made then return nil, err end
  local response, fault = send(made)
  if not response then return nil, fault end
  return judge(response, merged)
end

---@class srv.HttpClient
---@field get fun(url: string, opts?: table): srv.HttpResponse?, srv.Error?
---@field head fun(url: string, opts?: table): srv.HttpResponse?, srv.Error?
---@field post fun(url: string, opts?: table): srv.HttpResponse?, srv.Error?
---@field put fun(url: string, opts?: table): srv.HttpResponse?, srv.Error?
---@field patch fun(url: string, opts?: table): srv.HttpResponse?, srv.Error?
---@field delete fun(url: string, opts?: table): srv.HttpResponse?, srv.Error?
---@field request fun(method: string, url: string, opts?: table): srv.HttpResponse?, srv.Error?
---@field client fun(opts: table): srv.HttpClient

local make_client

--- Defaults of DEFAULTS and of OPTS, which may go on from a base.
local function extend(defaults, opts)
  local checked = fetch_request.check("srv.http.client", opts, true)
  check_expect("srv.http.client", checked.expect)
  if checked.base and (checked.base:find("[?#]") or not fetch_url.target(checked.base)) then
    misuse(('srv.http.client: option "base" must be a URL of http or https without a query, not %q'):format(checked.base))
  end
  local merged = fetch_request.merge(defaults, checked)
  return make_client(merged)
end

function make_client(defaults)
  local client = {}
  for name, method in pairs(METHODS) do
    local where = "srv.http." .. name
    client[name] = function(address, opts) return request(where, defaults, method, address, opts) end
  end
  function client.request(method, address, opts) return request("srv.http.request", defaults, method, address, opts) end
  function client.client(opts) return extend(defaults, opts) end
  unseen.watch(client, { "get", "head", "post", "put", "patch", "delete", "request" })
  return client
end

---@class srv.Http: srv.HttpClient
local http = make_client {}

http.forward = fetch_forward.forward

local POOL = { total = "1..65536", per_origin = "1..65536", idle = "duration" }
local POOL_DEFAULTS = { total = 256, per_origin = 64, idle = 60 }

--- Sets the bounds of this worker's connections, and tells how many there are.
---@param opts { total?: integer, per_origin?: integer, idle?: number|string }?
---@return { open: integer, idle: integer, waiting: integer, opened: integer, reused: integer }
function http.pool(opts)
  if opts ~= nil then
    local checked = options.check("srv.http.pool", opts, POOL)
    for name, default in pairs(POOL_DEFAULTS) do checked[name] = checked[name] or default end
    if checked.idle < 0.001 then misuse 'srv.http.pool: option "idle" must be a millisecond or more' end
    core.configure(checked.total, checked.per_origin, math.ceil(checked.idle * 1000))
  end
  return core.stats()
end

return http
