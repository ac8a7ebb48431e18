--- JSON (API, section 13): srv.json. The codec is C's (bind/ljson.h); here is what may call Lua.
---
--- C walks a value without running Lua, so that a __tojson may wait like any other code. Where it
--- meets one it gives up, and the value is resolved first: a copy with each __tojson called.
local core = require "srv.core.json"
local options = require "srv.base.options"
local suggest = require "srv.base.suggest"

---@alias srv.Json any

local json = {
  null = core.null,
  object = core.object,
  array = core.array,
  is_object = core.is_object,
  is_array = core.is_array,
  object_mark = core.object_mark,
  array_mark = core.array_mark,
}

local DEPTH_MAX = 256   -- of ljson.h; what lies deeper is C's to refuse
local CALLS_MAX = 16    -- a __tojson may give a value with a __tojson

local get_metatable = debug.getmetatable   -- a class may hide its own

local function tojson_of(value)
  local meta = get_metatable(value)
  return type(meta) == "table" and rawget(meta, "__tojson")
end

local function called(value)
  for _ = 1, CALLS_MAX do
    local kind = type(value)
    local tojson = (kind == "table" or kind == "userdata") and tojson_of(value)
    if not tojson then return value end
    value = tojson(value)
  end
  error("__tojson gave a value with a __tojson " .. CALLS_MAX .. " times over", 0)
end

local function resolve(value, depth)
  value = called(value)
  if type(value) ~= "table" or depth > DEPTH_MAX then return value end
  local copy = {}
  for key, member in next, value do copy[key] = resolve(member, depth + 1) end
  return setmetatable(copy, get_metatable(value))
end

local function has_tojson(value, depth)
  local kind = type(value)
  if kind ~= "table" then return kind == "userdata" and tojson_of(value) end
  if tojson_of(value) then return true end
  if depth > DEPTH_MAX then return false end
  for _, member in next, value do
    if has_tojson(member, depth + 1) then return true end
  end
  return false
end

--- VALUE without any __tojson: a copy in which each was called, with the table that has it, and what
--- it returned took that table's place; VALUE itself where there is none. May wait.
---@param value any
---@return srv.Json
function json.resolve(value)
  if not has_tojson(value, 1) then return value end
  return resolve(value, 1)
end

--- Misuse (what has no JSON form) is raised, blamed on the caller.
---@param value any
---@param opts? { pretty: boolean }
---@return string
function json.encode(value, opts)
  local pretty = opts and options.check("srv.json.encode", opts, { pretty = "boolean" }).pretty
  local text, message = core.encode(value, pretty)
  if text == false then text, message = core.encode(json.resolve(value), pretty) end
  if not text then error("srv.json.encode: " .. message, 2) end
  return text
end

--- The error has `line`, `column` and `path` (a JSON pointer) of the fault.
---@param text string
---@param opts? { depth: integer }
---@return srv.Json value
---@return srv.Error? err
function json.decode(text, opts)
  if type(text) ~= "string" then error("srv.json.decode: expected a string, not " .. type(text), 2) end
  if not opts then return core.decode(text) end
  local depth = options.check("srv.json.decode", opts, { depth = "number" }).depth or 64
  if depth < 1 or depth > DEPTH_MAX or depth % 1 ~= 0 then
    error("srv.json.decode: depth must be a whole number from 1 to " .. DEPTH_MAX, 2)
  end
  return core.decode(text, depth)
end

local refused = suggest.foreign("srv.json", ".")

return setmetatable(json, { __index = function(_, name) return refused[name] end })
