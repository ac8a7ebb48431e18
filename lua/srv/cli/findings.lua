--- What `srv check` finds: each with its place, what is wrong, and the way out.
local json = require "srv.base.json"

---@class srv.cli.Finding
---@field file string     below the app's folder
---@field line integer?
---@field column integer?
---@field code string     "blocking", "global_read", ...
---@field message string
---@field fix string?

---@class srv.cli.Findings
---@field list srv.cli.Finding[]
---@field private root string
---@field private lines table<string, string[]>  of files that were looked into for a comment
local Findings = {}
Findings.__index = Findings

local IGNORE = "%-%-.*check:%s*ignore"

local function lines_of(path)
  local lines, file = {}, io.open(path)
  if not file then return lines end
  for line in file:lines() do lines[#lines + 1] = line end
  file:close()
  return lines
end

--- A comment "check: ignore" in the line says that it is meant so.
function Findings:is_ignored(file, line)
  if not line then return false end
  self.lines[file] = self.lines[file] or lines_of(self.root .. "/" .. file)
  local text = self.lines[file][line]
  return text ~= nil and text:find(IGNORE) ~= nil
end

---@param finding srv.cli.Finding
function Findings:add(finding)
  finding.file = finding.file:gsub("^%./", "")
  if not self:is_ignored(finding.file, finding.line) then self.list[#self.list + 1] = finding end
end

--- MESSAGE as Lua and srv word it, "app.lua:3: what": the place and the rest. The last place in it is the innermost: a
--- module's that did not load stands behind that of the line that requires it.
---@param message string
---@return string? file
---@return integer? line
---@return string rest
---@return integer? column
local function split(message)
  local first, rest = message:match "^(.-)\nstack traceback:" or message, nil
  local file, line, column
  for at, number, behind in first:gmatch "([^%s'\"]+%.[%a]+):(%d+):([^\n]*)" do
    file, line, column = at, tonumber(number), tonumber(behind:match "^(%d+):")
    rest = behind:gsub("^%d+:", ""):gsub("^ ", "")
  end
  if not file then file, rest = first:match "^(%S+%.%a+): (.*)$" end
  return file, line, rest or first, column
end

--- The first line of the app in a traceback: where an error without a place came by.
local function place_in_trace(message)
  for file, line in message:gmatch "\n\t([^%s:]+%.lua):(%d+):" do
    if not file:find "^srv/" and not file:find "^/" then return file, tonumber(line) end
  end
end

--- Adds what an error says.
---@param message string
---@param code string
---@param file string  where MESSAGE names none
---@param fix string?
function Findings:add_error(message, code, file, fix)
  local at, line, rest, column = split(message)
  if not at then at, line = place_in_trace(message) end
  if at and at:sub(1, #self.root + 1) == self.root .. "/" then at = at:sub(#self.root + 2) end
  self:add {
    file = at or file, line = line, column = column, code = code, message = (rest:gsub("\n%s*", " ")), fix = fix,
  }
end

local function comes_first(a, b)
  if a.file ~= b.file then return a.file < b.file end
  if (a.line or 0) ~= (b.line or 0) then return (a.line or 0) < (b.line or 0) end
  if (a.column or 0) ~= (b.column or 0) then return (a.column or 0) < (b.column or 0) end
  return a.message < b.message
end

--- In the order of the files and lines; what was found twice stands once.
function Findings:sorted()
  table.sort(self.list, comes_first)
  local kept, last = {}, nil
  for _, finding in ipairs(self.list) do
    if not last or last.file ~= finding.file or last.line ~= finding.line or last.message ~= finding.message then
      kept[#kept + 1] = finding
    end
    last = finding
  end
  return kept
end

---@param finding srv.cli.Finding
---@return string  "app.lua:3:7"
local function place_of(finding)
  local parts = { finding.file }
  parts[2] = finding.line and tostring(finding.line)
  parts[3] = parts[2] and finding.column and tostring(finding.column)
  return table.concat(parts, ":")
end

--- The name of a file may have in it what a terminal obeys.
local function printable(text) return (text:gsub("[%z\1-\8\11-\31\127]", "?")) end

---@param out srv.cli.Terminal
function Findings:write(out)
  for _, finding in ipairs(self:sorted()) do
    local code = out:paint("dim", "(" .. finding.code .. ")")
    out.file:write(out:paint("bold", printable(place_of(finding))), ": ", printable(finding.message), " ", code, "\n")
    if finding.fix then out.file:write("    ", out:paint("green", printable(finding.fix)), "\n") end
  end
end

---@return string
function Findings:json()
  local list = json.array {}
  for i, finding in ipairs(self:sorted()) do list[i] = finding end
  return json.encode({ findings = list }, { pretty = true }) .. "\n"
end

---@param root string  the app's folder
---@return srv.cli.Findings
return function(root) return setmetatable({ root = root, list = {}, lines = {} }, Findings) end
