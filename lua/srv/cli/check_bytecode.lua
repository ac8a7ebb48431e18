--- What a Lua file does, as its bytecode says: which globals it reads and sets, which functions it calls, which modules it
--- requires. LuaJIT's own compiler is the parser, so what is found is what would run.
local jutil = require "jit.util"

local bytecode = {}

local funcbc, funck, funcinfo, funcuvname = jutil.funcbc, jutil.funck, jutil.funcinfo, jutil.funcuvname

-- Numbers of instructions differ from version to version, so they are learned from samples.

local function op_of(code, pc, inner)
  local fn = assert(loadstring(code))
  if inner then fn = fn() end
  return funcbc(fn, pc) % 256
end

local GGET, GSET = op_of("return x", 1), op_of("x = 1", 2)
local TGETS, KSTR = op_of("local t = ... return t.a", 2), op_of("return 'a'", 1)
local UGET = op_of("local u = ... u = 1 return function() return u end", 1, true)
local CALL, CALLM = op_of("x() return 1", 2), op_of("x(...) return 1", 3)
local CALLT, CALLMT = op_of("return x()", 2), op_of("return x(...)", 3)
local IS_CALL = { [CALL] = true, [CALLM] = true, [CALLT] = true, [CALLMT] = true }

-- The first argument's register, from that of the function: 2 where LuaJIT keeps a frame in two.
local ARGUMENT = math.floor(funcbc(assert(loadstring "x('a')"), 2) / 256) % 256

---@class srv.cli.Use
---@field kind "read"|"set"|"field"|"call"|"require"  of a global; of a path of names; with it; of a module
---@field name string    "print", "io.open", "socket.http"
---@field line integer
---@field depth integer  0: runs when the file is loaded
---@field kept boolean?  a field that is not called where it is read

local function note(walk, kind, name, pc)
  local use = { kind = kind, name = name, line = funcinfo(walk.fn, pc).currentline, depth = walk.depth }
  walk.found.uses[#walk.found.uses + 1] = use
  return use
end

local STEP = {}

STEP[GGET] = function(walk, pc, a, d)
  local name = funck(walk.fn, -d - 1)
  note(walk, "read", name, pc)
  walk.paths[a] = name
end

STEP[GSET] = function(walk, pc, _, d) note(walk, "set", funck(walk.fn, -d - 1), pc) end

STEP[KSTR] = function(walk, _, a, d)
  walk.paths[a], walk.strings[a] = nil, funck(walk.fn, -d - 1)
end

STEP[UGET] = function(walk, _, a, d) walk.paths[a] = funcuvname(walk.fn, d) end

STEP[TGETS] = function(walk, pc, a, d)
  local base = walk.paths[math.floor(d / 256)]
  walk.paths[a], walk.fields[a] = nil, nil
  if not base then return end
  local path = base .. "." .. funck(walk.fn, -(d % 256) - 1)
  local use = note(walk, "field", path, pc)
  use.kept = true
  walk.paths[a], walk.fields[a] = path, use
end

local function call(walk, pc, a)
  local path, field = walk.paths[a], walk.fields[a]
  if field and field.name == path then field.kept = false end
  local given = walk.strings[a + ARGUMENT]
  walk.paths[a] = nil
  if path ~= "require" or not given then return end
  note(walk, "require", given, pc)
  walk.paths[a] = given == "srv" and "srv" or nil -- what is required under its own name
end
for op in pairs(IS_CALL) do STEP[op] = call end

local function instruction(fn, pc)
  local code = funcbc(fn, pc)
  if not code then return nil end
  local op = code % 256
  return op, math.floor(code / 256) % 256, math.floor(code / 65536) % 65536
end

local walk_function

local function walk_constants(walk)
  for index = -1, -65536, -1 do
    local constant = funck(walk.fn, index)
    if constant == nil then return end
    if type(constant) == "proto" then
      walk_function(walk.found, constant, walk.depth + 1)
    elseif type(constant) == "string" then
      walk.found.strings[constant] = true
    elseif type(constant) == "table" then
      for _, value in pairs(constant) do
        if type(value) == "string" then walk.found.strings[value] = true end
      end
    end
  end
end

function walk_function(found, fn, depth)
  local walk = { found = found, fn = fn, depth = depth, paths = {}, strings = {}, fields = {} }
  local pc = 1
  local op, a, d = instruction(fn, pc)
  while op do
    local step = STEP[op]
    if step then step(walk, pc, a, d) else walk.paths[a], walk.strings[a], walk.fields[a] = nil, nil, nil end
    pc = pc + 1
    op, a, d = instruction(fn, pc)
  end
  walk_constants(walk)
end

--- What CHUNK and all functions in it use, in the order of their lines; and all texts that stand in it.
---@param chunk function  as the compiler gave it
---@return { uses: srv.cli.Use[], strings: table<string, true> }
function bytecode.read(chunk)
  local found = { uses = {}, strings = {} }
  walk_function(found, chunk, 0)
  for i, use in ipairs(found.uses) do use.order = i end
  table.sort(found.uses, function(a, b)
    if a.line ~= b.line then return a.line < b.line end
    return a.order < b.order
  end)
  return found
end

return bytecode
