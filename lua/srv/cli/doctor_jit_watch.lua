--- Runs in a worker's VM while `srv doctor` looks: where LuaJIT begins to compile and gives up.
local jit = require "jit"
local json = require "srv.base.json"
local util = require "jit.util"

local watch = {}

local PLACES_MAX = 500 -- of an app; what gives up elsewhere is not counted

local places, place_count, flushes = {}, 0, 0

--- Why recording ended, by LuaJIT's numbers (lj_traceerr.h). Those that are missing are no loss: a hook came in between
--- (this very look has some), or another trace begins there.
local REASONS = {
  [1] = "the trace is too long", [2] = "the trace is too long", [3] = "calls are too deep", [4] = "there are too many branches",
  [5] = "it has given up before, and tries no more", [7] = "this kind of instruction is not compiled",
  [11] = "an argument of a built-in function has the wrong type", [12] = "jit.off() was called for it",
  [13] = "recursion goes too deep", [15] = "this way to call a built-in function is not compiled",
  [16] = "a return from the function that began it is not compiled",
}

local function place_of(func, pc)
  local info = util.funcinfo(func, pc)
  if not info.source or info.source:sub(1, 5) == "=srv/" then return nil end
  return (info.source:gsub("^[@=]", "")), info.currentline or 0
end

local function count_abort(func, pc, code)
  local file, line = place_of(func, pc)
  if not file or not REASONS[code] then return end
  local key = ("%s:%d"):format(file, line)
  local place = places[key]
  if not place and place_count < PLACES_MAX then
    place_count = place_count + 1
    place = { file = file, line = line, count = 0 }
    places[key] = place
  end
  if place then place.count, place.reason = place.count + 1, REASONS[code] end
end

local function on_trace(what, _, func, pc, code)
  if what == "abort" then count_abort(func, pc, code) end
  if what == "flush" then flushes = flushes + 1 end
end

function watch.begin()
  places, place_count, flushes = {}, 0, 0
  jit.attach(on_trace, "trace")
end

--- What was seen, as JSON.
---@return string
function watch.finish()
  jit.attach(on_trace)
  local list = json.array {}
  for _, place in pairs(places) do list[#list + 1] = place end
  return json.encode { aborts = list, flushes = flushes }
end

return watch
