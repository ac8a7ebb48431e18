--- A profile in words: where the time went, function by function, line by line, wait by wait.
local terminal = require "srv.cli.terminal"
local flame_diff = require "srv.cli.flame_diff"

local flame_text = {}

local FUNCTIONS_SHOWN, LINES_SHOWN, WAITS_SHOWN, CHANGES_SHOWN = 10, 5, 5, 10
local NAME_WIDTH = 40
local SHARE_MIN = 0.001 -- of all samples: what is less is chance

local STATES = {
  { "jit", "compiled Lua" }, { "lua", "interpreted Lua" }, { "c", "C" }, { "gc", "garbage collector" },
  { "compile", "JIT compiler" },
}

local function share_text(part, whole) return ("%5.1f %%"):format(whole > 0 and 100 * part / whole or 0) end

local function cell(text, wide)
  if #text > wide then text = text:sub(1, wide - 2) .. ".." end
  return text .. (" "):rep(wide - #text)
end

local function heading(out, text) out[#out + 1] = "\n" .. terminal.out:paint("bold", text) end

local function head_line(profile)
  return ("%s: %s in %.1f s of %s at %d Hz%s"):format(profile.title or profile.app or "?",
    terminal.counted(profile.samples, "sample"), profile.seconds, terminal.counted(profile.workers, "worker"), profile.hz,
    profile.lost > 0 and ("; %d found no room"):format(profile.lost) or "")
end

local function state_line(profile)
  local states, parts = profile:states(), {}
  for _, state in ipairs(STATES) do
    if states[state[1]] then
      parts[#parts + 1] = ("%s %s"):format(state[2], (share_text(states[state[1]], profile.samples):gsub("^ +", "")))
    end
  end
  return "  " .. table.concat(parts, ", ")
end

local function add_functions(out, profile)
  heading(out, "Functions, by their own time")
  out[#out + 1] = terminal.out:paint("dim", "     self    total  function")
  for i, entry in ipairs(profile:functions()) do
    if i > FUNCTIONS_SHOWN or entry.self < SHARE_MIN * profile.samples then break end
    local place = entry.place ~= entry.name and terminal.out:paint("dim", entry.place) or ""
    out[#out + 1] = ("  %s  %s  %s %s"):format(share_text(entry.self, profile.samples),
      share_text(entry.total, profile.samples), cell(entry.name, NAME_WIDTH), place)
  end
end

local function add_lines(out, profile)
  local lines = profile:app_lines()
  if #lines == 0 then return end
  heading(out, "Lines of the app, with what they call")
  for i, line in ipairs(lines) do
    if i > LINES_SHOWN or line.count < SHARE_MIN * profile.samples then break end
    out[#out + 1] = ("  %s  %s %s"):format(share_text(line.count, profile.samples),
      terminal.out:paint(i == 1 and "red" or "dim", cell(line.place, NAME_WIDTH)),
      line.name ~= line.place and "in " .. line.name or "")
  end
end

local function add_waits(out, profile)
  local sites = profile:wait_sites()
  if #sites == 0 then return end
  heading(out, "What tasks waited for, all their time added up")
  for i = 1, math.min(WAITS_SHOWN, #sites) do
    local site = sites[i]
    out[#out + 1] = ("  %8.1f s  %s %s %s"):format(site.seconds, cell(site.wait, 10), cell(site.place, NAME_WIDTH - 10),
      site.task)
  end
end

local function notes(profile)
  local list = {}
  if profile.note then list[#list + 1] = profile.note end
  for _, worker in ipairs(profile.silent) do
    list[#list + 1] = ("worker %d gave no samples: it is stuck in C"):format(worker)
  end
  return list
end

--- The whole summary.
---@param profile srv.cli.FlameProfile
---@return string
function flame_text.summary(profile)
  local out = { head_line(profile), state_line(profile) }
  for _, note in ipairs(notes(profile)) do out[#out + 1] = terminal.out:paint("yellow", "  " .. note) end
  if profile.samples > 0 then
    add_functions(out, profile)
    add_lines(out, profile)
  end
  add_waits(out, profile)
  return table.concat(out, "\n") .. "\n"
end

--- What has changed, in points of the share of all samples.
---@param old srv.cli.FlameProfile
---@param new srv.cli.FlameProfile
---@return string
function flame_text.changes(old, new)
  local out = {}
  heading(out, "Against the earlier run")
  for i, row in ipairs(flame_diff.compare(old, new)) do
    if i > CHANGES_SHOWN or math.abs(row.change) < SHARE_MIN then break end
    local change = ("%+6.1f"):format(row.change * 100)
    out[#out + 1] = ("  %s  %s -> %s  %s %s"):format(terminal.out:paint(row.change > 0 and "red" or "green", change),
      share_text(row.old, 1), share_text(row.new, 1), cell(row.name, NAME_WIDTH), row.state or row.place)
  end
  if #out == 1 then out[2] = "  the same, as far as samples can tell" end
  return table.concat(out, "\n") .. "\n"
end

return flame_text
