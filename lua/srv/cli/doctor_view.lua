--- A recording as the rules ask about it: what was before the load, while it lasted, and after it.
local doctor_view = {}

local SETTLED = 0.3  -- seconds from the load's beginning in which caches and traces are still being made

---@class srv.cli.DoctorView
---@field recording srv.cli.DoctorRecording
---@field workers integer
---@field from number     seconds: the load's beginning
---@field to number       its end
---@field seconds number
---@field before table[]  lines
---@field lines table[]   while the load lasted
---@field after table[]
---@field is_loaded boolean  somebody knows when the load was: else all is `lines`
---@field requests integer
---@field failed integer
local View = {}
View.__index = View

local function part(lines, from, to)
  local found = {}
  for _, line in ipairs(lines) do
    if line.t > from and line.t <= to then found[#found + 1] = line end
  end
  return found
end

---@param recording srv.cli.DoctorRecording
---@return srv.cli.DoctorView
function doctor_view.new(recording)
  local lines, load = recording.lines, recording.load
  local last = lines[#lines] and lines[#lines].t or 0
  local from, to = load and load.from or 0, load and load.to or last
  if to - from > 4 * SETTLED then from = from + (load and SETTLED or 0) end
  local view = setmetatable({
    recording = recording, workers = recording.workers, from = from, to = to, seconds = math.max(to - from, 0.001),
    before = load and part(lines, 0, load.from) or {}, lines = part(lines, from, to),
    after = load and part(lines, to, math.huge) or {}, is_loaded = load ~= nil,
  }, View)
  view.requests, view.failed = view:sum "requests", view:sum "failed"
  return view
end

-- Numbers -----------------------------------------------------------------------------------------------

--- Of all workers together, in LINE.
function doctor_view.of_workers(line, field)
  local sum = 0
  for _, worker in ipairs(line.workers) do sum = sum + (worker[field] or 0) end
  return sum
end

--- The sum of FIELD over workers and lines.
---@param field string
---@return number
function View:sum(field)
  local sum = 0
  for _, line in ipairs(self.lines) do sum = sum + doctor_view.of_workers(line, field) end
  return sum
end

--- The mean of what VALUE says of each of LINES (those of the load).
---@param value fun(line: table): number
---@param lines table[]?
---@return number
function View:mean(value, lines)
  lines = lines or self.lines
  local sum = 0
  for _, line in ipairs(lines) do sum = sum + value(line) end
  return #lines > 0 and sum / #lines or 0
end

---@return number value
---@return table? line  where it was
function View:most(value, lines)
  local best, at = 0, nil
  for _, line in ipairs(lines or self.lines) do
    local number = value(line)
    if not at or number > best then best, at = number, line end
  end
  return best, at
end

function View:least(value, lines)
  return -(self:most(function(line) return -value(line) end, lines))
end

--- The mean of FIELD, worker by worker.
---@param field string
---@return number[]
function View:by_worker(field)
  local means = {}
  for i = 1, self.workers do
    means[i] = self:mean(function(line) return line.workers[i] and line.workers[i][field] or 0 end)
  end
  return means
end

-- Stacks --------------------------------------------------------------------------------------------------

--- Stacks of the load that WANTED says yes to, and how many samples they are.
---@param wanted fun(stack: srv.cli.DoctorStack): boolean
---@return srv.cli.DoctorStack[]
---@return integer
function View:stacks(wanted)
  local found, count = {}, 0
  for _, stack in ipairs(self.recording.stacks) do
    if stack.t > self.from and stack.t <= self.to + 0.1 and wanted(stack) then
      found[#found + 1], count = stack, count + stack.count
    end
  end
  return found, count
end

function doctor_view.is_running(stack) return stack.state ~= "wait" end
function doctor_view.is_waiting(stack) return stack.state == "wait" end

--- Long turns of the load.
---@return srv.cli.DoctorTurn[]
function View:turns()
  local found = {}
  for _, turn in ipairs(self.recording.turns) do
    if turn.t > self.from and turn.t <= self.to + 0.1 then found[#found + 1] = turn end
  end
  return found
end

return doctor_view
