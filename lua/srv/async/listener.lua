--- Listening: srv.tcp.listen and srv.unix.listen, a task for each connection (API, section 13).
---
--- The connections are taken by a task that is the caller's child, whose end closes the listener and
--- cancels the tasks of its connections. At load it is one of the generation's own: it takes no more
--- when the generation stops serving, and its connections have until drain_timeout. The socket
--- underneath lasts as long as any worker or generation listens there, so nobody is refused while an
--- app reloads.
local core = require "srv.core.listen"
local core_socket = require "srv.core.socket"
local core_task = require "srv.core.task"
local errors = require "srv.base.errors"
local generation = require "srv.async.generation"
local log = require "srv.core.log"
local options = require "srv.base.options"
local socket = require "srv.async.socket"
local sync = require "srv.async.sync"
local tls = require "srv.async.tls"

local misuse = core_task.misuse

local CONNECTIONS = 1000

local listener = {}

---@class srv.Listener
---@field address string   "127.0.0.1:9000" as it was bound, "unix:/run/x.sock"
---@field connections integer  open now
---@field private core userdata
---@field private secure srv.core.socket.Server?  nil: plain
---@field private task srv.Task
local Listener = { __name = "srv.Listener" }
Listener.__index = Listener

--- No more connections; those that are open go on to their end. Idempotent.
function Listener:close()
  self.closing = true
  self.core:close()
  self.room:set()
end

local PEERS = { closed = true, timeout = true, tls = true }

--- A peer that left or was too slow is no mistake of ours, and happens all day.
local function report(self, err)
  local is_peers = errors.is(err) and PEERS[err.code]
  log[is_peers and "debug" or "error"]("connection failed", { address = self.address, message = tostring(err) })
end

local function talk(self, sock)
  if self.secure then
    local ok, err = socket.accept(sock, self.secure)
    if not ok then return report(self, err) end
  end
  self.fn(sock)
end

--- One connection from its beginning to its end. Its mistakes end it and nothing else.
local function serve(self, connected)
  local sock = socket.wrap(connected, self.timeout)
  core.enter()
  core_task.defer(function()
    core.leave()
    self.connections = self.connections - 1
    sock:close()
    self.room:set()
  end)
  local ok, err = xpcall(talk, debug.traceback, self, sock)
  if not ok then report(self, err) end
end

local function wait_for_room(self)
  while self.connections >= self.connections_max and not self.closing do
    self.room:clear()
    self.room:wait()
  end
end

--- Until all connections are done, unless it is cancelled.
local function finish(self)
  while self.connections > 0 do
    self.room:clear()
    self.room:wait()
  end
end

local function take_all(self)
  core_task.defer(function() self.core:close() end)
  while not self.closing do
    local connected, err = self.core:accept()
    if connected then
      self.connections = self.connections + 1
      core_task.spawn(serve, self, connected)
      wait_for_room(self)
    elseif err then
      break
    end
  end
  finish(self)
end

local LISTEN_OPTIONS = { timeout = "duration", connections = "1..", tls = "table" }

local function start(self)
  if core.at_load() then
    generation.at_stop(function() self:close() end)
    return core_task.background("background", take_all, self)
  end
  return core_task.spawn(take_all, self)
end

local function server_of(where, opts)
  if not opts.tls then return nil end
  return core_socket.server(tls.server(where, opts.tls))
end

local function listen(where, address, fn, opts)
  if type(fn) ~= "function" then misuse(where .. ": a function for each connection is missing") end
  opts = options.check(where, opts, LISTEN_OPTIONS)
  local secure, fault = server_of(where, opts)
  if fault then return nil, fault end
  local opened, err = core.open(address)
  if not opened then return nil, err end
  local self = setmetatable({
    core = opened, secure = secure, fn = fn, timeout = opts.timeout, connections = 0, closing = false, room = sync.event(),
    connections_max = opts.connections or CONNECTIONS, address = opened:address(),
  }, Listener)
  self.task = start(self)
  return self
end

---@class srv.ListenOptions
---@field timeout? number|string  of each read and write of its sockets
---@field connections? integer    1000 at once in each worker; others wait to be taken
---@field tls? srv.ServerTlsOptions

--- fn(socket) runs in a task of its own for each connection, which is closed when it returns.
---@param address string  "127.0.0.1:9000", "[::]:9000"; port 0 is a free one
---@param fn fun(socket: srv.Socket)
---@param opts srv.ListenOptions?
---@return srv.Listener?
---@return srv.Error?  unavailable (taken), invalid, tls (the certificate)
function listener.tcp(address, fn, opts)
  if type(address) ~= "string" then misuse('srv.tcp.listen: an address like "127.0.0.1:9000" was expected') end
  if address:find("^unix:") then misuse "srv.tcp.listen: srv.unix.listen(path, fn) is for Unix sockets" end
  return listen("srv.tcp.listen", address, fn, opts)
end

---@param path string  "@name" is an abstract one
---@param fn fun(socket: srv.Socket)
---@param opts srv.ListenOptions?
---@return srv.Listener?
---@return srv.Error?
function listener.unix(path, fn, opts)
  if type(path) ~= "string" or path:find("\0", 1, true) then misuse "srv.unix.listen: a path was expected" end
  return listen("srv.unix.listen", "unix:" .. path, fn, opts)
end

socket.tcp.listen, socket.unix.listen = listener.tcp, listener.unix

return listener
