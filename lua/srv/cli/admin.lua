--- The admin sockets of this user's servers (docs/internals/tools.md): which there are, and what they answer.
local core_folder = require "srv.core.folder"
local errors = require "srv.base.errors"
local fs = require "srv.async.fs"
local json = require "srv.base.json"
local monotonic = require "srv.core.env".monotonic
local task = require "srv.async.task"
local unix = require "srv.async.unix"

local admin = {}

local RUNTIME_BYTES = 76 -- a longer one has no room for the rest of a socket's address (folder_of() in admin.c)
local CONNECT_TIME = "2s"
local ABOUT_TIME = "2s"
local START_TIME = 5   -- seconds
local LOOK = 0.02      -- from look to look
local LINE_LIMIT = "16MiB" -- of an answer

--- As server/admin.c has it.
local function folder()
  local runtime = os.getenv "XDG_RUNTIME_DIR"
  if runtime and runtime:sub(1, 1) == "/" and #runtime < RUNTIME_BYTES then return runtime .. "/srv" end
  local user = assert(fs.read "/proc/self/status"):match "\nUid:%s+%d+%s+(%d+)"
  return "/tmp/srv-" .. user
end

---@param pid integer|string
---@return string
function admin.path(pid) return ("%s/%s.sock"):format(folder(), pid) end

--- Anybody may make a folder in /tmp: who has made one for us is not told what we ask a server.
local function what_is_strange()
  local at = folder()
  if at:sub(1, 5) ~= "/tmp/" or not fs.stat(at) or core_folder.is_private(at) then return nil end
  return ("%s is not a folder of this user's alone (mode 0700), so no server has its socket there"):format(at)
end

local function connect(pid, timeout)
  local strange = what_is_strange()
  if strange then return nil, errors.new(403, strange, { code = "denied" }) end
  return unix.connect(admin.path(pid), { timeout = timeout, connect_timeout = CONNECT_TIME })
end

---@class srv.cli.AdminTalk
---@field private socket srv.Socket
local Talk = {}
Talk.__index = Talk

--- One more line for the command.
---@param text string
function Talk:say(text) self.socket:write(text, "\n") end

--- The next line of the answer. Nil: the end, or an error.
---@return table?
---@return srv.Error?
function Talk:line()
  local line, err = self.socket:read_until("\n", LINE_LIMIT)
  if line then return json.decode((line:gsub("\n$", ""))) end
  return nil, err and err.code ~= "closed" and err or nil
end

function Talk:close() self.socket:close() end

--- Sends COMMAND, and TEXT if the command takes one. The answer's lines come one after the other, as tables.
---@param pid integer|string
---@param command string
---@param opts { text: string?, timeout: string|number? }?
---@return (fun(): table?, srv.Error?)? lines  nil: the end, or an error
---@return srv.Error? err
function admin.ask(pid, command, opts)
  opts = opts or {}
  local socket, err = connect(pid, opts.timeout)
  if not socket then return nil, err end
  socket:write(command, "\n", opts.text or "")
  local talk = setmetatable({ socket = socket }, Talk)
  return function()
    local answer, problem = talk:line()
    if not answer then talk:close() end
    return answer, problem
  end
end

--- Why nobody answers for PID.
---@param pid integer|string
---@return string
function admin.nobody(pid)
  return what_is_strange() or
    ("no server of yours answers as process %s (%s): is it the process that was started, by you, not --no-admin?"):format(
      pid, admin.path(pid))
end

--- Begins COMMAND and stays, for commands that take further lines while they answer.
---@param pid integer|string
---@param command string
---@return srv.cli.AdminTalk?
---@return string? problem
function admin.open(pid, command)
  local socket = connect(pid)
  if not socket then return nil, admin.nobody(pid) end
  socket:write(command, "\n")
  return setmetatable({ socket = socket }, Talk)
end

--- A text as a command takes it: up to a line with "." alone.
---@param text string
---@return string
function admin.framed(text)
  return ("\n" .. text):gsub("\n%.", "\n.."):sub(2) .. "\n.\n"
end

--- Nil: none of ours, or it has said why not.
---@param pid integer|string
---@return { pid: integer, app: string, version: string, workers: integer }?
---@return string? problem
function admin.about(pid)
  local lines = admin.ask(pid, "about", { timeout = ABOUT_TIME })
  local about = lines and lines()
  if lines then lines() end
  if type(about) ~= "table" then return nil end
  if type(about.workers) ~= "number" then return nil, about.error and ("process %s: %s"):format(pid, about.error) end
  about.pid = tonumber(pid) -- the one to ask by, which is the supervisor's
  return about
end

--- The same of a server that was just started, which opens its socket a moment after its port.
---@param pid integer|string
---@param has_ended (fun(): boolean)?  then nobody will answer
---@return { pid: integer, app: string, version: string, workers: integer }?
function admin.await(pid, has_ended)
  local limit = monotonic() + START_TIME
  while true do
    local about = admin.about(pid)
    if about or monotonic() > limit or has_ended and has_ended() then return about end
    task.sleep(LOOK)
  end
end

--- All that answer, by their process ids.
---@return table[]
---@return string? problem  what one has said instead
function admin.servers()
  local found, said = {}, nil
  for _, entry in ipairs(fs.list(folder()) or {}) do
    local pid = tostring(entry.name or entry):match "^(%d+)%.sock$"
    local about, problem
    if pid then about, problem = admin.about(pid) end
    found[#found + 1] = about
    said = said or problem
  end
  table.sort(found, function(a, b) return a.pid < b.pid end)
  return found, said
end

return admin
