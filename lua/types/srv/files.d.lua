---@meta _
-- luacheck: ignore 212 241 631

--- Paths are from the app's folder.
---@class srv.FsModule
local fs = {}

---@param path string
---@param limit srv.Size?  "10MiB"
---@return string?
---@return srv.Error? err
function fs.read(path, limit) end

--- Makes or replaces the file in one step.
---@param path string
---@param s string
---@return true?
---@return srv.Error? err
function fs.write(path, s) end

---@param path string
---@param s string
---@return true?
---@return srv.Error? err
function fs.append(path, s) end

---@param path string
---@return srv.FileStat?
---@return srv.Error? err
function fs.stat(path) end

---@param path string
---@return string[]?
---@return srv.Error? err
function fs.list(path) end

---@param path string
---@return true?
---@return srv.Error? err
function fs.mkdir(path) end

---@param path string
---@param opts { recursive?: boolean }?
---@return true?
---@return srv.Error? err
function fs.remove(path, opts) end

---@param from string
---@param to string
---@return true?
---@return srv.Error? err
function fs.rename(from, to) end

---@param from string
---@param to string
---@return true?
---@return srv.Error? err
function fs.copy(from, to) end

---@param path string
---@return true?
---@return srv.Error? err
function fs.touch(path) end

---@param path string
---@param mode "r"|"w"|"a"|"r+"|"w+"|"a+"|"wx"|"wx+"|nil
---@return srv.File?
---@return srv.Error? err
function fs.open(path, mode) end

--- A new file that is removed when the task ends.
---@param opts { suffix?: string }?
---@return srv.File?
---@return srv.Error? err
function fs.temp(opts) end

---@class srv.FileStat
---@field size integer
---@field mtime number   seconds since 1970
---@field mode string    "0644"
---@field kind "file"|"folder"|"other"

---@class srv.File: srv.Reader
---@field path string?  of a temporary file
local File = {}

---@param s string
---@return true?
---@return srv.Error? err
function File:write(s) end

---@param whence "set"|"cur"|"end"|nil
---@param offset integer?
---@return integer? position
---@return srv.Error? err
function File:seek(whence, offset) end

---@class srv.ExecOptions
---@field input? string
---@field cwd? string  the app's folder
---@field env? table<string, string|false>  what differs from ours
---@field timeout? srv.Duration  "30s"
---@field limit? srv.Size  "10MiB", of each output

--- A program's end: no shell.
---@class srv.ExecModule
---@overload fun(argv: (string|number)[], opts?: srv.ExecOptions): srv.ExecResult?, srv.Error?
local exec = {}

--- A process whose output is read while it runs.
---@param argv (string|number)[]
---@param opts { cwd?: string, env?: table<string, string|false> }?
---@return srv.Process?
---@return srv.Error? err
function exec.start(argv, opts) end

---@class srv.ExecResult
---@field status integer|string  exit code, or the signal's name
---@field stdout string
---@field stderr string

---@class srv.Process
---@field pid integer
---@field stdin srv.ProcessInput
---@field stdout srv.Reader
---@field stderr srv.Reader
local Process = {}

---@param t srv.Duration?
---@return integer|string|nil status
---@return srv.Error? err
function Process:wait(t) end

---@param signal string?  "SIGTERM"
---@return boolean
function Process:kill(signal) end

---@class srv.ProcessInput
local Input = {}

---@param s string
---@return true?
---@return srv.Error? err
function Input:write(s) end

function Input:close() end
