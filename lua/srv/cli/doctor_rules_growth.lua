--- Rules about what grows and does not come back: tasks, connections, descriptors, memory.
local doctor_sites = require "srv.cli.doctor_sites"
local doctor_view = require "srv.cli.doctor_view"

local rules = {}

local LEFT_MIN = 20        -- more are left after the load than before it: pools of databases keep fewer
local LEFT_PART = 0.5      -- of what there was at most: the rest has gone, so these may be on their way, too
local STEADY = 0.9         -- correlation with time, where nobody knows when the load ends
local LINES_MIN = 20       -- fewer make no trend
local LATE_MIN = 5         -- more in the last quarter of the load than in the second: a pool has filled up by then

local HEAP_BYTES = 8 * 1024 * 1024 -- of growth: less is caches and traces that fill up
local HEAP_PART = 0.2              -- of what there was in the first quarter
local KEPT_PART = 0.9              -- of it is there after the load

local function clamp(number) return math.max(0, math.min(1, number)) end

--- How much of VALUE's course a straight line explains, and how steep that is, a second.
local function trend(lines, value)
  local n, st, sv, stt, svv, stv = #lines, 0, 0, 0, 0, 0
  for _, line in ipairs(lines) do
    local t, v = line.t, value(line)
    st, sv, stt, svv, stv = st + t, sv + v, stt + t * t, svv + v * v, stv + t * v
  end
  local vt, vv, cov = n * stt - st * st, n * svv - sv * sv, n * stv - st * sv
  if n < LINES_MIN or vt <= 0 or vv <= 0 then return 0, 0 end
  return cov / math.sqrt(vt * vv), cov / vt
end

--- How many are left that were not there before; nothing if that is no leak.
local function left_over(view, value)
  if not view.is_loaded then
    local fit, slope = trend(view.lines, value)
    local grown = slope * view.seconds
    return fit >= STEADY and grown >= LEFT_MIN and grown or nil
  end
  if #view.before == 0 or #view.after == 0 then return nil end
  local before, most = view:mean(value, view.before), view:most(value)
  local left = view:least(value, view.after) - before
  if left < LEFT_MIN or left < LEFT_PART * (most - before) then return nil end
  return left
end

--- What leaks grows with each request, a pool until it is full.
local function is_still_growing(view, value)
  local n = #view.lines
  local function quarter(number)
    return view:mean(value, { unpack(view.lines, math.floor((number - 1) * n / 4) + 1, math.floor(number * n / 4)) })
  end
  return quarter(4) - quarter(2) >= LATE_MIN
end

local function growth(view, left, before, most)
  if not view.is_loaded then return ("%.0f more in %.1f s, steadily"):format(left, view.seconds) end
  return ("%.0f before the load, up to %.0f while it lasted, %.0f more than before when it was over"):format(before, most, left)
end

local function evidence_of(view, value, left)
  return { growth(view, left, view:mean(value, view.before), view:most(value)),
    view.requests > 0 and ("%.2f for each request"):format(left / view.requests) or nil }
end

local function tasks(line) return doctor_view.of_workers(line, "tasks") end
local function connections(line) return doctor_view.of_workers(line, "connections") end
local function descriptors(line) return line.fds end
local function heap(line) return doctor_view.of_workers(line, "lua") end

--- Tasks that nobody ends.
function rules.tasks(view)
  local left = left_over(view, tasks)
  if not left or not is_still_growing(view, tasks) then return nil end
  local waiting = {}
  for _, stack in ipairs(view.recording.stacks) do
    if stack.state == "wait" and (not view.is_loaded or stack.t > view.to + 0.5) then waiting[#waiting + 1] = stack end
  end
  local site = doctor_sites.first(waiting)
  local kind = waiting[#waiting] and waiting[#waiting].wait or "something"
  local place = site and (", waiting for %s at %s"):format(kind, doctor_sites.text(site)) or ""
  return {
    id = "tasks", score = clamp(0.5 + 0.4 * left / 1000), site = site,
    title = ("%.0f tasks are left over%s"):format(left, place),
    evidence = evidence_of(view, tasks, left),
    next = { view.flame }, chart = "tasks", from = view.to, to = view.to + 2,
  }
end

--- Connections of clients that stay.
function rules.connections(view)
  local left = left_over(view, connections)
  if not left then return nil end
  return {
    id = "connections", score = clamp(0.4 + 0.3 * left / 1000),
    title = ("%.0f connections of clients are left open"):format(left),
    evidence = evidence_of(view, connections, left),
    next = { "docs/guide/limits.md" }, chart = "connections", from = view.to, to = view.to + 2,
  }
end

--- Descriptors, but for those of the connections above.
function rules.descriptors(view)
  local function others(line) return descriptors(line) - connections(line) end
  local left = left_over(view, others)
  if not left or not is_still_growing(view, others) then return nil end
  return {
    id = "descriptors", score = clamp(0.5 + 0.4 * left / 1000), title = ("%.0f descriptors are left open"):format(left),
    evidence = evidence_of(view, others, left),
    next = { ("ls -l /proc/%s/fd"):format(view.pid or "PID") },
    chart = "connections", from = view.to, to = view.to + 2,
  }
end

local function quarters(view, value)
  local least, n = {}, #view.lines
  for quarter = 1, 4 do
    local from, to = math.floor((quarter - 1) * n / 4) + 1, math.floor(quarter * n / 4)
    least[quarter] = view:least(value, { unpack(view.lines, from, to) })
  end
  return least
end

--- Memory of Lua that no cycle of the collector gives back: the least of each quarter counts, for between cycles any heap grows.
function rules.memory(view)
  if #view.lines < LINES_MIN then return nil end
  local least = quarters(view, heap)
  local grown = least[4] - least[1]
  if not (least[1] < least[2] and least[2] < least[3] and least[3] < least[4]) then return nil end
  if grown < HEAP_BYTES or grown < HEAP_PART * least[1] then return nil end
  if #view.after > 0 and view:least(heap, view.after) < KEPT_PART * least[4] then return nil end
  return {
    id = "memory", score = clamp(0.5 + 0.4 * grown / (256 * 1048576)),
    title = ("Lua's memory grows: %.1f MiB in %.1f s"):format(grown / 1048576, view.seconds),
    evidence = {
      ("the least of each quarter of the time: %.1f, %.1f, %.1f and %.1f MiB"):format(least[1] / 1048576, least[2] / 1048576,
        least[3] / 1048576, least[4] / 1048576),
      view.requests > 0 and ("%.0f bytes for each request"):format(grown / view.requests) or nil,
    },
    next = { "srv repl: collectgarbage \"count\" before and after, and the sizes of your modules' tables" },
    chart = "memory", from = view.from, to = view.to,
  }
end

return rules
