--- What was seen of a server while `srv doctor` looked: the lines of the admin socket's command `vitals`
--- (docs/internals/tools.md), kept so that the rules find what they ask for.
local doctor_recording = {}

local LONG_MAX = 20000 -- long turns: ten a second on 32 workers, for a minute

---@class srv.cli.DoctorFrame
---@field name string?
---@field file string?
---@field line integer?
---@field defined integer?
---@field kind "task"|"app"|"srv"|"c"|"gc"

---@class srv.cli.DoctorStack
---@field state "lua"|"jit"|"c"|"gc"|"compile"|"wait"
---@field wait string?  what it waits for
---@field frames srv.cli.DoctorFrame[]  the outermost first
---@field count integer
---@field t number      seconds from the beginning

---@class srv.cli.DoctorTurn
---@field worker integer
---@field t number       when it ended
---@field ms number
---@field ran number     ms on a processor
---@field stalled number ms in which others had it
---@field own number     ms that are the app's
---@field stacks srv.cli.DoctorStack[]

---@class srv.cli.DoctorRecording
---@field ms integer       from line to line
---@field wait_ms integer  from look to look at waiting tasks
---@field look_ms integer
---@field workers integer
---@field lines table[]
---@field turns srv.cli.DoctorTurn[]
---@field stacks srv.cli.DoctorStack[]
---@field load { from: number, to: number }?  when it was loaded
---@field result table?   what srv bench said
---@field load_status integer|string?  how a load of the user's own ended, if badly
---@field jit { aborts: table[], flushes: integer }?
---@field private frames table<integer, srv.cli.DoctorFrame>
---@field private seen srv.cli.DoctorTurn?  whose stacks come now
local Recording = {}
Recording.__index = Recording

---@return srv.cli.DoctorRecording
function doctor_recording.new()
  return setmetatable({ ms = 100, wait_ms = 10, look_ms = 10, workers = 1, lines = {}, turns = {}, stacks = {}, frames = {} },
    Recording)
end

--- A turn is the app's fault but for the time in which it had no processor.
local function take_seen(self, line)
  local long = line.long or 0
  self.seen = {
    worker = line.seen, t = line.t, ms = long, ran = line.ran or 0, stalled = line.stalled or 0,
    own = long - (line.stalled or 0), stacks = {},
  }
  if long > 0 and #self.turns < LONG_MAX then self.turns[#self.turns + 1] = self.seen end
end

local function take_stack(self, line)
  local frames, seen = {}, self.seen
  for i, id in ipairs(line.stack) do frames[i] = self.frames[id] end
  local stack = { state = line.state, wait = line.wait, frames = frames, count = line.count, t = seen and seen.t or 0 }
  self.stacks[#self.stacks + 1] = stack
  if seen and stack.state ~= "wait" then seen.stacks[#seen.stacks + 1] = stack end
end

--- Takes a LINE of the answer. `problem`: the server would not.
---@param line table
---@return boolean is_last
---@return string? problem
function Recording:take(line)
  if line.error then return true, line.error end
  if line.done then
    self.seconds, self.dropped, self.silent = line.seconds, line.dropped, line.silent
    return true
  end
  if line.vitals then
    self.ms, self.wait_ms, self.look_ms, self.workers = line.ms, line.wait_ms, line.look_ms, line.workers
  elseif line.frame then
    self.frames[line.frame] = line
  elseif line.seen then
    take_seen(self, line)
  elseif line.stack then
    take_stack(self, line)
  elseif line.workers then
    self.lines[#self.lines + 1] = line
  end
  return false
end

return doctor_recording
