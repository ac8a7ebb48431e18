--- `srv repl [PID]`: a prompt into a running server. Texts run in the VM of one of its workers, as tasks: they may wait,
--- and hold up nobody for longer than slice_limit.
local admin = require "srv.cli.admin"
local is_terminal = require "srv.core.terminal".is_terminal
local options = require "srv.cli.options"
local read_stdin = require "srv.core.stdin".read
local reader = require "srv.base.reader"
local terminal = require "srv.cli.terminal"

local HISTORY_MAX = 500
local STDIN = 0

local LINE = options.new("repl", "[PID]", "a prompt into a running server", {
  { "w", "worker", "N", "the worker whose VM is asked", kind = "count", default = 0 },
  { "e", "eval", "TEXT", "runs this text, shows its values and ends" },
}, [[
Without PID it is this user's only server. A line is a Lua expression or statements; one that is not complete
goes on in the next line. Names that are set stay for the lines to come, _ is the last value, srv is there.
A text has 10 s, its waits included. Exit status 1: a text has failed, or there is no such server.

  srv repl
  srv repl 4711 --worker 1 --eval 'srv.db "sqlite:app.db":one("select count(*) as n from articles")'
]])

local HELP = [[
  1 + 1              an expression shows its values
  x = app:routes()   a name stays for the lines to come
  :worker N          asks another worker from now on
  :history, :N       what was asked; asks number N again
  :quit              ends, as Ctrl-D does
]]

---@class srv.cli.Repl
---@field about table      the server
---@field worker integer
---@field history string[]
---@field has_failed boolean
local Repl = {}
Repl.__index = Repl

local function complain(text)
  io.stderr:write(terminal.err:paint("red", text), "\n")
end

-- Which server ---------------------------------------------------------------------------------------------

local function tell_servers(servers)
  local lines = {}
  for _, about in ipairs(servers) do lines[#lines + 1] = ("  srv repl %d    %s"):format(about.pid, about.app) end
  return table.concat(lines, "\n")
end

--- The server that is meant, or what is wrong.
local function find_server(pid)
  if pid then
    if not pid:find "^%d+$" then return nil, ("a process id is a number, not %q"):format(pid) end
    local about, problem = admin.about(pid)
    if about then return about end
    return nil, problem or admin.nobody(pid)
  end
  local servers, problem = admin.servers()
  if #servers == 1 then return servers[1] end
  if #servers == 0 then return nil, problem or "no server of yours runs: start one with `srv APP`" end
  return nil, "which server?\n" .. tell_servers(servers)
end

-- One text ---------------------------------------------------------------------------------------------------

local function show(answer)
  if answer.print then io.stdout:write(answer.print, "\n") end
  for _, text in ipairs(answer.values or {}) do io.stdout:write(text, "\n") end
  if answer.error then complain(answer.error) end
  io.stdout:flush()
end

--- Runs TEXT there and shows what comes. False: it has failed, or the server has gone.
function Repl:run(text)
  local lines, err = admin.ask(self.about.pid, "eval " .. self.worker, { text = admin.framed(text) })
  local answer, problem
  while lines do
    answer, problem = lines()
    if not answer then break end
    show(answer)
    if answer.values or answer.error then
      lines() -- the end of the stream
      return answer.values ~= nil
    end
  end
  complain("no answer from the server: " .. tostring(err or problem or "it has ended"))
  return false
end

local function ends_amid(text)
  local chunk, why = loadstring(text)
  return not chunk and why:find "near '<eof>'$" ~= nil
end

--- Whether more is to come: as an expression or as statements, the compiler has met the end amid something.
local function is_incomplete(text)
  local expression = "return " .. text:gsub("^%s*=", "", 1)
  return not loadstring(expression) and (ends_amid(expression) or ends_amid(text))
end

-- The prompt ---------------------------------------------------------------------------------------------------

local COMMANDS = {}

function COMMANDS.help() io.stdout:write(HELP) end

function COMMANDS.history(self)
  for i, text in ipairs(self.history) do io.stdout:write(("%4d  %s\n"):format(i, (text:gsub("\n", "\n      ")))) end
end

function COMMANDS.worker(self, number)
  local worker = tonumber(number)
  if not worker or worker >= self.about.workers then
    return complain((":worker N: the workers are numbered 0 to %d"):format(self.about.workers - 1))
  end
  self.worker = worker
end

function COMMANDS.quit(self) self.is_over = true end

function Repl:remember(text)
  if self.history[#self.history] == text then return end
  if #self.history == HISTORY_MAX then table.remove(self.history, 1) end
  self.history[#self.history + 1] = text
end

function Repl:try(text)
  self:remember(text)
  if not self:run(text) then self.has_failed = true end
end

--- ":worker 1", ":12". True: the line was one.
function Repl:command(line)
  local name, rest = line:match "^:(%w+)%s*(.-)%s*$"
  if not name then return false end
  local earlier = self.history[tonumber(name)]
  if earlier then
    io.stdout:write(earlier, "\n")
    self:try(earlier)
  elseif COMMANDS[name] then
    COMMANDS[name](self, rest)
  else
    complain((":%s is no command; :help lists them"):format(name))
  end
  return true
end

function Repl:prompt(pending)
  if not self.is_seen then return end
  io.stdout:write(terminal.out:paint("cyan", pending and "...> " or ("%d> "):format(self.worker)))
  io.stdout:flush()
end

function Repl:greet()
  if not self.is_seen then return end
  io.stdout:write(("srv %s, %s: process %d, worker %d of %d. :help tells more, Ctrl-D ends.\n"):format(
    self.about.version, self.about.app, self.about.pid, self.worker, self.about.workers))
end

--- Reads lines until the end of the input. A thread reads them, so that what runs here goes on.
function Repl:loop()
  local input = reader.new(read_stdin)
  local pending
  while not self.is_over do
    self:prompt(pending)
    local line, err = input:line()
    if err then return complain(tostring(err)) end
    if not line then break end
    local text = pending and pending .. "\n" .. line or line
    if not pending and self:command(line) then text = "" end
    pending = is_incomplete(text) and text or nil
    if not pending and text:find "%S" then self:try(text) end
  end
  if pending then self:try(pending) end
  if self.is_seen then io.stdout:write "\n" end
end

---@param args string[]
---@return integer exit_status
return function(args)
  local opts, rest = LINE:read(args)
  if not opts then return rest end
  if #rest > 1 then return LINE:refuse "one PID is enough" end
  local about, problem = find_server(rest[1])
  if not about then
    complain("srv repl: " .. problem)
    return 1
  end
  local repl = setmetatable({
    about = about, worker = opts.worker, history = {}, has_failed = false, is_over = false,
    is_seen = is_terminal(STDIN),
  }, Repl)
  if opts.eval then return repl:run(opts.eval) and 0 or 1 end
  repl:greet()
  repl:loop()
  return repl.has_failed and not repl.is_seen and 1 or 0
end
