--- Connected sockets: readers with write, shutdown and read_until (API, section 13).
---
--- C (srv.core.socket) reads pieces and writes texts; what was read and not yet asked for is kept
--- here, so a limit that passes in the middle of a line loses nothing.
local core = require "srv.core.socket"
local errors = require "srv.base.errors"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local monotonic = require "srv.core.env".monotonic
local reader = require "srv.base.reader"
local tls = require "srv.async.tls"

local concat, tostring, type = table.concat, tostring, type

local PIECE_BYTES = 32 * 1024
local UNTIL_BYTES = 1024 * 1024
local CONNECT_TIMEOUT = 3

---@class srv.Socket: srv.Reader
---@field peer { ip: string, port: integer }  "unix" and 0 for a Unix socket
---@field tls srv.SocketTls?        nil: plain
---@field private core userdata
---@field private rest string       read; what is from `at` on was not asked for yet
---@field private at integer
---@field private timeout number?   seconds, of each read and write
---@field private host string?      whom it was connected to
local Socket = reader.extend "srv.Socket"
Socket.__index = Socket

local function check_count(where, n)
  if type(n) ~= "number" or n < 1 or n % 1 ~= 0 then
    misuse(("%s: a whole number of bytes from 1 on was expected, not %s"):format(where, tostring(n)))
  end
  return n
end

-- Reading ---------------------------------------------------------------------------------------------

--- The next piece from the kernel; never "".
local function pull(self, bytes)
  local piece, err
  repeat piece, err = self.core:read(bytes, self.timeout) until piece ~= false
  return piece, err
end

--- What was read and is not asked for yet, as one text.
local function unread(self) return self.at == 1 and self.rest or self.rest:sub(self.at) end

local function set_rest(self, rest, at) self.rest, self.at = rest, at end

--- At most BYTES of what comes next; nil at the end.
---@param bytes integer?
---@return string?
---@return srv.Error?  closed, timeout, busy
function Socket:read(bytes)
  bytes = bytes and check_count("socket:read", bytes) or PIECE_BYTES
  local from = self.at
  if from > #self.rest then return pull(self, bytes) end
  self.at = from + bytes
  return self.rest:sub(from, from + bytes - 1)
end

--- Keeps what was read for later.
local function keep(self, parts, err)
  set_rest(self, concat(parts), 1)
  return nil, err
end

--- Exactly BYTES; `closed` if the end comes before.
---@param bytes integer
---@return string?
---@return srv.Error?  closed, timeout, busy
function Socket:read_exactly(bytes)
  check_count("socket:read_exactly", bytes)
  local parts = { unread(self) }
  local length = #parts[1]
  if length >= bytes then return self:read(bytes) end
  while length < bytes do
    local piece, err = pull(self, PIECE_BYTES)
    if not piece then
      return keep(self, parts, err or errors.coded("closed", ("the peer ended after %d of %d bytes"):format(length, bytes)))
    end
    parts[#parts + 1] = piece
    length = length + #piece
  end
  local last = parts[#parts]
  local used = bytes - (length - #last)
  parts[#parts] = last:sub(1, used)
  set_rest(self, last, used + 1)
  return concat(parts)
end

local function refuse_too_far(text, limit)
  return errors.coded("too_large", ("no %q within %d bytes"):format(text, limit))
end

--- Pieces are joined once, at the end: a peer that sends byte by byte costs no more than another.
--- `tail` is what may be the beginning of TEXT.
local function read_on_until(self, text, limit)
  local parts = { unread(self) }
  local length = #parts[1]
  local tail = #text == 1 and "" or parts[1]:sub(1 - #text)
  while length - #text < limit do -- it may begin in what is there
    local piece, err = pull(self, PIECE_BYTES)
    if not piece then
      if not err and length > 0 then err = errors.coded("closed", ("the peer ended before %q"):format(text)) end
      return keep(self, parts, err)
    end
    parts[#parts + 1] = piece
    local near = tail .. piece
    local first, last = near:find(text, 1, true)
    local before = first and length - #tail + first - 1
    if before and before <= limit then
      set_rest(self, piece, last - #tail + 1)
      return concat(parts):sub(1, before)
    end
    length = length + #piece
    tail = #text == 1 and "" or near:sub(1 - #text)
  end
  return keep(self, parts, refuse_too_far(text, limit))
end

--- What comes before TEXT, which is taken off; nil at the end, `closed` if it comes amid.
---@param text string    not a pattern
---@param limit integer|string?  "1MiB"
---@return string?
---@return srv.Error?  closed, timeout, busy, too_large
function Socket:read_until(text, limit)
  if type(text) ~= "string" or text == "" then misuse "socket:read_until: a text was expected" end
  limit = limit and options.check("socket:read_until", { limit = limit }, { limit = "bytes" }).limit or UNTIL_BYTES
  local rest, from = self.rest, self.at
  local first, last = rest:find(text, from, true)
  if first and first - from <= limit then
    self.at = last + 1
    return rest:sub(from, first - 1)
  end
  if first then return nil, refuse_too_far(text, limit) end
  return read_on_until(self, text, limit)
end

--- The next line without its end ("\n" or "\r\n"); the last one may lack it.
---@return string?
---@return srv.Error?
function Socket:line()
  local line, err = self:read_until "\n"
  if line then return line:byte(-1) == 13 and line:sub(1, -2) or line end
  if err and err.code == "closed" and self.at <= #self.rest then
    line = unread(self)
    set_rest(self, "", 1)
    return line
  end
  return nil, err
end

-- Writing ---------------------------------------------------------------------------------------------

local function joined(count, ...)
  local parts = { ... }
  for i = 1, count do
    local kind = type(parts[i])
    if kind ~= "string" and kind ~= "number" then misuse("socket:write: a text was expected, not a " .. kind) end
  end
  return concat(parts)
end

--- True when all is with the kernel: it waits while the peer is slower than we are. Texts and numbers
--- are sent one after the other.
---@param ... string|number
---@return true?
---@return srv.Error?  closed, timeout (the socket is closed then), busy
function Socket:write(...)
  local text, count = ..., select("#", ...)
  if count ~= 1 or type(text) ~= "string" then text = joined(count, ...) end
  return self.core:write(text, self.timeout)
end

--- We send no more: the peer reads an end. What it sends can still be read.
---@return true?
---@return srv.Error?
function Socket:shutdown()
  return self.core:shutdown()
end

--- Idempotent; who waits in another task gets `closed`.
function Socket:close()
  set_rest(self, "", 1)
  self.core:close()
end

--- Our end of it.
---@return string? ip
---@return integer? port
function Socket:address()
  return self.core:address()
end

--- How long each read and write may take from now on; nil: as long as the task may.
---@param t number|string|nil
function Socket:set_timeout(t)
  self.timeout = options.check("socket:set_timeout", { timeout = t }, { timeout = "duration" }).timeout
  return self
end

-- TLS -------------------------------------------------------------------------------------------------

local HANDSHAKE_TIMEOUT = 5

--- What OK, ERR of C's have begun goes on to its end.
local function shake_hands(self, ok, err, seconds)
  if ok then ok, err = self.core:shake(seconds) end
  if not ok then
    self:close()
    return nil, err
  end
  self.tls = self.core:tls()
  return true
end

local function secure(self, settings, seconds)
  local name, port = settings.server_name or self.host, self.peer.port
  local ok, err = self.core:secure {
    key = ("tcp\0%s\0%d\0%s"):format(name, port, settings.id),
    tls = tls.towards(settings, name),
  }
  return shake_hands(self, ok, err, seconds)
end

--- What TLS = true or a table says.
local function settings_of(where, given) return tls.bare(where, given ~= true and given or nil) end

--- From here on by TLS, after a protocol's own word for that (SMTP's STARTTLS). The peer must wait for the handshake:
--- bytes that it has sent before would be taken for encrypted ones, so they are an error. After one it is closed.
---@param opts srv.SocketTlsOptions?
---@return true?
---@return srv.Error?  tls, timeout, closed, busy
function Socket:start_tls(opts)
  local settings = settings_of("socket:start_tls", opts)
  if not settings.server_name and not self.host then
    misuse "socket:start_tls: whom is the certificate to be for? { server_name = ... }"
  end
  if self.tls then misuse "socket:start_tls: it speaks TLS already" end
  if unread(self) ~= "" then
    self:close()
    return nil, errors.coded("tls", "the peer has sent more before the handshake than was read: it could be anybody's")
  end
  return secure(self, settings, self.timeout or HANDSHAKE_TIMEOUT)
end

-- Making ----------------------------------------------------------------------------------------------

local socket = {}

--- For who goes on with the connection in another way: C's part, and what was read and not asked for.
---@param connected srv.Socket
---@return userdata core
---@return string rest
function socket.parts(connected) return connected.core, unread(connected) end

--- SOCK was accepted, and its first byte is of TLS.
---@param sock srv.Socket
---@param server srv.core.socket.Server
---@return true?
---@return srv.Error?  tls, timeout, closed
function socket.accept(sock, server)
  local ok, err = sock.core:accept(server)
  return shake_hands(sock, ok, err, HANDSHAKE_TIMEOUT)
end

--- Around a connected one of C's.
---@param connected userdata
---@param timeout number?
---@return srv.Socket
function socket.wrap(connected, timeout)
  local ip, port = connected:peer()
  return setmetatable({ core = connected, rest = "", at = 1, timeout = timeout, peer = { ip = ip, port = port } }, Socket)
end

local CONNECT_OPTIONS = { timeout = "duration", connect_timeout = "duration", tls = "any" }

local function connect(where, host, port, path, opts)
  opts = options.check(where, opts, CONNECT_OPTIONS)
  local settings = opts.tls and settings_of(where, opts.tls)
  if settings and not host and not settings.server_name then
    misuse(where .. ": whom is the certificate to be for? tls = { server_name = ... }")
  end
  local fresh, limit = core.new(), monotonic() + (opts.connect_timeout or CONNECT_TIMEOUT)
  local ok, err = fresh:connect(host, port, path, opts.connect_timeout or CONNECT_TIMEOUT)
  if not ok then return nil, err end
  local connected = socket.wrap(fresh, opts.timeout)
  connected.host = host
  if settings then ok, err = secure(connected, settings, math.max(limit - monotonic(), 0.001)) end
  if not ok then return nil, err end
  return connected
end

---@class srv.ConnectOptions
---@field timeout? number|string          of each read and write; none: as long as the task may
---@field connect_timeout? number|string  "3s": looking the name up, connecting and TLS's handshake
---@field tls? true|srv.SocketTlsOptions  as of srv.http

socket.tcp = {}

--- To a name or an address: all addresses of a name are tried, the next one as soon as one is slow.
---@param host string
---@param port integer
---@param opts srv.ConnectOptions?
---@return srv.Socket?
---@return srv.Error?  refused, timeout, dns, tls, unavailable
function socket.tcp.connect(host, port, opts)
  if type(host) ~= "string" then misuse("srv.tcp.connect: a host was expected, not a " .. type(host)) end
  if type(port) ~= "number" or port < 1 or port > 65535 or port % 1 ~= 0 then
    misuse("srv.tcp.connect: a port from 1 to 65535 was expected, not " .. tostring(port))
  end
  return connect("srv.tcp.connect", host, port, nil, opts)
end

socket.unix = {}

--- To a Unix socket; "@name" is an abstract one.
---@param path string
---@param opts srv.ConnectOptions?
---@return srv.Socket?
---@return srv.Error?  refused, timeout, tls, unavailable
function socket.unix.connect(path, opts)
  if type(path) ~= "string" or path:find("\0", 1, true) then misuse "srv.unix.connect: a path was expected" end
  return connect("srv.unix.connect", nil, nil, path, opts)
end

return socket
