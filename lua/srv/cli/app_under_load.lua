--- The load of an app that a command has started: `--load '[ LINE ]'`, in the language of srv bench, or a command of
--- the user's own.
local exec = require "srv.async.exec"
local program = require "srv.core.process".program
local task = require "srv.async.task"

local app_under_load = {}

local END_TIME = 5 -- seconds for a load to end when it is asked to

--- "--load [ -c 5 / ]" as one value, as it is with quotes.
---@param args string[]
---@return string[]
function app_under_load.join_brackets(args)
  local joined, inside = {}, nil
  for i, arg in ipairs(args) do
    if not inside and arg == "[" and args[i - 1] == "--load" then
      inside = {}
    elseif inside and arg == "]" then
      joined[#joined + 1] = "[ " .. table.concat(inside, " ") .. " ]"
      inside = nil
    else
      table.insert(inside or joined, arg)
    end
  end
  return joined
end

--- The command for "[ -c 50 /a ]": srv bench takes paths for those of $PORT.
---@param line string
---@return string[]
function app_under_load.bench(line)
  local command = { assert(program()), "bench", "--no-progress", "--json" }
  for word in line:gmatch "[^%s%[%]]+" do command[#command + 1] = word end
  return command
end

---@param text string
---@return string[]
function app_under_load.shell(text) return { "/bin/sh", "-c", text } end

local function keep_output(stream, kept)
  for text in stream do kept[#kept + 1] = text end
end

---@class srv.cli.Load
---@field private process srv.Process
---@field private out string[]
---@field private err string[]
local Load = {}
Load.__index = Load

---@param command string[]
---@param port integer?
---@return srv.cli.Load?
---@return string? problem
function app_under_load.start(command, port)
  local process, err = exec.start(command, { env = { PORT = port and tostring(port) } })
  if not process then return nil, ("the load did not start: %s"):format(err.message) end
  process.stdin:close()
  local self = setmetatable({ process = process, out = {}, err = {} }, Load)
  self.reading = { task.spawn(keep_output, process.stdout, self.out), task.spawn(keep_output, process.stderr, self.err) }
  return self
end

function Load:is_over() return self.process:wait(0) ~= nil end

--- Ends it as Ctrl-C would, if it has not ended by itself.
---@return integer|string status
---@return string output
---@return string errors
function Load:finish()
  if not self:is_over() then
    self.process:kill "SIGINT"
    if self.process:wait(END_TIME) == nil then self.process:kill "SIGKILL" end
  end
  for _, reading in ipairs(self.reading) do reading:wait() end
  return self.process:wait(), table.concat(self.out), table.concat(self.err)
end

return app_under_load
