--- srv.redis: Redis by its commands (API, section 9). Each command is a method; what is asked for in one
--- turn of the worker goes out in one write. Connections live in C (docs/internals/redis.md), shared
--- by all handles with the same URL and options.
local core = require "srv.core.redis"
local core_task = require "srv.core.task"
local crypto = require "srv.core.crypto"
local env = require "srv.core.env"
local errors = require "srv.base.errors"
local json = require "srv.core.json"
local options = require "srv.base.options"
local task = require "srv.async.task"
local tls = require "srv.async.tls"
local url_of = require "srv.base.url"

local misuse = core_task.misuse
local NULL = json.null

local redis = {}

local OPTIONS = { timeout = "duration", connect_timeout = "duration", queue = "1..1000000", pool = "1..1000", tls = "table" }
local DEFAULTS = { timeout = 5, connect_timeout = 2, queue = 10000, pool = 8 }

-- Handles -------------------------------------------------------------------------------------------------

---@class srv.Redis
---@field private core userdata
---@field [string] fun(self: srv.Redis, ...: string|number): any, srv.Error?
local Redis = { __name = "srv.Redis" }

-- Methods that are kept; Redis has some 250 commands, and names may come from anywhere.
local METHODS_MAX = 1000

--- Makes methods of names as they are asked for: `make(command)` is one.
local function methods_by_name(class, make)
  local count = 0
  return function(_, name)
    local own = rawget(class, name)
    if own or type(name) ~= "string" or name:sub(1, 2) == "__" then return own end
    local method = make((name:upper():gsub("_", "-")))
    if count < METHODS_MAX then
      count = count + 1
      rawset(class, name, method)
    end
    return method
  end
end

--- Each command by its name.
Redis.__index = methods_by_name(Redis, function(command)
  return function(self, ...) return self.core:call(command, ...) end
end)

--- A command whose name is no word of Lua's, or comes as a value: `r:call("CONFIG", "GET", "maxmemory")`.
---@param command string
---@param ... string|number
---@return any reply
---@return srv.Error? err
function Redis:call(command, ...) return self.core:call(command, ...) end

--- Calls under way go on; the connections go with the last handle to the same server.
function Redis:close() self.core:close() end

-- Transactions --------------------------------------------------------------------------------------------

---@class srv.RedisMulti
---@field [string] fun(self: srv.RedisMulti, ...: string|number): srv.RedisMulti
local Multi = { __name = "srv.RedisMulti" }

--- Each command is kept until EXEC. Arguments are counted, or a nil would cut them off unseen.
Multi.__index = methods_by_name(Multi, function(command)
  return function(self, ...)
    for i = 1, select("#", ...) do
      if select(i, ...) == nil then misuse(("%s: argument %d is nil: Redis takes strings and numbers"):format(command, i)) end
    end
    self[#self + 1] = { command, ... }
    return self
  end
end)

local MULTI_OPTIONS = { watch = "any", retries = "0.." }

--- The replies between MULTI and EXEC, and EXEC's own last.
local function block_of(commands)
  local block = { { "MULTI" } }
  for i = 1, #commands do block[i + 1] = commands[i] end
  block[#block + 1] = { "EXEC" }
  return block
end

local function is_fault(reply) return errors.is(reply) end

--- One that failed by itself did not keep the others from running: that must not go unseen.
local function check_results(results)
  for i, reply in ipairs(results) do
    if is_fault(reply) then
      return nil, errors.new(500, ("command %d of the transaction failed, the others ran: %s"):format(i, reply.message),
        { code = "redis", cause = reply, data = { results = results } })
    end
  end
  return results
end

--- What EXEC gave, from the replies of the block.
local function outcome(replies, err)
  if not replies then return nil, err end
  local last = replies[#replies]
  if last == NULL then
    return nil, errors.coded("conflict", "a watched key was changed meanwhile: nothing of the transaction ran")
  end
  if type(last) ~= "table" then return nil, errors.new(500, "EXEC gave no results: this is no Redis", { code = "redis" }) end
  if not is_fault(last) then return check_results(last) end
  for i = 1, #replies - 1 do
    if is_fault(replies[i]) then
      return nil, errors.new(500, ("command %d of the transaction was refused, nothing ran: %s")
        :format(i - 1, replies[i].message), { code = replies[i].code, cause = replies[i] })
    end
  end
  return nil, last
end

--- Whatever FN returned: nil, err calls the transaction off.
local function called_off(commands, first, second)
  return first == nil and second ~= nil or #commands == 0
end

local function run_shared(self, fn)
  local commands = setmetatable({}, Multi)
  local first, second = fn(commands)
  if first == nil and second ~= nil then return nil, second end
  if called_off(commands, first, second) then return {} end
  return outcome(self.core:batch(block_of(commands)))
end

--- A handle whose commands run now, on the connection that watches.
local function reader_of(self, lease)
  local reader = setmetatable({}, { __index = function(_, name)
    local command = name:upper():gsub("_", "-")
    return function(_, ...)
      local replies, err = lease:batch(self.core, { { command, ... } })
      if not replies then return nil, err end
      local reply = replies[1]
      if reply == NULL then return nil end
      if is_fault(reply) then return nil, reply end
      return reply
    end
  end })
  return reader
end

local function watch_command(keys)
  local command = { "WATCH" }
  for _, key in ipairs(type(keys) == "table" and keys or { keys }) do command[#command + 1] = key end
  if #command == 1 then misuse "redis:multi: `watch` names no key" end
  return command
end

--- Runs FN on a connection of its own, which is closed unless it came to rest.
local function run_watching(self, watch, fn)
  local lease = core.lease()
  local replies, err = lease:batch(self.core, { watch })
  if not replies then return nil, err end
  if is_fault(replies[1]) then
    lease:close()
    return nil, replies[1]
  end
  local commands = setmetatable({}, Multi)
  local ok, first, second = xpcall(fn, core_task.keep_trace, commands, reader_of(self, lease))
  if not ok then
    lease:close()
    error(first, 0)
  end
  if called_off(commands, first, second) then
    lease:batch(self.core, { { "UNWATCH" } }, true)
    if first == nil and second ~= nil then return nil, second end
    return {}
  end
  return outcome(lease:batch(self.core, block_of(commands), true))
end

--- Commands that run together, with nobody's between: `r:multi(function(m) m:incr("a") m:incr("b") end)`.
--- With `watch` nothing runs if a key was changed since (`conflict`), and FN gets a second handle that
--- reads now; `retries` begins anew. An error in FN, or `nil, err` from it: nothing was sent.
---@param opts { watch: string|string[]?, retries: integer? }|fun(m: srv.RedisMulti)
---@param fn (fun(m: srv.RedisMulti, now: srv.Redis): any, any)?
---@return any[]? results  one for each command
---@return srv.Error? err  conflict, redis, unavailable, timeout, busy
function Redis:multi(opts, fn)
  if fn == nil then opts, fn = nil, opts end
  if type(fn) ~= "function" then misuse "redis:multi: a function is missing" end
  local checked = options.check("redis:multi", opts, MULTI_OPTIONS)
  if not checked.watch then return run_shared(self, fn) end
  local watch, results, err = watch_command(checked.watch), nil, nil
  for _ = 0, checked.retries or 0 do
    results, err = run_watching(self, watch, fn)
    if not errors.is(err, "conflict") then break end
  end
  return results, err
end

-- Scripts ---------------------------------------------------------------------------------------------------

---@class srv.RedisScript
local Script = { __name = "srv.RedisScript" }
Script.__index = Script

--- A script that runs inside Redis. It is sent once, then called by its digest.
---@param text string  Lua, as Redis runs it
---@return srv.RedisScript
function Redis:script(text)
  if type(text) ~= "string" then misuse("redis:script: the script must be a string, not a " .. type(text)) end
  return setmetatable({ redis = self, text = text, digest = crypto.hash("sha1", text, "hex") }, Script)
end

local function words_of(keys, args)
  local words = { #keys }
  for _, key in ipairs(keys) do words[#words + 1] = key end
  for _, arg in ipairs(args) do words[#words + 1] = arg end
  return words
end

---@param keys string[]?            KEYS
---@param args (string|number)[]?   ARGV
---@return any reply
---@return srv.Error? err
function Script:call(keys, args)
  local words = words_of(keys or {}, args or {})
  local call = self.redis.core
  local reply, err = call:call("EVALSHA", self.digest, unpack(words))
  if not (err and err.code == "redis" and err.message:sub(1, 8) == "NOSCRIPT") then return reply, err end
  return call:call("EVAL", self.text, unpack(words))
end

-- Subscriptions ---------------------------------------------------------------------------------------------

local CHANNELS_MAX = 1024 -- bind/lredis_sub.c

---@class srv.RedisSubscription
---@overload fun(): string, string, string?
local Subscription = { __name = "srv.RedisSubscription" }
Subscription.__index = Subscription

--- The next message: its text, channel, and the pattern it was heard by.
---@param t number|string|nil
---@return string? text
---@return string|srv.Error channel_or_err  err: closed, timeout
---@return string? pattern
function Subscription:receive(t)
  local text, channel, pattern = self.core:receive(task.seconds("subscription:receive", t))
  if text == nil and channel == nil then return nil, errors.coded("closed", "the subscription is closed") end
  return text, channel, pattern
end

function Subscription:close() self.core:close() end

local function next_or_raise(text, channel, pattern)
  if text == nil and channel ~= nil then error(channel, 0) end
  return text, channel, pattern
end

--- For `for text, channel in r:subscribe("news") do`; what goes wrong is raised.
function Subscription:__call() return next_or_raise(self.core:receive()) end

local function subscribe(self, where, is_pattern, ...)
  local count = select("#", ...)
  if count == 0 or count > CHANNELS_MAX then
    misuse(("%s: 1 to %d names of channels were expected, not %d"):format(where, CHANNELS_MAX, count))
  end
  for i = 1, count do
    local name = select(i, ...)
    if type(name) ~= "string" then misuse(("%s: the name of a channel is a string, not a %s"):format(where, type(name))) end
  end
  local sub = core.subscribe(self.core, is_pattern, { ... })
  local ok, err = sub:confirm()
  if not ok then
    sub:close()
    error(err, 0)
  end
  return setmetatable({ core = sub }, Subscription)
end

--- `for message, channel in r:subscribe("a", "b") do`, on a connection of its own, until it is closed or
--- the task ends. Returns once Redis has confirmed it; raises what keeps it from that.
---@param ... string  channels
---@return srv.RedisSubscription
function Redis:subscribe(...) return (subscribe(self, "redis:subscribe", false, ...)) end

--- The same for patterns: "news.*".
---@param ... string  patterns
---@return srv.RedisSubscription
function Redis:psubscribe(...) return (subscribe(self, "redis:psubscribe", true, ...)) end

-- Opening -------------------------------------------------------------------------------------------------

local function check_options(opts)
  local checked = options.check("srv.redis", opts, OPTIONS)
  for name, default in pairs(DEFAULTS) do
    if checked[name] == nil then checked[name] = default end
  end
  if checked.timeout == 0 or checked.connect_timeout == 0 then misuse "srv.redis: a timeout of 0 leaves no time" end
  return {
    timeout = math.ceil(checked.timeout * 1000), connect = math.ceil(checked.connect_timeout * 1000),
    queue = checked.queue, pool = checked.pool,
  }
end

local PIN_BYTES = 32

--- What a URL may say of TLS, from the option; files are named by their paths there.
local function tls_parameters(opts)
  local settings, parameters = tls.settings("srv.redis", opts), {}
  local function add(name, value)
    if value then parameters[#parameters + 1] = name .. "=" .. url_of.encode(value) end
  end
  for _, name in ipairs { "ca", "cert", "key" } do
    if settings[name] and settings[name]:sub(1, 1) ~= "/" then
      misuse(('srv.redis: option "tls": option %q must be a path that begins with /'):format(name))
    end
    add(name, settings[name])
  end
  add("verify", settings.trusts_all and "false" or nil)
  add("server_name", settings.server_name)
  for i = 1, #(settings.pins or ""), PIN_BYTES do
    add("pin", "sha256/" .. crypto.encode("base64", settings.pins:sub(i, i + PIN_BYTES - 1)))
  end
  return table.concat(parameters, "&")
end

local function with_tls(url, opts)
  if not url:find "^rediss://" then misuse 'srv.redis: option "tls" is for URLs that begin with rediss://' end
  local parameters = tls_parameters(opts)
  if parameters == "" then return url end
  return url .. (url:find("?", 1, true) and "&" or "?") .. parameters
end

--- A handle. Does not wait: the connection is made for the first command.
---@param url string?  redis://[[user:]password@]host[:port][/db], the same with rediss:, or unix:/path; nil: REDIS_URL
---@param opts { timeout: number|string?, connect_timeout: number|string?, queue: integer?, pool: integer?, tls: table? }?
---@return srv.Redis
function redis.open(url, opts)
  if url == nil then url = env.getenv "REDIS_URL" end
  if url == nil or url == "" then misuse "srv.redis: no URL, and REDIS_URL is not set" end
  if type(url) ~= "string" then misuse("srv.redis: the URL must be a string, not a " .. type(url)) end
  local checked = check_options(opts)
  if opts and opts.tls then url = with_tls(url, opts.tls) end
  local handle, err = core.open(url, checked)
  if not handle then misuse("srv.redis: " .. err.message) end
  return setmetatable({ core = handle }, Redis)
end

--- Counters of this worker: connections, pending, calls, lost.
---@return table<string, integer>
function redis.stats() return core.stats() end

return redis
