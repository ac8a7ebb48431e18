--- Places in an app's code, found in stacks: where it was, how often, and who had called it.
local doctor_sites = {}

---@class srv.cli.DoctorSite
---@field file string?   nil: no Lua of the app was about
---@field line integer?  the one that was seen most often in this function
---@field name string?   what the code calls the function
---@field calls string?  the C function that ran, as Lua knows it: "string.rep"
---@field by string?     who had called it: "etag (etag.lua:22)"
---@field task string?   "GET /a"
---@field count integer
---@field share number   of all stacks that were asked about

--- LuaJIT's own, by their symbols: lj_cf_string_rep.
local function lua_name(symbol)
  local library, name = symbol:match "^lj_cf_(%l+)_([%w_]+)$"
  if not library then return nil end
  return library == "base" and name or ("%s.%s"):format(library, name)
end

local function is_app(frame) return frame.kind == "app" and frame.file ~= nil end

--- The C function that the code at place AT has called, or nothing if it is none that an app could know.
local function called_from(frames, at)
  for i = at + 1, #frames do
    local frame = frames[i]
    if frame.kind == "c" and frame.name then
      local name = lua_name(frame.name)
      if name then return name end
    end
  end
  return nil
end

local function describe(frame)
  local place = ("%s:%d"):format(frame.file, frame.line or 0)
  return frame.name and ("%s (%s)"):format(frame.name, place) or place
end

--- The place in FRAMES that an app's author knows: the innermost one of his own.
local function innermost(frames)
  for i = #frames, 1, -1 do
    if is_app(frames[i]) then return i end
  end
  return nil
end

local function caller(frames, at)
  for i = at - 1, 1, -1 do
    if is_app(frames[i]) then return describe(frames[i]) end
  end
  return nil
end

--- What stands outside of any app code: the innermost function of srv's own Lua, or of C.
local function outside(frames)
  for i = #frames, 1, -1 do
    if frames[i].kind == "srv" then return frames[i] end
  end
  return frames[#frames]
end

local function task_of(frames)
  local first = frames[1]
  return first and first.kind == "task" and first.name or nil
end

local function raise(counts, key, by)
  if key then counts[key] = (counts[key] or 0) + by end
end

local function most(counts)
  local best, count = nil, 0
  for key, n in pairs(counts) do
    if n > count or n == count and tostring(key) < tostring(best) then best, count = key, n end
  end
  return best
end

--- One entry for each function, whichever line of it ran.
local function entry_of(found, order, frames, at)
  local frame = at and frames[at] or outside(frames) or { kind = "c" }
  local key = ("%s\t%s\t%s"):format(frame.kind, frame.file or "", frame.defined or frame.name or "")
  local entry = found[key]
  if not entry then
    entry = { frame = frame, is_app = at ~= nil, count = 0, lines = {}, names = {}, calls = {}, by = {}, tasks = {} }
    found[key], order[#order + 1] = entry, entry
  end
  return entry
end

local function to_site(entry, all)
  local frame = entry.frame
  return {
    file = entry.is_app and frame.file or nil, line = entry.is_app and most(entry.lines) or nil,
    name = most(entry.names), calls = most(entry.calls), by = most(entry.by), task = most(entry.tasks),
    count = entry.count, share = entry.count / all, is_app = entry.is_app,
  }
end

--- The functions that STACKS were in, those of most samples first.
---@param stacks srv.cli.DoctorStack[]
---@return srv.cli.DoctorSite[]
---@return integer all  samples
function doctor_sites.rank(stacks)
  local found, order, all = {}, {}, 0
  for _, stack in ipairs(stacks) do
    local at = innermost(stack.frames)
    local entry = entry_of(found, order, stack.frames, at)
    local frame = entry.is_app and stack.frames[at] or entry.frame
    entry.count, all = entry.count + stack.count, all + stack.count
    raise(entry.lines, frame.line, stack.count)
    raise(entry.names, frame.name, stack.count)
    raise(entry.tasks, task_of(stack.frames), stack.count)
    if at then
      raise(entry.calls, called_from(stack.frames, at), stack.count)
      raise(entry.by, caller(stack.frames, at), stack.count)
    end
  end
  local sites = {}
  for i, entry in ipairs(order) do sites[i] = to_site(entry, all) end
  table.sort(sites, function(a, b)
    if a.count ~= b.count then return a.count > b.count end
    return tostring(a.file) < tostring(b.file)
  end)
  return sites, all
end

--- The first of the app's own, else the first of all.
---@param stacks srv.cli.DoctorStack[]
---@return srv.cli.DoctorSite?
function doctor_sites.first(stacks)
  local sites = doctor_sites.rank(stacks)
  for _, site in ipairs(sites) do
    if site.is_app then return site end
  end
  return sites[1]
end

--- "etag.lua:10 (text_of)", or what there is: a handler that returns what it calls ("return db:one(...)") is no longer
--- on the stack.
---@param site srv.cli.DoctorSite
---@return string
function doctor_sites.text(site)
  if not site.file then return site.task and "the handler of " .. site.task or site.name or "code outside of Lua" end
  local place = ("%s:%d"):format(site.file, site.line or 0)
  return site.name and ("%s (%s)"):format(place, site.name) or place
end

return doctor_sites
