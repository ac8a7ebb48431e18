--- --dev: tells of an error that nobody has looked at: `db:exec(...)` as a statement, whose `nil, err` is lost.
---
--- Whether a call's values are wanted stands in the caller's bytecode, so that is what is read, and only when
--- a call has failed. How LuaJIT encodes a call is learned from samples: its numbers differ between versions.
local env = require "srv.core.env"
local log = require "srv.core.log"
local util = require "jit.util"

local band, rshift = bit.band, bit.rshift
local getinfo = debug.getinfo

local unseen = {}

--- Faults of a peer that has gone: mostly nobody cares, and the task ends by itself.
local EXPECTED = { closed = true, cancelled = true }
local NO_RESULTS = 1 -- operand B of a call whose values are thrown away: one more than their number

local function operation(fn, pc)
  local ins = util.funcbc(fn, pc)
  if not ins then return nil end
  return band(ins, 0xff), band(rshift(ins, 8), 0xff), rshift(ins, 24), band(rshift(ins, 16), 0xff)
end

--- `t.x()` is TGETS, CALL; with `...` CALLM stands behind the arguments.
local GET = operation(function(t) t.x() end, 1)
local CALL = operation(function(t) t.x() end, 2)
local CALL_MORE = operation(function(t, ...) t.x(...) end, 3)

--- Whether all calls of something named NAME in a LINE of FN throw its values away.
local function is_thrown_away(fn, line, name)
  local named, found = {}, false -- slot of the stack -> the field that was put there
  local pc, op, a, b, c = 1, operation(fn, 1)
  while op do
    if op == GET then named[a] = util.funck(fn, -c - 1) end
    if (op == CALL or op == CALL_MORE) and named[a] == name and util.funcinfo(fn, pc).currentline == line then
      if b ~= NO_RESULTS then return false end
      found = true
    end
    pc = pc + 1
    op, a, b, c = operation(fn, pc)
  end
  return found
end

--- Level 1 is us, 2 is the wrapper's end, 3 is who called the wrapper.
local function look(name, err)
  local caller = getinfo(3, "Slf")
  if not caller or caller.what == "C" or caller.source:find("^=srv/") or EXPECTED[err.code] then return end
  if is_thrown_away(caller.func, caller.currentline, name) then
    log.warn("an error was not looked at: write assert(...), or take `nil, err`", {
      at = ("%s:%d"):format(caller.short_src, caller.currentline), call = name, err = err,
    })
  end
end

local function checked(name, ...)
  local value, err = ...
  if value == nil and type(err) == "table" then look(name, err) end
  return ...
end

local function wrap(name, fn)
  return function(...) return checked(name, fn(...)) end
end

--- With --dev, watches OBJECT's functions of these NAMES, which give `nil, err`.
---@param object table
---@param names string[]
function unseen.watch(object, names)
  if not env.dev then return end
  for _, name in ipairs(names) do object[name] = wrap(name, object[name]) end
end

return unseen
