--- Two profiles beside each other, function by function. Runs differ in length and load, so shares are compared, not
--- samples.
local flame_profile = require "srv.cli.flame_profile"

local flame_diff = {}

-- Functions that have moved -----------------------------------------------------------------------------

--- Where functions without a name begin, by file: those of PROFILE that OTHER has not.
local function moved(profile, other)
  local begins, known, seen = {}, {}, {}
  for _, frame in ipairs(other.frames) do known[flame_profile.key(frame)] = true end
  for _, frame in ipairs(profile.frames) do
    local key = flame_profile.key(frame)
    if not frame.name and frame.file and not known[key] and not seen[key] then
      seen[key] = true
      begins[frame.file] = begins[frame.file] or {}
      table.insert(begins[frame.file], frame.defined)
    end
  end
  for _, list in pairs(begins) do table.sort(list) end
  return begins
end

--- A function without a name is known by the line on which it begins, which an edit above it changes. Where as many are
--- missing in a file as have come, they are the same in their order: OLD's get NEW's lines.
---@param old srv.cli.FlameProfile
---@param new srv.cli.FlameProfile
function flame_diff.align(old, new)
  local gone, come, lines = moved(old, new), moved(new, old), {}
  for file, list in pairs(gone) do
    if come[file] and #come[file] == #list then
      lines[file] = {}
      for i, defined in ipairs(list) do lines[file][defined] = come[file][i] end
    end
  end
  for _, frame in ipairs(old.frames) do
    local line = not frame.name and lines[frame.file or ""] and lines[frame.file][frame.defined]
    if line then frame.defined = line end
  end
end

-- Shares --------------------------------------------------------------------------------------------------

local function shares_of(profile)
  local by_key, all = {}, math.max(1, profile.samples)
  for _, entry in ipairs(profile:functions()) do
    by_key[entry.key] = { entry = entry, self = entry.self / all, total = entry.total / all }
  end
  return by_key
end

local NONE = { self = 0, total = 0 }

local function row_of(before, now)
  local entry = (now or before).entry
  return {
    key = entry.key, name = entry.name, place = entry.place, kind = entry.kind,
    old = (before or NONE).self, new = (now or NONE).self, change = (now or NONE).self - (before or NONE).self,
    total_old = (before or NONE).total, total_new = (now or NONE).total,
    state = not before and "new" or not now and "gone" or nil,
  }
end

---@class srv.cli.FlameChange
---@field name string
---@field place string
---@field old number     share of all samples that were in it alone, before
---@field new number
---@field change number  new - old
---@field state "new"|"gone"|nil

--- All functions of both, those with the largest change of their own time first.
---@param old srv.cli.FlameProfile
---@param new srv.cli.FlameProfile
---@return srv.cli.FlameChange[]
function flame_diff.compare(old, new)
  local before, now, rows = shares_of(old), shares_of(new), {}
  for key, entry in pairs(now) do rows[#rows + 1] = row_of(before[key], entry) end
  for key, entry in pairs(before) do
    if not now[key] then rows[#rows + 1] = row_of(entry, nil) end
  end
  table.sort(rows, function(a, b)
    local x, y = math.abs(a.change), math.abs(b.change)
    if x ~= y then return x > y end
    return a.key < b.key
  end)
  return rows
end

return flame_diff
