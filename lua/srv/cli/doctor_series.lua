--- A recording as columns over time, for the charts of the page and for --json.
local doctor_view = require "srv.cli.doctor_view"

local doctor_series = {}

local STATES = { "lua", "jit", "c", "gc", "compile" }

local function round(number, digits)
  local factor = 10 ^ digits
  return math.floor(number * factor + 0.5) / factor
end

local function column(lines, value, digits)
  local list = {}
  for i, line in ipairs(lines) do list[i] = round(value(line), digits or 2) end
  return list
end

local function of_worker(i, field, factor)
  return function(line)
    local worker = line.workers[i]
    return worker and (worker[field] or 0) * (factor or 1) or 0
  end
end

local function each_worker(recording, field, factor, digits)
  local columns = {}
  for i = 1, recording.workers do columns[i] = column(recording.lines, of_worker(i, field, factor), digits) end
  return columns
end

local function most_of_workers(field)
  return function(line)
    local most = 0
    for _, worker in ipairs(line.workers) do most = math.max(most, worker[field] or 0) end
    return most
  end
end

local function all_workers(field, factor)
  return function(line) return doctor_view.of_workers(line, field) * (factor or 1) end
end

local function a_second(field)
  return function(line) return doctor_view.of_workers(line, field) * 1000 / line.ms end
end

-- Stacks by time ------------------------------------------------------------------------------------------

--- Which line a moment belongs to: the first that ends behind it.
local function places_of(lines)
  local at = 1
  return function(t)
    if at > #lines or at > 1 and lines[at - 1].t >= t then at = 1 end
    while at < #lines and lines[at].t < t do at = at + 1 end
    return at
  end
end

local function zeros(n)
  local list = {}
  for i = 1, n do list[i] = 0 end
  return list
end

local function add(columns, key, at, by, n)
  if not columns[key] then columns[key] = zeros(n) end
  columns[key][at] = columns[key][at] + by
end

--- Samples by state, as shares of a point's; waiting tasks by kind, in the mean.
local function from_stacks(recording)
  local lines, states, waits = recording.lines, {}, {}
  local place, sums = places_of(lines), zeros(#lines)
  for _, state in ipairs(STATES) do states[state] = zeros(#lines) end
  for _, stack in ipairs(recording.stacks) do
    local at = place(stack.t)
    if #lines > 0 and stack.state == "wait" then
      add(waits, stack.wait or "other", at, stack.count * recording.wait_ms / lines[at].ms, #lines)
    elseif #lines > 0 then
      add(states, stack.state, at, stack.count, #lines)
      sums[at] = sums[at] + stack.count
    end
  end
  for _, list in pairs(states) do
    for at = 1, #lines do list[at] = sums[at] > 0 and round(100 * list[at] / sums[at], 1) or 0 end
  end
  for _, list in pairs(waits) do
    for at = 1, #lines do list[at] = round(list[at], 2) end
  end
  return states, waits
end

local function queues(recording)
  local columns = {}
  for i, lane in ipairs(recording.lines[1] and recording.lines[1].lanes or {}) do
    columns[lane.name] = column(recording.lines, function(line) return line.lanes[i] and line.lanes[i].queued or 0 end)
  end
  columns.accept = column(recording.lines, all_workers "backlog")
  return columns
end

---@param recording srv.cli.DoctorRecording
---@return table
function doctor_series.of(recording)
  local lines = recording.lines
  local states, waits = from_stacks(recording)
  return {
    t = column(lines, function(line) return line.t end, 3),
    cpu = each_worker(recording, "cpu", 100, 1), busy = each_worker(recording, "busy", 100, 1),
    stalled = each_worker(recording, "stalled", 100, 1),
    delay = column(lines, most_of_workers "delay", 2), delay_max = column(lines, most_of_workers "delay_max", 2),
    rss = column(lines, function(line) return line.rss end, 0), lua = column(lines, all_workers "lua", 0),
    tasks = column(lines, all_workers "tasks", 0), connections = column(lines, all_workers "connections", 0),
    fds = column(lines, function(line) return line.fds end, 0),
    requests = column(lines, a_second "requests", 0), failed = column(lines, a_second "failed", 0),
    p50 = column(lines, function(line) return line.p50 end, 3), p99 = column(lines, function(line) return line.p99 end, 3),
    states = states, waits = waits, queues = queues(recording),
  }
end

return doctor_series
