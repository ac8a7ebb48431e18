--- Files and folders (API, section 13): srv.fs. Relative paths begin in the app's folder.
---
--- Each call is a job of the pool's threads for files, so none holds the loop up. What the world does
--- comes as nil and an error: not_found, exists, denied, not_empty, too_large, invalid (no path at all),
--- busy (too much work waits), fs (all else; the message says what).
local core = require "srv.core.fs"
local files = require "srv.core.fs_file"
local misuse = require "srv.core.task".misuse
local new_file = require "srv.async.file"
local options = require "srv.base.options"
local unseen = require "srv.base.unseen"
local units = require "srv.base.units"

local fs = {}

local READ_BYTES = 10 * 1024 * 1024
local MODES = { r = true, w = true, a = true, ["r+"] = true, ["w+"] = true, ["a+"] = true, wx = true, ["wx+"] = true }

local function check_string(where, what, v)
  if type(v) ~= "string" then misuse(("srv.fs.%s: %s must be a string, not a %s"):format(where, what, type(v))) end
  return v
end

-- Looking -----------------------------------------------------------------------------------------------

--- The whole file.
---@param path string
---@param limit integer|string|nil  "10MiB"; a larger file is `too_large`
---@return string?
---@return srv.Error?
function fs.read(path, limit)
  check_string("read", "the path", path)
  local bytes = limit == nil and READ_BYTES or units.bytes(limit)
  if not bytes then misuse('srv.fs.read: the limit must be a size like "1MiB", not ' .. tostring(limit)) end
  return core.read(path, bytes)
end

---@class srv.FileStat
---@field size integer
---@field mtime number   seconds since 1970
---@field mode string    permissions, in octal: "0644"
---@field kind "file"|"folder"|"other"

--- Links are followed.
---@param path string
---@return srv.FileStat?
---@return srv.Error?
function fs.stat(path) return core.stat(check_string("stat", "the path", path)) end

--- The names in a folder, in byte order.
---@param path string
---@return string[]?
---@return srv.Error?
function fs.list(path) return core.list(check_string("list", "the path", path)) end

-- Changing ----------------------------------------------------------------------------------------------

--- Makes the file, or replaces it in one step: who reads it meanwhile reads the old one, and after a
--- crash it is the old one or the new one. Its mode is kept.
---@param path string
---@param s string
---@return true?
---@return srv.Error?
function fs.write(path, s)
  return core.write(check_string("write", "the path", path), check_string("write", "what is written", s))
end

--- Adds to the end of the file, and makes it where there is none.
---@param path string
---@param s string
---@return true?
---@return srv.Error?
function fs.append(path, s)
  return core.append(check_string("append", "the path", path), check_string("append", "what is written", s))
end

--- Makes the folder and those on the way to it. One that is there is fine.
---@param path string
---@return true?
---@return srv.Error?
function fs.mkdir(path) return core.mkdir(check_string("mkdir", "the path", path)) end

local REMOVE_OPTIONS = { recursive = "boolean" }

--- Removes a file, or an empty folder; with `recursive` a folder with all that is in it.
---@param path string
---@param opts { recursive?: boolean }?
---@return true?
---@return srv.Error?
function fs.remove(path, opts)
  check_string("remove", "the path", path)
  local recursive = opts and options.check("srv.fs.remove", opts, REMOVE_OPTIONS).recursive
  return core.remove(path, recursive)
end

--- Replaces what is there under the new name, if that is a file or an empty folder.
---@param from string
---@param to string
---@return true?
---@return srv.Error?
function fs.rename(from, to)
  return core.rename(check_string("rename", "the old path", from), check_string("rename", "the new path", to))
end

--- Copies a file with its mode; the copy is there whole or not at all.
---@param from string
---@param to string
---@return true?
---@return srv.Error?
function fs.copy(from, to)
  return core.copy(check_string("copy", "the path", from), check_string("copy", "the copy's path", to))
end

--- Makes an empty file, or says that it was changed now.
---@param path string
---@return true?
---@return srv.Error?
function fs.touch(path) return core.touch(check_string("touch", "the path", path)) end

-- Open files --------------------------------------------------------------------------------------------

--- A reader with `write`, `seek` and `close`. Modes are C's: "r", "w" (empty it), "a" (write at the
--- end), each with "+" for both; "wx" fails with `exists` where there is one already.
---@param path string
---@param mode "r"|"w"|"a"|"r+"|"w+"|"a+"|"wx"|"wx+"|nil  "r"
---@return srv.File?
---@return srv.Error?
function fs.open(path, mode)
  check_string("open", "the path", path)
  mode = mode == nil and "r" or mode
  if not MODES[mode] then misuse("srv.fs.open: " .. options.unknown("mode", mode, MODES)) end
  local handle, err = files.open(path, mode)
  if not handle then return nil, err end
  return new_file(handle)
end

local TEMP_OPTIONS = { suffix = "string" }

--- A new file for reading and writing that is removed when the task ends. Its name is `file.path`.
---@param opts { suffix?: string }?
---@return srv.File?
---@return srv.Error?
function fs.temp(opts)
  local suffix = opts and options.check("srv.fs.temp", opts, TEMP_OPTIONS).suffix or ""
  if #suffix > 63 or suffix:find "[%z/]" then misuse "srv.fs.temp: a suffix is the end of a name, like \".png\"" end
  local handle, path = files.temp(suffix)
  if not handle then return nil, path end
  return new_file(handle, path)
end

unseen.watch(fs, {
  "read", "write", "append", "stat", "list", "mkdir", "remove", "rename", "copy", "touch", "open", "temp",
})

return fs
