--- Other programs (API, section 13): srv.exec. No shell: a program and its arguments, as they are.
---
--- A process belongs to the task that started it. When that ends, whether it returned, failed or was
--- cancelled, the process and all that it has started in turn get SIGTERM, and SIGKILL two seconds later.
local core = require "srv.core.exec"
local errors = require "srv.base.errors"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local reader = require "srv.base.reader"
local task = require "srv.async.task"
local units = require "srv.base.units"

local exec = {}

local TIMEOUT = 30
local LIMIT = 10 * 1024 * 1024

local SIGNALS = {
  SIGTERM = true, SIGKILL = true, SIGINT = true, SIGHUP = true, SIGQUIT = true,
  SIGUSR1 = true, SIGUSR2 = true, SIGSTOP = true, SIGCONT = true,
}

-- What is to be run ---------------------------------------------------------------------------------------

local function is_text(v) return type(v) == "string" or type(v) == "number" end

--- As strings; the second value says why one cannot be an argument.
local function words_of(where, argv)
  if type(argv) ~= "table" or argv[1] == nil then
    misuse(where .. ': a program and its arguments were expected, like { "git", "log" }')
  end
  local words = {}
  for i = 1, #argv do
    if not is_text(argv[i]) then misuse(("%s: argument %d is a %s"):format(where, i, type(argv[i]))) end
    words[i] = tostring(argv[i])
    if words[i]:find("%z") then return nil, errors.coded("invalid", "an argument holds a NUL") end
  end
  return words
end

--- "NAME=value" of ours with CHANGES; nil: as ours.
local function environment_of(where, changes)
  if not changes then return nil end
  local all, list = core.environ(), {}
  for name, value in pairs(changes) do
    if type(name) ~= "string" or name == "" or name:find "[=%z]" then
      misuse(("%s: %s is no name of an environment variable"):format(where, tostring(name)))
    end
    if value ~= false and not is_text(value) or type(value) == "string" and value:find "%z" then
      misuse(("%s: the environment variable %s must be a string, or false to take it away"):format(where, name))
    end
    all[name] = value or nil
  end
  for name, value in pairs(all) do list[#list + 1] = name .. "=" .. value end
  return list
end

--- A program that is missing is for us to mend, whoever asked.
local function launch(words, cwd, env, has_input)
  local handle, err = core.start(words, cwd, env, has_input)
  if not handle and err.code == "not_found" then err.status = 500 end
  return handle, err
end

-- Processes -----------------------------------------------------------------------------------------------

---@class srv.ProcessInput
---@field private core userdata
---@field private name string  the program
local Input = { __name = "srv.ProcessInput" }
Input.__index = Input

--- A program that is gone is ours, and no other server's: 500.
local function about(name, err)
  if err.code ~= "closed" then return err end
  return errors.new(500, ("%s: %s"):format(name, err.message), { code = "closed" })
end

local function idle(handle, which)
  if core.is_busy(handle, which) then misuse(("process.%s: another task is using it"):format(which)) end
  return handle
end

--- All of S. Waits while the process does not read.
---@param s string
---@return true?
---@return srv.Error? err  closed: it reads no more
function Input:write(s)
  if type(s) ~= "string" then misuse("process.stdin:write: a string was expected, not a " .. type(s)) end
  local written, err = core.write(idle(self.core, "stdin"), "stdin", s)
  if written then return written end
  return nil, about(self.name, err)
end

--- The process reads the end. Idempotent.
function Input:close() core.close(self.core, "stdin") end

---@class srv.Process
---@field pid integer
---@field stdin srv.ProcessInput
---@field stdout srv.Reader
---@field stderr srv.Reader
---@field private core userdata
local Process = { __name = "srv.Process" }
Process.__index = Process

--- Its exit code, or the name of the signal that ended it.
---@param t number|string|nil
---@return integer|string|nil status
---@return srv.Error? err  timeout; closed: the task that started it is over
function Process:wait(t) return core.wait(self.core, task.seconds("process:wait", t)) end

--- To the process and those that it has started in turn.
---@param signal string?  "SIGTERM"
---@return boolean  whether anybody was there
function Process:kill(signal)
  signal = signal == nil and "SIGTERM" or signal
  if not SIGNALS[signal] then misuse("process:kill: " .. options.unknown("signal", signal, SIGNALS)) end
  return core.kill(self.core, signal)
end

local function output(handle, which, name)
  return reader.new(function(bytes) return core.read(idle(handle, which), which, bytes) end,
    function() core.close(handle, which) end, ("%s of %s"):format(which, name))
end

local function new_process(handle, name)
  return setmetatable({
    core = handle,
    pid = core.pid(handle),
    stdin = setmetatable({ core = handle, name = name }, Input),
    stdout = output(handle, "stdout", name),
    stderr = output(handle, "stderr", name),
  }, Process)
end

local START_OPTIONS = { cwd = "string", env = "table" }

--- A process whose output is read while it runs. Read stdout and stderr, or it stops when a pipe is
--- full.
---@param argv (string|number)[]  the program, found in $PATH unless it has a slash, and its arguments
---@param opts { cwd?: string, env?: table<string, string|false> }?
---@return srv.Process?
---@return srv.Error? err  not_found, denied, busy, exec
function exec.start(argv, opts)
  opts = options.check("srv.exec.start", opts, START_OPTIONS)
  local words, wrong = words_of("srv.exec.start", argv)
  local env = environment_of("srv.exec.start", opts.env)
  if not words then return nil, wrong end
  local handle, err = launch(words, opts.cwd or ".", env, true)
  if not handle then return nil, err end
  return new_process(handle, words[1])
end

-- A run ---------------------------------------------------------------------------------------------------

local function all_of(stream, which, limit)
  local parts, length = {}, 0
  for part in stream do
    parts[#parts + 1] = part
    length = length + #part
    if length > limit then
      return nil, errors.coded("too_large", ("%s has more than %s: the option `limit` allows more")
        :format(which, units.bytes_text(limit)))
    end
  end
  return table.concat(parts)
end

--- A program need not read what it is given.
local function feed(process, input)
  if input then process.stdin:write(input) end
  process.stdin:close()
  return true
end

local function run(words, cwd, env, input, limit)
  local handle, err = launch(words, cwd, env, input ~= nil)
  if not handle then return nil, err end
  local process = new_process(handle, words[1])
  local stdout, stderr = task.all({ all_of, process.stdout, "stdout of " .. words[1], limit },
    { all_of, process.stderr, "stderr of " .. words[1], limit }, { feed, process, input })
  if not stdout then return nil, stderr end
  return { status = process:wait(), stdout = stdout, stderr = stderr }
end

local RUN_OPTIONS = { input = "string", cwd = "string", env = "table", timeout = "duration", limit = "bytes" }

---@class srv.ExecResult
---@field status integer|string  exit code, or the signal's name: "SIGKILL"
---@field stdout string
---@field stderr string

---@class srv.ExecOptions
---@field input? string
---@field cwd? string  the app's folder
---@field env? table<string, string|false>  what differs from ours
---@field timeout? number|string  "30s"
---@field limit? integer|string  "10MiB", of each output

---@param argv (string|number)[]
---@param opts srv.ExecOptions?
---@return srv.ExecResult?
---@return srv.Error? err  not_found, denied, timeout, too_large, busy, exec
local function call(_, argv, opts)
  opts = options.check("srv.exec", opts, RUN_OPTIONS)
  local words, wrong = words_of("srv.exec", argv)
  local env = environment_of("srv.exec", opts.env)
  if not words then return nil, wrong end
  local timeout = opts.timeout or TIMEOUT
  local result, err = task.timeout(timeout, run, words, opts.cwd or ".", env, opts.input, opts.limit or LIMIT)
  if result then return result end
  if err.code == "timeout" then
    err = errors.coded("timeout", ("%s took longer than %s and was ended"):format(words[1], units.duration_text(timeout)))
  end
  return nil, err
end

return setmetatable(exec, { __call = call })
