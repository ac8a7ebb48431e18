--- What `srv --help` and the --help of each command say, read back: whatever is made of it (completion, the manual)
--- knows what they know.
local exec = require "srv.async.exec"
local program = require "srv.core.process".program
local task = require "srv.async.task"

local help = {}

local TIME = "30s"
local AT_ONCE = 2

---@class srv.cli.HelpOption
---@field letter string?
---@field name string
---@field value string?  nil: a switch
---@field about string

---@class srv.cli.HelpCommand
---@field name string
---@field form string
---@field about string
---@field options srv.cli.HelpOption[]
---@field rest string  what stands behind the options: examples

local function text_of(...)
  local result, err = exec({ assert(program()), ... }, { timeout = TIME })
  local problem = err and err.message or result.status ~= 0 and result.stderr
  if problem then error("srv " .. table.concat({ ... }, " ") .. ": " .. problem, 0) end
  return result.stdout
end

--- "  -c, --connections N   open at once", "      --force   about", "  --port V   about"
local function read_option(line)
  local name, behind = line:gsub("^(%s+)%-%a, ", "%1"):match "^%s+%-%-(%l[%w-]*)(.*)$"
  if not name then return nil end
  local value, about = behind:match "^ ?(.-)%s%s+(.*)$"
  if not value then return nil end
  return { letter = line:match "^%s+%-(%a), ", name = name, value = value ~= "" and value or nil, about = about }
end

--- The options of a page of help, and the lines behind the last.
local function read_options(text)
  local options, rest = {}, {}
  for line in text:gmatch "([^\n]*)\n" do
    local option = read_option(line)
    if option then
      options[#options + 1], rest = option, {}
    else
      rest[#rest + 1] = line
    end
  end
  return options, (table.concat(rest, "\n"):gsub("^%s*\n", ""):gsub("%s+$", ""))
end

local function read_command(line)
  local name, form, about = line:match "^  srv (%l+) ?(.-)%s%s+(.+)$"
  return name and { name = name, form = form, about = about, options = {}, rest = "" } or nil
end

--- The commands in their order; `run`, which may be left out, has its flags.
---@return { commands: srv.cli.HelpCommand[], version: string }
function help.read()
  local front = text_of "--help"
  local commands, serves = {}, front:match "\n  srv APP .-%s%s+([^\n]+)"
  for line in front:gmatch "[^\n]+" do
    commands[#commands + 1] = read_command(line)
  end
  assert(task.map(commands, function(command)
    if command.name == "run" then command.about = serves end
    local page = command.name == "run" and front or text_of(command.name, "--help")
    command.options, command.rest = read_options(page)
    return true
  end, { limit = AT_ONCE }))
  return { commands = commands, version = text_of("--version"):match "srv (%S+)" or "" }
end

return help
