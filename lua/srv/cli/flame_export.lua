--- A profile as other programs read it: folded stacks, speedscope's JSON, and JSON of our own, which is read again.
local json = require "srv.base.json"
local flame_profile = require "srv.cli.flame_profile"

local flame_export = {}

local FORMAT = 1 -- of our own JSON
local SPEEDSCOPE = "https://www.speedscope.app/file-format-schema.json"
local STATES = { lua = true, jit = true, c = true, gc = true, compile = true, wait = true }
local KINDS = { task = true, app = true, srv = true, c = true, gc = true, compile = true }

-- Folded ----------------------------------------------------------------------------------------------

local function label(frame)
  local name, place = flame_profile.name(frame), flame_profile.place(frame)
  if place == "" or place == name then return name end
  return ("%s (%s)"):format(name, place)
end

--- What separates frames and ends a line has no place in a frame.
local function folded_label(frame) return (label(frame):gsub(";", ","):gsub("[\r\n]", " ")) end

local function labels_of(profile)
  local labels = {}
  for id, frame in ipairs(profile.frames) do labels[id] = folded_label(frame) end
  return labels
end

--- "root;child;leaf COUNT", a line for each distinct stack of functions that had the CPU; workers together.
---@param profile srv.cli.FlameProfile
---@return string
function flame_export.folded(profile)
  local labels, counts, lines = labels_of(profile), {}, {}
  for _, stack in ipairs(profile.stacks) do
    if stack.state ~= "wait" then
      local names = {}
      for i, id in ipairs(stack.frames) do names[i] = labels[id] end
      local text = table.concat(names, ";")
      counts[text] = (counts[text] or 0) + stack.count
    end
  end
  for text, count in pairs(counts) do lines[#lines + 1] = ("%s %d\n"):format(text, count) end
  table.sort(lines)
  return table.concat(lines)
end

-- speedscope ------------------------------------------------------------------------------------------

local function speedscope_frames(profile)
  local frames = {}
  for id, frame in ipairs(profile.frames) do
    frames[id] = { name = label(frame), file = frame.file, line = frame.line > 0 and frame.line or nil }
  end
  return json.array(frames)
end

local function speedscope_profile(name)
  return {
    type = "sampled", name = name, unit = "seconds", startValue = 0, endValue = 0,
    samples = json.array {}, weights = json.array {},
  }
end

local function add_sample(of_worker, stack, seconds)
  local places = {}
  for i, id in ipairs(stack.frames) do places[i] = id - 1 end
  table.insert(of_worker.samples, json.array(places))
  table.insert(of_worker.weights, seconds)
  of_worker.endValue = of_worker.endValue + seconds
end

--- One profile for each worker, and one for what its tasks waited for, where they did.
---@param profile srv.cli.FlameProfile
---@return string
function flame_export.speedscope(profile)
  local profiles, by_name = json.array {}, {}
  for _, stack in ipairs(profile.stacks) do
    local waits = stack.state == "wait"
    local name = ("worker %d%s"):format(stack.worker, waits and ", waiting" or "")
    by_name[name] = by_name[name] or speedscope_profile(name)
    add_sample(by_name[name], stack, stack.count * (waits and profile.wait_ms / 1000 or 1 / profile.hz))
  end
  for _, of_worker in pairs(by_name) do table.insert(profiles, of_worker) end
  table.sort(profiles, function(a, b) return a.name < b.name end)
  return json.encode {
    ["$schema"] = SPEEDSCOPE, exporter = "srv flame", name = profile.title or profile.app,
    activeProfileIndex = 0, shared = { frames = speedscope_frames(profile) }, profiles = profiles,
  }
end

-- Our own ---------------------------------------------------------------------------------------------

local ABOUT = {
  "app", "title", "command", "date", "version", "samples", "waits", "lost", "seconds", "hz", "wait_ms", "workers",
  "compiled", "note", "silent",
}

--- What is said about a profile, without the profile.
---@param profile srv.cli.FlameProfile
---@return table
function flame_export.about(profile)
  local about = {}
  for _, name in ipairs(ABOUT) do about[name] = profile[name] end
  about.silent = json.array(about.silent)
  return about
end

--- All of PROFILE, for --diff.
---@param profile srv.cli.FlameProfile
---@return string
function flame_export.json(profile)
  local all = flame_export.about(profile)
  all.format, all.frames, all.stacks = FORMAT, json.array(profile.frames), json.array {}
  for i, stack in ipairs(profile.stacks) do
    all.stacks[i] = {
      worker = stack.worker, state = stack.state, wait = stack.wait, count = stack.count, frames = json.array(stack.frames),
    }
  end
  return json.encode(all)
end

local function is_number(value) return type(value) == "number" and value >= 0 end

local function is_frame(frame)
  return type(frame) == "table" and KINDS[frame.kind] and is_number(frame.line) and is_number(frame.defined)
end

local function is_stack(stack, frame_count)
  if type(stack) ~= "table" or not STATES[stack.state] or type(stack.frames) ~= "table" then return false end
  if not is_number(stack.count) or not is_number(stack.worker) then return false end
  if (stack.state == "wait") ~= (type(stack.wait) == "string") then return false end
  for _, id in ipairs(stack.frames) do
    if not is_number(id) or id < 1 or id > frame_count or id % 1 ~= 0 then return false end
  end
  return true
end

local function is_sound(all)
  if type(all) ~= "table" or all.format ~= FORMAT then return false end
  if type(all.frames) ~= "table" or type(all.stacks) ~= "table" then return false end
  for _, name in ipairs { "samples", "waits", "seconds", "hz", "wait_ms", "workers" } do
    if not is_number(all[name]) then return false end
  end
  for _, frame in ipairs(all.frames) do
    if not is_frame(frame) then return false end
  end
  for _, stack in ipairs(all.stacks) do
    if not is_stack(stack, #all.frames) then return false end
  end
  return true
end

--- What json() has written.
---@param text string
---@return srv.cli.FlameProfile?
---@return string? problem
function flame_export.read_json(text)
  local all, err = json.decode(text)
  if not all then return nil, err.message end
  if not is_sound(all) then return nil, "it is no profile that srv flame --json has written" end
  return flame_profile.of(all)
end

return flame_export
