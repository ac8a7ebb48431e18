--- A file that came with a form (API, section 3): in memory while it is small, else in a temporary file
--- that ends with the request.
local core_fs = require "srv.core.fs"
local fs = require "srv.async.fs"
local misuse = require "srv.core.task".misuse
local reader = require "srv.base.reader"

---@class srv.Upload
---@field field string  the form's name for it
---@field name string   the file's, safe: no path, no control characters
---@field type string   as the client says: "image/png"
---@field size integer  bytes
---@field path string?  of the temporary file; nil while it is in memory
---@field private content string  if it is
local Upload = { __name = "srv.Upload" }
Upload.__index = Upload

--- All of it.
---@return string?
---@return srv.Error?
function Upload:bytes()
  if not self.path then return self.content end
  return core_fs.read(self.path, self.size)
end

---@return srv.Reader?
---@return srv.Error?
function Upload:reader()
  if self.path then return fs.open(self.path) end
  local content, at = self.content, 1
  return reader.new(function(bytes)
    if at > #content then return nil end
    local from = at
    at = from + bytes
    return content:sub(from, at - 1)
  end, nil, self.name)
end

--- Makes the file PATH of it, or replaces that in one step.
---@param path string
---@return true?
---@return srv.Error?
function Upload:save(path)
  if type(path) ~= "string" then misuse("file:save: the path must be a string, not a " .. type(path)) end
  if self.path then return core_fs.copy(self.path, path, true) end
  return core_fs.write(path, self.content)
end

---@param part srv.core.Part
---@param size integer
---@param path string?
---@param content string
---@return srv.Upload
return function(part, size, path, content)
  return setmetatable({
    field = part.name, name = part.filename, type = part.type or "application/octet-stream",
    size = size, path = path, content = not path and content or nil,
  }, Upload)
end
