--- srv.session (API, section 14): a table for each visitor, found again by a cookie.
---
--- `req.session` is read when it is first asked for, and written, if it has changed, before the head goes out. The
--- cookie holds a random id that we have made (one that we do not know is never taken on), or with `store = "cookie"`
--- all that is in the session, encrypted.
local cookie = require "srv.web.cookie"
local csrf = require "srv.plugins.csrf"
local env = require "srv.core.env"
local factory = require "srv.base.factory"
local json = require "srv.base.json"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local stores = require "srv.plugins.session_store"
local suggest = require "srv.base.suggest"
local units = require "srv.base.units"

local OPTIONS = { name = "string", ttl = "any", store = "cache|cookie", cookie = "table", csrf = "boolean" }

local BROWSER_SECONDS = 24 * 3600   -- what the store keeps of a session whose cookie ends with the browser
local REFRESH_SECONDS = 60          -- a session that is only read is written so often, for its time to begin anew
local FLASH = "_flash"

-- What apps see ---------------------------------------------------------------------------------------

--- What srv knows of a session, apart from what the app keeps in it.
---@type table<srv.Session, table>
local states = setmetatable({}, { __mode = "k" })

---@class srv.Session: table
local Session = { __name = "srv.Session" }
Session.__index = setmetatable(Session, { __index = suggest.foreign "req.session" })

--- A field of a method's name would take its place.
function Session:__newindex(key, value)
  if Session[key] ~= nil or key == FLASH then
    misuse(("srv.session: %q has a meaning of its own in a session: keep the value under another name"):format(key))
  end
  rawset(self, key, value)
end

--- A new id for the same session: call it when somebody logs in, so that an id that was known before is worth
--- nothing.
---@return srv.Session
function Session:rotate()
  states[self].rotates = true
  return self
end

--- Forgets all that is in it, here and in the browser. What is put in afterwards begins another one.
---@return srv.Session
function Session:destroy()
  for key in pairs(self) do self[key] = nil end
  states[self].flash, states[self].destroyed = {}, true
  return self
end

--- With a value: keeps it for the next one who asks. Without: gives it, once.
---@param key string
---@param value any
---@return any
function Session:flash(key, value)
  local flash = states[self].flash
  if value ~= nil then
    flash[key] = value
    return self
  end
  value, flash[key] = flash[key], nil
  return value
end

-- Reading and writing ---------------------------------------------------------------------------------

--- All of it as it is kept: the flash stands beside the app's fields.
local function encode(session, flash)
  local plain = json.object {}
  for key, value in pairs(session) do plain[key] = value end
  if next(flash) ~= nil then plain[FLASH] = json.object(flash) end
  return json.encode(plain)
end

--- The session of REQ, or a new one.
local function open(req, own)
  local sent = req:cookie(own.name)
  local record = sent and own.store.read(own, sent)
  local data = record and record.data or {}
  local flash = data[FLASH] or {}
  data[FLASH] = nil
  local session = setmetatable(data, Session)
  states[session] = {
    id = record and record.id, was_sent = sent ~= nil, saved_at = record and record.saved_at,
    before = record and encode(session, flash) or "{}", own = own, flash = flash,
  }
  return session
end

local function is_due(state, text, own)
  if text ~= state.before or state.rotates or state.destroyed then return true end
  return state.saved_at ~= nil and env.now() - state.saved_at >= own.refresh
end

--- Of two requests that give one session another id at the same time, one does: else there would be two of it.
local function write(res, own, state, text)
  if state.id and (state.rotates or state.destroyed) then
    local was_there = own.store.forget(own, state.id)
    if not was_there and not state.destroyed then return end
    state.id = nil
  end
  if text == "{}" and not state.saved_at or state.destroyed and text == "{}" then
    if state.destroyed and state.was_sent then res:clear_cookie(own.name, own.clearing) end
    return
  end
  local value = own.store.write(own, state, text)
  if value then res:cookie(own.name, value, own.cookie) end
end

local function save(req, res, own)
  local session = rawget(req, "session")
  local state = session and states[session]
  if session and not state then
    error("srv.session: req.session was replaced by another value, which is not kept: set fields of it instead", 0)
  end
  if not state or state.own ~= own then return end
  local text = encode(session, state.flash)
  if is_due(state, text, own) then write(res, own, state, text) end
end

-- The plugin ------------------------------------------------------------------------------------------

local function read_ttl(ttl)
  if ttl == "browser" then return BROWSER_SECONDS, nil end
  local seconds = units.duration(ttl == nil and "14d" or ttl)
  if not seconds or seconds < 1 then misuse 'srv.session: ttl must be a duration like "14d", or "browser"' end
  return seconds, seconds
end

--- The cookie's options, tried once so that a mistake shows at start.
local function cookie_options(name, given, max_age)
  local opts = {}
  for key, value in pairs(given or {}) do opts[key] = value end
  if opts.max_age ~= nil then misuse 'srv.session: the cookie lives as long as "ttl" says' end
  opts.max_age = max_age
  cookie.write(name, "x", opts, false)
  return opts
end

local function clearing_options(opts)
  local copy = {}
  for key, value in pairs(opts) do copy[key] = value end
  copy.max_age = nil
  return copy
end

---@class srv.SessionOptions
---@field name string?              "sid"
---@field ttl number|string?        "14d" from the last use on; "browser": until the browser is closed
---@field store "cache"|"cookie"?   "cookie": encrypted, up to some 3 KB, and nothing can take it back
---@field cookie table?             path, domain, same_site, secure, partitioned
---@field csrf boolean?             true: see srv.csrf

--- `req.session`, saved when it was changed.
---@param opts srv.SessionOptions?
---@return table plugin
return factory.name("srv.session", function(opts)
  opts = options.check("srv.session", opts, OPTIONS)
  local ttl, max_age = read_ttl(opts.ttl)
  local name = opts.name or "sid"
  local own = {
    name = name, ttl = ttl, refresh = math.min(REFRESH_SECONDS, ttl / 10), store = stores[opts.store or "cache"],
    cookie = cookie_options(name, opts.cookie, max_age),
  }
  own.clearing = clearing_options(own.cookie)
  local function open_own(req) return open(req, own) end
  local plugin = {
    name = "session",
    hooks = {
      request = function(req) req.open_session = open_own end,
      send = function(req, res) save(req, res, own) end,
    },
  }
  if opts.csrf ~= false then plugin.use = csrf.plugin().use end
  return plugin
end)
