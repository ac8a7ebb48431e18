--- Dictionaries that all workers share (API, section 10).
local core = require "srv.core.dict"
local core_task = require "srv.core.task"
local env = require "srv.core.env"
local log = require "srv.core.log"
local options = require "srv.base.options"
local units = require "srv.base.units"

local misuse = core_task.misuse

local shared = {}

local CACHE_BYTES = 64 * 1024 ^ 2

---@class srv.Shared
local Dict = core.Dict
local get, set, claim = Dict.get, Dict.set, Dict.claim

--- FN's value under KEY for TTL. The lease goes back in any case; by then those who wait find the
--- value, or one of them computes.
local function kept(self, key, ttl, lease, ok, v, err)
  if not ok then
    lease:give_back()
    error(v, 0)
  end
  if v ~= nil and lease:holds() then
    local checked, stored, fault = xpcall(set, core_task.keep_trace, self, key, v, ttl)
    lease:give_back()
    if not checked then error(stored, 0) end
    if not stored then log.warn("computed value is not kept", { key = key, err = fault }) end
  else
    lease:give_back()
  end
  return v, err
end

--- The value under KEY; if there is none, what FN(key) returns, which is kept for TTL. One computes at
--- a time, of all workers; the others wait for it. `nil, err` is not kept: the next one tries.
---@param key string
---@param ttl number|string|nil
---@param fn fun(key: string): any, srv.Error?
---@return any? v
---@return srv.Error? err
function Dict:get_or_compute(key, ttl, fn)
  if type(fn) ~= "function" then misuse("shared:get_or_compute: a function was expected, not a " .. type(fn)) end
  while true do
    local v = get(self, key)
    if v ~= nil then return v end
    local lease, err = claim(self, key)
    if lease == nil then return nil, err end
    if lease ~= true then return kept(self, key, ttl, lease, xpcall(fn, core_task.keep_trace, key)) end
  end
end

--- What this VM has opened: the size asked for, by name.
local asked = {}

--- It lives in the process, longer than the code that asked for it: a new size waits for a restart.
local function tell_size(name, wanted, has)
  if wanted and wanted ~= has then
    log.warn("shared dictionary keeps its size until a restart",
      { name = name, bytes = units.bytes_text(has), wanted = units.bytes_text(wanted) })
  end
end

--- The setting `shared`: what the operator says goes before what the code says.
local configured = env.settings().shared or {}

--- The local dictionary NAME: in the memory of this process.
---@param name string
---@param bytes integer?
---@return srv.Shared?
---@return srv.Error? err
function shared.dictionary(name, bytes)
  bytes = configured[name] or bytes
  local dict, has = core.open(name, bytes or 0)
  if not dict then return nil, has end
  tell_size(name, bytes, has)
  return dict
end

local OPTIONS = { bytes = "bytes" }

--- A dictionary that all workers share; it outlives reloads.
---@param name string
---@param opts { bytes: string|integer? }?
---@return srv.Shared?
---@return srv.Error? err
function shared.open(name, opts)
  if type(name) ~= "string" then misuse("srv.shared: a name was expected, not a " .. type(name)) end
  local bytes = options.check("srv.shared", opts, OPTIONS).bytes
  if bytes and asked[name] and asked[name] ~= bytes then
    misuse(("srv.shared: %q has %s already, and is asked for with %s"):format(name,
      units.bytes_text(asked[name]), units.bytes_text(bytes)))
  end
  asked[name] = bytes or asked[name]
  return shared.dictionary(name, bytes)
end

--- What srv.cache is where there is no Redis.
---@return srv.Shared?
---@return srv.Error? err
function shared.local_cache()
  return shared.dictionary("cache", CACHE_BYTES)
end

return shared
