--- Datagrams: srv.udp (API, section 13).
local core = require "srv.core.udp"
local dns = require "srv.async.dns"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"

local udp = {}

---@class srv.Udp
---@field private core userdata
---@field private timeout number?
local Udp = { __name = "srv.Udp" }
Udp.__index = Udp

local function check_port(where, port, least)
  if type(port) ~= "number" or port < least or port > 65535 or port % 1 ~= 0 then
    misuse(("%s: a port from %d to 65535 was expected, not %s"):format(where, least, tostring(port)))
  end
end

local function first_address(where, host)
  if type(host) ~= "string" then misuse(("%s: a host was expected, not a %s"):format(where, type(host))) end
  local found, err = dns.resolve(host)
  return found and found[1], err
end

--- One datagram, to the peer it is connected to or to HOST and PORT.
---@param bytes string
---@param host string?
---@param port integer?
---@return true?
---@return srv.Error?  closed, refused, too_large, dns, unavailable
function Udp:send(bytes, host, port)
  if type(bytes) ~= "string" then misuse("udp:send: a text was expected, not a " .. type(bytes)) end
  local ip, err
  if host ~= nil then
    check_port("udp:send", port, 1)
    ip, err = first_address("udp:send", host)
    if not ip then return nil, err end
  elseif not self.connected then
    misuse "udp:send: to whom? give a host and a port, or srv.udp.connect()"
  end
  local ok
  repeat ok, err = self.core:send(bytes, ip, port) until ok ~= false
  return ok, err
end

--- The next datagram, and who sent it.
---@return string? bytes
---@return string|srv.Error ip  closed, timeout, refused
---@return integer port
function Udp:receive()
  while true do
    local bytes, ip, port = self.core:receive(self.timeout)
    if bytes ~= false then return bytes, ip, port end
  end
end

--- Idempotent; who waits in another task gets `closed`.
function Udp:close() self.core:close() end

---@return string? ip
---@return integer? port
function Udp:address() return self.core:address() end

local OPTIONS = { timeout = "duration" }

local function wrap(opened, connected, opts)
  return setmetatable({ core = opened, connected = connected, timeout = opts.timeout }, Udp)
end

--- For datagrams from anybody: "127.0.0.1:9000", "[::]:9000"; port 0 is a free one. Each worker has a
--- socket of the address, a sender's datagrams all come to one of them; a reload keeps it.
---@param address string
---@param opts { timeout?: number|string }?  of each receive
---@return srv.Udp?
---@return srv.Error?  unavailable (taken), invalid
function udp.bind(address, opts)
  opts = options.check("srv.udp.bind", opts, OPTIONS)
  local host, port = tostring(address):match("^(.+):(%d+)$")
  if not host then misuse(('srv.udp.bind: an address like "127.0.0.1:9000" was expected, not %s'):format(tostring(address))) end
  check_port("srv.udp.bind", tonumber(port), 0)
  local ip, err = first_address("srv.udp.bind", host)
  if not ip then return nil, err end
  local opened
  opened, err = core.bind(ip, tonumber(port))
  if not opened then return nil, err end
  return wrap(opened, false, opts)
end

--- To one peer: others' datagrams are not received, and `refused` is noticed.
---@param host string
---@param port integer
---@param opts { timeout?: number|string }?
---@return srv.Udp?
---@return srv.Error?  dns, unavailable
function udp.connect(host, port, opts)
  opts = options.check("srv.udp.connect", opts, OPTIONS)
  check_port("srv.udp.connect", port, 1)
  local ip, err = first_address("srv.udp.connect", host)
  if not ip then return nil, err end
  local opened
  opened, err = core.connect(ip, port)
  if not opened then return nil, err end
  return wrap(opened, true, opts)
end

return udp
