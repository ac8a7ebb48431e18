--- What a traceback tells the app: its own lines, not srv's.
local trace = {}

--- Lines of srv's own in a traceback: "\tsrv/web/answer.lua:56: in function ...", "\t[C]: ...".
local function is_ours(line)
  return line:find("^\tsrv/") ~= nil or line:find("^\t%[C%]") ~= nil
end

--- A traceback without the lines of srv's own at its end, which are the same for every handler; nil where
--- all are ours, as those of an error that a handler has returned.
---@param stack string
---@return string?
function trace.trim(stack)
  local lines, last = {}, 0
  for line in stack:gmatch "[^\n]+" do
    lines[#lines + 1] = line
    if line:find "^\t" and not is_ours(line) then last = #lines end
  end
  return last > 0 and table.concat(lines, "\n", 1, last) or nil
end

--- "handlers.lua:12": where a function begins; nil for one of C, of srv's own, or what is no function.
---@param fn any
---@return string?
function trace.place_of(fn)
  if type(fn) ~= "function" then return nil end
  local info = debug.getinfo(fn, "S")
  if info.what == "C" or info.source:find("^=srv/") then return nil end
  return info.short_src .. ":" .. info.linedefined
end

return trace
