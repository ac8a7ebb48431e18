--- A server that a command starts, uses and ends: `srv bench --on-port`, `srv flame APP`, `srv doctor APP`.
local core = require "srv.core.process"
local exec = require "srv.async.exec"
local monotonic = require "srv.core.env".monotonic
local task = require "srv.async.task"

local server_process = {}

local LOOK = 0.02          -- seconds from look to look, until it listens
local KEPT_BYTES = 16384   -- of what it says last: shown when it fails
local END_TIME = 5         -- seconds from SIGINT to SIGKILL
local LAST_WORDS_TIME = 1  -- seconds from its end to that of its output, which a process of its own may keep open

---@class srv.cli.ServerProcess
---@field pid integer
---@field port integer
---@field has_tls boolean
---@field private process srv.Process
---@field private said { [1]: string }
---@field private readers srv.Task[]
local ServerProcess = {}
ServerProcess.__index = ServerProcess

--- Reads what it says, or its pipes would fill up and hold it. With ECHO it goes on to our stderr.
local function listen_to(stream, said, echo)
  for text in stream do
    if echo then io.stderr:write(text) end
    said[1] = (said[1] .. text):sub(-KEPT_BYTES)
  end
end

--- All that it has said until its end.
local function hear_out(self)
  for _, reader in ipairs(self.readers) do reader:wait(LAST_WORDS_TIME) end
end

--- What it has said last.
---@return string
function ServerProcess:output() return self.said[1] end

--- Its exit status, or nil while it runs.
function ServerProcess:status()
  local status = self.process:wait(0)
  return status
end

--- Ends it as Ctrl-C would, and by force after a while.
function ServerProcess:stop()
  self.process:kill "SIGINT"
  if self.process:wait(END_TIME) == nil then self.process:kill "SIGKILL" end
  hear_out(self)
end

--- Where it is to be asked.
---@return string
function ServerProcess:url() return (self.has_tls and "https" or "http") .. "://127.0.0.1:" .. self.port end

--- Whether COMMAND says that it speaks TLS, in the words of srv.
local function has_certificate(command)
  for _, word in ipairs(command) do
    if word == "--cert" or word:find "^%-%-cert=." then return true end
  end
  return false
end

local function why_ended(self, command)
  hear_out(self)
  return ("%s ended with %s before it listened%s"):format(command[1], tostring(self:status()),
    self.said[1] ~= "" and ":\n" .. self.said[1] or "")
end

local function wait_for_port(self, command, seconds)
  local limit = monotonic() + seconds
  while true do
    local ports = core.ports(self.pid)
    if ports[1] then return ports[1] end
    if self:status() ~= nil then return nil, why_ended(self, command) end
    if monotonic() > limit then
      return nil, ("%s listens on no port after %g s"):format(command[1], seconds)
    end
    task.sleep(LOOK)
  end
end

--- Starts COMMAND and waits until it listens. It ends with the task that has called this at the latest.
---@param command string[]
---@param opts { seconds: number, echo: boolean?, env: table<string, string>? }
---@return srv.cli.ServerProcess?
---@return string? problem
function server_process.start(command, opts)
  local process, err = exec.start(command, { env = opts.env })
  if not process then return nil, err.message end
  process.stdin:close()
  local self = setmetatable({ pid = process.pid, process = process, said = { "" }, has_tls = has_certificate(command) },
    ServerProcess)
  self.readers = {
    task.spawn(listen_to, process.stdout, self.said, opts.echo), task.spawn(listen_to, process.stderr, self.said, opts.echo),
  }
  local port, problem = wait_for_port(self, command, opts.seconds)
  if not port then
    self:stop()
    return nil, problem
  end
  self.port = port
  return self
end

-- TLS is no part of what an app does, unless it is asked for; a second port would be taken for the app's.
local PLAIN = { "--cert=", "--key=", "--client-ca=", "--client-cert=none", "--redirect-http=false" }

--- The command that serves APP with this very binary, on a free port of plain HTTP and with its admin socket, whatever
--- its config.lua says.
---@param app string
---@param ... string  more flags
---@return string[]
function server_process.command(app, ...)
  local command = { assert(core.program()), "run", app, "--port", "0", "--admin" }
  for _, flags in ipairs { PLAIN, { ... } } do
    for _, flag in ipairs(flags) do command[#command + 1] = flag end
  end
  return command
end

return server_process
