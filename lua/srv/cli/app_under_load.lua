--- The load of an app that a command has started: `--load '[ LINE ]'`, in the language of srv bench, or a command of
--- the user's own.
local exec = require "srv.async.exec"
local program = require "srv.core.process".program
local options = require "srv.cli.options"
local task = require "srv.async.task"

local app_under_load = {}

local END_TIME = 5 -- seconds for a load to end when it is asked to

--- "--load [ -c 5 / ]" as one value, as it is with quotes.
---@param args string[]
---@return string[]
function app_under_load.join_brackets(args) return options.join_brackets(args, { ["--load"] = true }) end

--- The command for "[ -c 50 /a ]" and SERVER: srv bench takes paths for those of $PORT.
---@param line string
---@param server srv.cli.ServerProcess
---@return string[]
function app_under_load.bench(line, server)
  local command = { assert(program()), "bench", "--no-progress", "--json" }
  if server.has_tls then command[#command + 1] = "--insecure" end
  for _, word in ipairs(options.words(line)) do command[#command + 1] = word end
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
