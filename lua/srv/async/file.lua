--- An open file (API, section 13): a reader that can also write and seek. srv.fs.open and temp make
--- them.
---
--- A file is used by one task at a time. When a call is called off, by a deadline or because the client
--- has gone, the file is closed with it: nobody knows how much was done.
local core = require "srv.core.fs_file"
local misuse = require "srv.core.task".misuse
local reader = require "srv.base.reader"

---@class srv.File: srv.Reader
---@field path string?  of a temporary file
---@field private core userdata
---@field private rest string   read from the file and not yet given out
---@field private ended boolean
---@field private closed boolean
local File = reader.extend "srv.File"
File.__index = File

local WHENCE = { set = true, cur = true, ["end"] = true }

local function idle(self, what)
  if core.is_busy(self.core) then misuse(("file:%s: another task is using this file"):format(what)) end
  return self.core
end

--- What was read ahead has not been read, if it comes to where the file stands.
local function step_back(self)
  local ahead = math.max(0, #self.rest - self.at + 1)
  self.rest, self.at, self.ended = "", 1, self.closed
  return ahead
end

--- All of S, at the place that the file stands at; behind its end, if it was opened with "a".
---@param s string
---@return true?
---@return srv.Error? err  fs, closed
function File:write(s)
  if type(s) ~= "string" then misuse("file:write: a string was expected, not a " .. type(s)) end
  local file = idle(self, "write")
  local ahead = step_back(self)
  if ahead > 0 then core.seek(file, "cur", -ahead) end
  return core.write(file, s)
end

--- Where the file stands: `seek()`. To the begin: `seek("set")`, and OFFSET bytes behind; to the end:
--- `seek "end"`.
---@param whence "set"|"cur"|"end"|nil  "cur"
---@param offset integer?  0
---@return integer? position
---@return srv.Error? err
function File:seek(whence, offset)
  whence, offset = whence or "cur", offset or 0
  if not WHENCE[whence] then misuse('file:seek: from "set", "cur" or "end", not ' .. tostring(whence)) end
  if type(offset) ~= "number" or offset % 1 ~= 0 or math.abs(offset) > 2 ^ 53 then
    misuse("file:seek: a whole number of bytes was expected, not " .. tostring(offset))
  end
  local file = idle(self, "seek")
  local ahead = step_back(self)
  if whence == "cur" then offset = offset - ahead end
  local position, err = core.seek(file, whence, offset)
  if not position and ahead > 0 then core.seek(file, "cur", -ahead) end
  return position, err
end

--- Idempotent. What could not be written is told here at the latest.
---@return true?
---@return srv.Error? err  fs
function File:close()
  local file = idle(self, "close")
  self.closed, self.ended, self.rest, self.at = true, true, "", 1
  return core.close(file)
end

---@param handle userdata
---@param path string?
---@return srv.File
return function(handle, path)
  local file = setmetatable({ core = handle, path = path, rest = "", at = 1, ended = false, closed = false }, File)
  function file.pull(bytes) return core.read(idle(file, "read"), bytes) end
  return file
end
