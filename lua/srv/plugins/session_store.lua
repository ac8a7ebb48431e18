--- Where sessions are kept: in srv.cache under an id, or in the cookie itself.
---
--- A store has `read(own, sent)` -> { id, data, saved_at } or nil, `write(own, state, text)` -> the
--- cookie's value, or nil when another request has ended the session meanwhile, and `forget(own, id)` -> whether it
--- was there.
--- OWN is the plugin's: name, ttl. Faults of a cache are raised: 503.
local cookie = require "srv.web.cookie"
local crypto = require "srv.base.crypto"
local env = require "srv.core.env"
local errors = require "srv.base.errors"
local json = require "srv.base.json"

local stores = {}

local ID_BYTES = 32
local DEPTH = { depth = 256 }   -- srv.json writes no deeper: what was written can be read
local COOKIE_BYTES_MAX = 3800   -- browsers take 4,096 with the name and the attributes

--- Text with the moment it was written, which decides when it is written again.
local function wrap(text) return ("%d:%s"):format(math.floor(env.now()), text) end

local function unwrap(record, id)
  local at, text = record:match "^(%d+):(.*)$"
  local data = at and json.decode(text, DEPTH)
  if type(data) ~= "table" then return nil end
  return { id = id, data = data, saved_at = tonumber(at) }
end

-- In the cache ----------------------------------------------------------------------------------------

local cache = {}

--- Hashed, so that who can read the cache cannot take over sessions; with the cookie's name, so that an id is
--- good under its own name only.
local function key_of(own, id) return "srv.session:" .. crypto.hash("sha256", own.name .. "=" .. id, "base64url") end

local function shared() return require "srv.db.cache" end

--- A value of the cache; raises when it cannot be asked.
local function must(value, err)
  if value == nil and err ~= nil then error(err, 0) end
  return value
end

function cache.read(own, sent)
  if not sent:find "^[%w_-]+$" or #sent > 2 * ID_BYTES then return nil end
  local record = must(shared():get(key_of(own, sent)))
  return type(record) == "string" and unwrap(record, sent) or nil
end

function cache.write(own, state, text)
  if state.id then
    return must(shared():replace(key_of(own, state.id), wrap(text), own.ttl)) and state.id or nil
  end
  state.id = crypto.token(ID_BYTES)
  must(shared():set(key_of(own, state.id), wrap(text), own.ttl))
  return state.id
end

function cache.forget(own, id) return must(shared():delete(key_of(own, id))) end

stores.cache = cache

-- In the cookie ---------------------------------------------------------------------------------------

local sealed = {}

--- The server's secrets, newest first, made into keys for this purpose alone.
local function keys()
  local list = {}
  for i, secret in ipairs(cookie.secrets()) do list[i] = crypto.hmac("sha256", secret, "srv.session", "raw") end
  return list
end

function sealed.read(own, sent)
  for _, key in ipairs(keys()) do
    local text = crypto.decrypt(key, sent, own.name)
    local record = text and unwrap(text, "cookie")
    if record then return record.saved_at + own.ttl > env.now() and record or nil end
  end
end

function sealed.write(own, _, text)
  local value = crypto.encrypt(keys()[1], wrap(text), own.name)
  if #value > COOKIE_BYTES_MAX then
    error(errors.coded("too_large", ('srv.session: %d bytes do not fit into a cookie; keep less, or use store = "cache"')
      :format(#value)), 0)
  end
  return value
end

function sealed.forget() return true end

stores.cookie = sealed

return stores
