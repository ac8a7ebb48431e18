--- What was sampled in a server (docs/internals/profiler.md): frames, stacks, and what they add up to.
local flame_profile = {}

---@class srv.cli.FlameFrame
---@field name string?
---@field file string?
---@field line integer     0: not known
---@field defined integer  the line on which the function begins; 0: a main chunk
---@field kind "task"|"app"|"srv"|"c"|"gc"|"compile"

---@class srv.cli.FlameStack
---@field worker integer
---@field state "lua"|"jit"|"c"|"gc"|"compile"|"wait"
---@field wait string?     of state "wait": what is waited for
---@field count integer    samples; of state "wait": looks
---@field frames integer[] places in the profile's `frames`, the outermost first

---@class srv.cli.FlameProfile
---@field frames srv.cli.FlameFrame[]
---@field stacks srv.cli.FlameStack[]
---@field samples integer
---@field waits integer
---@field seconds number
---@field hz number
---@field wait_ms number
---@field workers integer
local Profile = {}
Profile.__index = Profile

--- The collector and the compiler call C functions that others call too; below them they are theirs.
local OWN_STATES = { gc = "gc", compile = "compile" }
local UNSEEN = { gc = "(garbage collector)", compile = "(JIT compiler)" }

-- Frames ----------------------------------------------------------------------------------------------

--- The function of FRAME, whichever line of it ran. Two runs of the same code have the same keys.
---@param frame srv.cli.FlameFrame
---@return string
function flame_profile.key(frame)
  local known_by = frame.name or frame.defined
  return ("%s\t%s\t%s"):format(frame.kind, frame.file or "", known_by)
end

--- What people call the function: "find", or where it begins if nobody has named it.
---@param frame srv.cli.FlameFrame
---@return string
function flame_profile.name(frame)
  if frame.name then return frame.name end
  return frame.defined > 0 and ("%s:%d"):format(frame.file, frame.defined) or frame.file or "?"
end

--- Where it stands: "cache.lua:14", "ljson.c"; "" if that is not known.
---@param frame srv.cli.FlameFrame
---@return string
function flame_profile.place(frame)
  if not frame.file then return "" end
  return frame.defined > 0 and ("%s:%d"):format(frame.file, frame.defined) or frame.file
end

-- Reading ---------------------------------------------------------------------------------------------

--- A profile that lines are put into: of the admin socket, or of a file that has them.
---@return srv.cli.FlameProfile
function flame_profile.new()
  return setmetatable({
    frames = {}, stacks = {}, samples = 0, waits = 0, lost = 0, seconds = 0, hz = 1000, wait_ms = 10, workers = 1,
    silent = {}, renamed = {},
  }, Profile)
end

--- FRAME as one of KIND.
local function with_kind(self, id, kind)
  local frame = self.frames[id]
  if frame.kind == kind then return id end
  local of_kind = self.renamed[kind] or {}
  self.renamed[kind] = of_kind
  if not of_kind[id] then
    self.frames[#self.frames + 1] =
      { name = frame.name, file = frame.file, line = frame.line, defined = frame.defined, kind = kind }
    of_kind[id] = #self.frames
  end
  return of_kind[id]
end

local function unseen(self, kind)
  local of_kind = self.renamed[kind] or {}
  self.renamed[kind] = of_kind
  if not of_kind[0] then
    self.frames[#self.frames + 1] = { name = UNSEEN[kind], line = 0, defined = 0, kind = kind }
    of_kind[0] = #self.frames
  end
  return of_kind[0]
end

local function is_native(frame) return frame.kind == "c" or frame.kind == "gc" end

--- Where the work of KIND begins in FRAMES: the collector where its first function stands, since C functions call
--- it; the compiler with the first C function, since Lua does.
local function begin_of(self, frames, kind)
  local first = #frames + 1
  while first > 1 and is_native(self.frames[frames[first - 1]]) do first = first - 1 end
  for i = first, #frames do
    if kind == "compile" or self.frames[frames[i]].kind == kind then return i end
  end
  return nil
end

local function mark_own(self, frames, kind)
  local from = begin_of(self, frames, kind)
  if not from then
    frames[#frames + 1] = unseen(self, kind)
    return
  end
  for i = from, #frames do frames[i] = with_kind(self, frames[i], kind) end
end

local function take_stack(self, line)
  local frames = {}
  for i, id in ipairs(line.stack) do
    frames[i] = self.ids[id]
    if not frames[i] then return nil, ("a stack has frame %d, which was not told"):format(id) end
  end
  if OWN_STATES[line.state] then mark_own(self, frames, OWN_STATES[line.state]) end
  self.stacks[#self.stacks + 1] =
    { worker = line.worker, state = line.state, wait = line.wait, count = line.count, frames = frames }
  return true
end

local function take_frame(self, line)
  self.frames[#self.frames + 1] =
    { name = line.name, file = line.file, line = line.line or 0, defined = line.defined or 0, kind = line.kind }
  self.ids[line.frame] = #self.frames
  return true
end

--- Takes one line of the answer, as a table. Nil and what is wrong if it is none.
---@param line table
---@return true?
---@return string? problem
function Profile:take(line)
  self.ids = self.ids or {}
  if line.frame then return take_frame(self, line) end
  if line.stack then return take_stack(self, line) end
  if line.error then return nil, line.error end
  if line.profiling then
    self.workers, self.hz = line.workers or self.workers, line.hz or self.hz
  elseif line.done then
    for _, name in ipairs { "samples", "waits", "lost", "seconds", "hz", "wait_ms", "compiled", "note", "silent" } do
      if line[name] ~= nil then self[name] = line[name] end
    end
    self.is_complete = true
  end
  return true
end

-- Sums ------------------------------------------------------------------------------------------------

local function by_self(a, b)
  if a.self ~= b.self then return a.self > b.self end
  if a.total ~= b.total then return a.total > b.total end
  return a.key < b.key
end

local function sorted(map, before)
  local list = {}
  for _, entry in pairs(map) do list[#list + 1] = entry end
  table.sort(list, before)
  return list
end

local function add(map, key, count) map[key] = (map[key] or 0) + count end

--- The entry of each frame's function, by the frame's place.
local function entries_of(self)
  local by_key, of_frame = {}, {}
  for id, frame in ipairs(self.frames) do
    local key = flame_profile.key(frame)
    by_key[key] = by_key[key] or {
      key = key, name = flame_profile.name(frame), place = flame_profile.place(frame), kind = frame.kind,
      self = 0, total = 0, lines = {}, states = {},
    }
    of_frame[id] = by_key[key]
  end
  return by_key, of_frame
end

--- Counts STACK once for each function in it, however often it is called in itself.
local function count_stack(self, of_frame, stack, number)
  for _, id in ipairs(stack.frames) do
    local entry = of_frame[id]
    if entry.counted ~= number then
      entry.counted = number
      entry.total = entry.total + stack.count
    end
  end
  local leaf = stack.frames[#stack.frames]
  if not leaf then return end
  local entry = of_frame[leaf]
  entry.self = entry.self + stack.count
  add(entry.lines, self.frames[leaf].line, stack.count)
  add(entry.states, stack.state, stack.count)
end

---@class srv.cli.FlameFunction
---@field key string
---@field name string
---@field place string
---@field kind string
---@field self integer   samples in it alone
---@field total integer  samples in it and in what it calls
---@field lines table<integer, integer>   samples in it alone, by line
---@field states table<string, integer>   the same, by state

--- All functions that had the CPU, those with the most samples of their own first.
---@return srv.cli.FlameFunction[]
function Profile:functions()
  local by_key, of_frame = entries_of(self)
  for number, stack in ipairs(self.stacks) do
    if stack.state ~= "wait" then count_stack(self, of_frame, stack, number) end
  end
  for key, entry in pairs(by_key) do
    entry.counted = nil
    if entry.total == 0 then by_key[key] = nil end
  end
  return sorted(by_key, by_self)
end

local function innermost(self, stack, kind)
  for i = #stack.frames, 1, -1 do
    local frame = self.frames[stack.frames[i]]
    if frame.kind == kind then return frame end
  end
  return nil
end

local function by_count(a, b)
  if a.count ~= b.count then return a.count > b.count end
  return a.place < b.place
end

--- The lines of the app, with all that they have called of srv, C and the collector: what its author can change.
---@return { place: string, name: string, count: integer }[]
function Profile:app_lines()
  local lines = {}
  for _, stack in ipairs(self.stacks) do
    local frame = stack.state ~= "wait" and innermost(self, stack, "app")
    if frame then
      local place = ("%s:%d"):format(frame.file, frame.line)
      lines[place] = lines[place] or { place = place, name = flame_profile.name(frame), count = 0 }
      lines[place].count = lines[place].count + stack.count
    end
  end
  return sorted(lines, by_count)
end

local function wait_place(self, stack)
  local frame = innermost(self, stack, "app") or self.frames[stack.frames[#stack.frames]]
  if not frame then return "?" end
  return frame.file and ("%s:%d"):format(frame.file, frame.line) or flame_profile.name(frame)
end

--- What tasks waited for, and where: the line of the app that did, if there is one.
---@return { wait: string, place: string, task: string, count: integer, seconds: number }[]
function Profile:wait_sites()
  local sites = {}
  for _, stack in ipairs(self.stacks) do
    if stack.state == "wait" then
      local place, label = wait_place(self, stack), innermost(self, stack, "task")
      local key = stack.wait .. "\t" .. place .. "\t" .. (label and label.name or "")
      sites[key] = sites[key] or { wait = stack.wait, place = place, task = label and label.name or "", count = 0 }
      sites[key].count = sites[key].count + stack.count
    end
  end
  for _, site in pairs(sites) do site.seconds = site.count * self.wait_ms / 1000 end
  return sorted(sites, function(a, b)
    if a.count ~= b.count then return a.count > b.count end
    return a.wait .. a.place .. a.task < b.wait .. b.place .. b.task
  end)
end

--- Samples by what the CPU did.
---@return table<string, integer>
function Profile:states()
  local states = {}
  for _, stack in ipairs(self.stacks) do
    if stack.state ~= "wait" then add(states, stack.state, stack.count) end
  end
  return states
end

--- A profile of what was read from elsewhere (flame_export.read_json).
---@param fields table
---@return srv.cli.FlameProfile
function flame_profile.of(fields)
  local profile = flame_profile.new()
  for name, value in pairs(fields) do profile[name] = value end
  return profile
end

return flame_profile
