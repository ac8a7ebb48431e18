--- Guarded globals (API, section 15). The metatable is asked for new names only, so existing ones
--- cost what they always did.
local env = require "srv.core.env"
local log = require "srv.core.log"
local script = require "srv.core.script"

local globals = {}

local getinfo, rawset, find = debug.getinfo, rawset, string.find

--- Of the app, since its files are named relative to its folder; libraries have absolute paths, and
--- code made from strings belongs to whoever made it.
local function is_apps_own(source)
  return find(source, "^@[^/]") ~= nil or find(source, "^=srv/") ~= nil
end

local function on_new_name(into, name, value)
  local caller = getinfo(2, "Sl")
  if caller and is_apps_own(caller.source) then
    error(("assignment to the undeclared global %q: write `local %s`, or declare it with srv.global(%q, value)")
      :format(tostring(name), tostring(name), tostring(name)), 2)
  end
  rawset(into, name, value)
  if caller and caller.currentline > 0 then
    script.warn("a module set a global", tostring(name), ("%s:%d"):format(caller.short_src, caller.currentline))
  end
end

--- srv.global(name, value): a global of the app, declared once and for all.
---@param name string
---@param value any
function globals.declare(name, value)
  if type(name) ~= "string" then
    error(("srv.global: a name is a string, not a %s"):format(type(name)), 2)
  end
  rawset(_G, name, value)
end

-- Words of other languages for nothing. Read as globals they are nil, and `{ tag = null }` is an empty table.
local WORDS_FOR_NOTHING = { null = true, undefined = true, None = true, NULL = true }

local PLACES_MAX = 100
local told, told_count = {}, 0 ---@type table<string, true>, integer

local function on_unknown_name(_, name)
  if not WORDS_FOR_NOTHING[name] then return nil end
  local caller = getinfo(2, "Sl")
  local where = caller and ("%s:%d"):format(caller.short_src, caller.currentline) or "?"
  if told[where] or told_count == PLACES_MAX then return nil end
  told[where], told_count = true, told_count + 1
  log.warn("a name that Lua does not know was read: nothing is nil, and JSON's null is srv.null", { name = name, where = where })
end

--- With --dev a name that only looks like a value is told of; else reading costs what it always did.
function globals.guard()
  setmetatable(_G, { __newindex = on_new_name, __index = env.dev and on_unknown_name or nil })
end

return globals
