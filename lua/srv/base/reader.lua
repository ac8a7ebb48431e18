--- A reader: every incoming stream of bytes (API, section 1).
---
---     r:read([bytes]) -> string | nil (the end) | nil, err      r:line()   r:all([limit])   r:close()
---     for chunk in r do ... end                                 raises what read() would return
---
--- What differs from source to source is one function, `pull(bytes_max)`, which gives the next
--- piece (never ""), nil at the end, or nil and an error.
local errors = require "srv.base.errors"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local units = require "srv.base.units"

---@class srv.Reader
---@field private pull fun(bytes_max: integer): string?, srv.Error?
---@field private shut fun()?
---@field private name string?  what it reads, for messages
---@field private rest string   pulled; what is from `at` on was not read yet
---@field private at integer
---@field private ended boolean
local Reader = { __name = "srv.Reader" }
Reader.__index = Reader

local CHUNK_BYTES = 64 * 1024
local LINE_BYTES_MAX = 1024 * 1024
local ALL_BYTES = 10 * 1024 * 1024
local ALL_OPTIONS = { limit = "bytes" }

local function fill(self, bytes)
  if self.ended then return nil end
  local piece, err = self.pull(bytes)
  if not piece then self.ended = true end
  return piece, err
end

--- At most BYTES of what comes next.
---@param bytes integer?
---@return string?
---@return srv.Error?
function Reader:read(bytes)
  bytes = bytes or CHUNK_BYTES
  if type(bytes) ~= "number" or bytes < 1 or bytes % 1 ~= 0 then
    misuse("reader:read: a whole number of bytes from 1 on was expected, not " .. tostring(bytes))
  end
  local from = self.at
  if from <= #self.rest then
    self.at = from + bytes
    return self.rest:sub(from, from + bytes - 1)
  end
  local piece, err = fill(self, bytes)
  if not piece then return nil, err end
  self.rest, self.at = piece, bytes + 1
  return #piece <= bytes and piece or piece:sub(1, bytes)
end

--- The next line without its end ("\n" or "\r\n"); the last one may lack it.
---@return string?
---@return srv.Error?
function Reader:line()
  local parts, length = {}, 0
  repeat
    if self.at > #self.rest then
      local piece, err = fill(self, CHUNK_BYTES)
      if not piece and (err or length == 0) then return nil, err end
      if not piece then return table.concat(parts) end
      self.rest, self.at = piece, 1
    end
    local rest, from = self.rest, self.at
    local stop = rest:find("\n", from, true)
    parts[#parts + 1] = rest:sub(from, stop and stop - 1)
    self.at = (stop or #rest) + 1
    if stop then return (table.concat(parts):gsub("\r$", "")) end
    length = length + #parts[#parts]
  until length > LINE_BYTES_MAX
  return nil, errors.coded("too_large", "a line is longer than 1MiB: read() gives it in pieces")
end

--- The whole rest; `too_large` beyond the limit.
---@param opts { limit?: integer|string }?
---@return string?
---@return srv.Error?
function Reader:all(opts)
  local limit = opts and options.check("reader:all", opts, ALL_OPTIONS).limit or ALL_BYTES
  local parts, length = {}, 0
  while true do
    local piece, err = self:read()
    if not piece then
      if err then return nil, err end
      return table.concat(parts)
    end
    parts[#parts + 1] = piece
    length = length + #piece
    if length > limit then
      self:close()
      return nil, errors.coded("too_large", ("%s has more than %s: all { limit = ... } takes more, a loop any number")
        :format(self.name or "this reader", units.bytes_text(limit)))
    end
  end
end

--- Nothing more is wanted. Idempotent.
function Reader:close()
  if self.shut and not self.closed then self.shut() end
  self.closed, self.ended, self.rest, self.at = true, true, "", 1
end

--- For loops: the next piece, or nil at the end.
function Reader:__call()
  local piece, err = self:read()
  if err then error(err, 0) end
  return piece
end

local reader = {}

---@param pull fun(bytes_max: integer): string?, srv.Error?
---@param shut fun()?  called by close() once
---@param name string?  for messages: "stdout of sort"
---@return srv.Reader
function reader.new(pull, shut, name)
  return setmetatable({ pull = pull, shut = shut, name = name, rest = "", at = 1, ended = false, closed = false }, Reader)
end

local extended = {}

--- A class of readers with more methods, or others: sockets, open files.
---@param name string
---@return table
function reader.extend(name)
  local class = setmetatable({ __name = name, __call = Reader.__call }, { __index = Reader })
  extended[class] = true
  return class
end

---@param v any
---@return boolean
function reader.is(v)
  local class = type(v) == "table" and getmetatable(v)
  return class == Reader or extended[class] == true
end

return reader
