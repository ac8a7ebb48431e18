--- What can be said of an app's Lua files without running them: what does not compile, globals that nobody declares,
--- calls that hold up a worker, files that nobody requires.
local bytecode = require "srv.cli.check_bytecode"
local folder = require "srv.core.folder"
local fs = require "srv.async.fs"
local srv = require "srv"

local check = {}

local FILES_MAX = 5000

-- Folders of other people's code.
local FOREIGN = { "^lua_modules/", "^node_modules/", "^build/", "^public/" }

-- Run by the server before the app, or by nobody.
local STARTED = { ["app.lua"] = true, ["config.lua"] = true }

local BUSTED = {}
for name in ([[describe it context insulate expose setup teardown before_each after_each strict_setup strict_teardown
  lazy_setup lazy_teardown pending finally spec test assert spy stub mock match randomize async file]]):gmatch "%S+" do
  BUSTED[name] = true
end

-- In a handler they stop the worker, and with it everybody whom it serves.
local WAITS = {
  ["io.read"] = "a server has nobody at its stdin: read req, a file by srv.fs, or a socket",
  ["io.open"] = "srv.fs.read, srv.fs.write and srv.fs.open wait without holding up others",
  ["io.lines"] = "srv.fs.open gives a reader: `for line in function() return file:line() end do`",
  ["io.popen"] = "srv.exec{ \"program\", \"argument\" } waits for a program without holding up others",
  ["io.input"] = "srv.fs.open waits without holding up others",
  ["io.output"] = "srv.fs.open waits without holding up others",
  ["io.tmpfile"] = "srv.fs.temp() gives a file that is removed with the task",
  ["os.execute"] = "srv.exec{ \"program\", \"argument\" } waits for a program without holding up others",
  ["os.remove"] = "srv.fs.remove waits without holding up others",
  ["os.rename"] = "srv.fs.rename waits without holding up others",
  ["os.tmpname"] = "srv.fs.temp() gives a file that is removed with the task",
  ["os.exit"] = "it would end the whole server: app:stop() drains first",
  ["debug.debug"] = "srv repl is a prompt into the running app",
}

-- Modules whose calls wait for the network, or a disk, with the whole worker.
local BLOCKING_MODULES = {
  { "^socket%.http$", "srv.http.get and srv.http.post wait without holding up others" },
  { "^ssl%.https$", "srv.http speaks TLS, and waits without holding up others" },
  { "^http%.request$", "srv.http waits without holding up others" },
  { "^cURL$", "srv.http waits without holding up others" }, { "^lcurl", "srv.http waits without holding up others" },
  { "^socket$", "srv.tcp, srv.udp, srv.dns and srv.sleep wait without holding up others" },
  { "^socket%.", "srv.tcp, srv.udp and srv.http wait without holding up others" },
  { "^ssl$", "srv.tcp.connect takes tls = true" },
  { "^luasql%.", "srv.db waits without holding up others" }, { "^lsqlite3", "srv.sqlite waits without holding up others" },
  { "^pgsql$", "srv.postgres waits without holding up others" }, { "^pgmoon", "srv.postgres waits without holding up others" },
  { "^redis$", "srv.redis waits without holding up others" },
  { "^posix", "srv.exec and srv.fs wait without holding up others" }, { "^lfs$", "srv.fs has list, stat and mkdir, which wait" },
}

---@class srv.cli.LuaFile
---@field path string       below the app's folder
---@field is_spec boolean
---@field module string     "routes.news": how it is required
---@field uses srv.cli.Use[]
---@field strings table<string, true>

local function is_foreign(path)
  for _, pattern in ipairs(FOREIGN) do
    if path:find(pattern) then return true end
  end
  return false
end

local function is_spec(path) return path:find "^spec/" ~= nil or path:find "/spec/" ~= nil or path:find "_spec%.lua$" ~= nil end

local function module_of(path)
  return (path:gsub("%.lua$", ""):gsub("/init$", ""):gsub("/", "."))
end

--- The files of the app's folder NAME, or the file NAME. A folder that cannot be read is no clean one.
local function files_at(root, name, findings)
  local found = name:sub(1, 1) ~= "." and not is_foreign(name .. "/") and fs.stat(root .. "/" .. name)
  if not found then return {} end -- hidden, other people's, or a link to nowhere
  if found.kind ~= "folder" then return { found.kind == "file" and name or nil } end
  local files, err = folder.files(root .. "/" .. name, root)
  for i, file in ipairs(files or {}) do files[i] = name .. "/" .. file end
  if not files then
    findings:add { file = name, code = "folder", message = ("none of its files was looked at: %s"):format(err.message) }
  end
  return files or {}
end

--- All Lua files of the app, in order.
---@param root string
---@param findings srv.cli.Findings
---@return string[]
function check.paths(root, findings)
  local paths = {}
  for _, name in ipairs(assert(fs.list(root))) do
    for _, path in ipairs(files_at(root, name, findings)) do
      if path:find "%.lua$" and #paths < FILES_MAX then paths[#paths + 1] = path end
    end
  end
  table.sort(paths)
  return paths
end

local function read_text(path)
  local file, why = io.open(path)
  if not file then return nil, why end
  local text = file:read "*a"
  file:close()
  return text
end

--- The files that compile; of the others their faults are noted.
---@param root string
---@param paths string[]
---@param findings srv.cli.Findings
---@return srv.cli.LuaFile[]
function check.read(root, paths, findings)
  local files = {}
  for _, path in ipairs(paths) do
    local text, why = read_text(root .. "/" .. path)
    local chunk
    if text then chunk, why = loadstring(text:gsub("^#[^\n]*", ""), "@" .. path) end
    if not chunk then
      findings:add_error(why, "syntax", path)
    else
      local found = bytecode.read(chunk)
      files[#files + 1] = {
        path = path, is_spec = is_spec(path), module = module_of(path), uses = found.uses, strings = found.strings, text = text,
      }
    end
  end
  return files
end

-- Globals ------------------------------------------------------------------------------------------------------

--- Names that srv.global() declares somewhere, whether or not that was run.
local function declared_in(files)
  local names = {}
  for _, file in ipairs(files) do
    for name in file.text:gmatch "%.global%s*%(?%s*[\"']([%a_][%w_]*)" do names[name] = true end
  end
  return names
end

local function check_globals(file, declared, findings)
  for _, use in ipairs(file.uses) do
    local is_known = declared[use.name] or rawget(_G, use.name) ~= nil or file.is_spec and BUSTED[use.name]
    if use.kind == "read" and not is_known then
      findings:add { file = file.path, line = use.line, code = "global_read",
        message = ("the global %q is nil: nobody declares it"):format(use.name),
        fix = use.name == "srv" and 'local srv = require "srv"'
          or ("is it a local that is declared further down, or misspelt? srv.global(%q, value) declares one"):format(use.name) }
    elseif use.kind == "set" and not is_known and not file.is_spec then
      findings:add { file = file.path, line = use.line, code = "global_set",
        message = ("the assignment to the undeclared global %q raises"):format(use.name),
        fix = ("write `local %s`, or declare it with srv.global(%q, value)"):format(use.name, use.name) }
    end
  end
end

local function part_fault(name)
  local ok, why = pcall(function() return srv[name] end)
  return not ok and tostring(why):match "srv has no part.*" or nil
end

--- srv.NAME that is not there: told now, not when a request first comes by.
local function check_parts(file, findings)
  for _, use in ipairs(file.uses) do
    local name = use.kind == "field" and use.name:match "^srv%.([%a_][%w_]*)$"
    local fault = name and part_fault(name)
    if fault then findings:add { file = file.path, line = use.line, code = "no_part", message = fault } end
  end
end

-- What holds up a worker ------------------------------------------------------------------------------------------

--- A file that the app itself has under that name is none of those modules.
local function blocking_module(name, modules)
  if modules[name] then return nil end
  for _, entry in ipairs(BLOCKING_MODULES) do
    if name:find(entry[1]) then return entry[2] end
  end
end

local function check_blocking(file, modules, findings)
  for _, use in ipairs(file.uses) do
    local fix = use.kind == "field" and (use.depth > 0 or use.kept) and WAITS[use.name]
    if fix then
      findings:add { file = file.path, line = use.line, code = "blocking",
        message = ("%s holds up the worker, and everybody whom it serves"):format(use.name), fix = fix }
    end
    local module_fix = use.kind == "require" and blocking_module(use.name, modules)
    if module_fix then
      findings:add { file = file.path, line = use.line, code = "blocking",
        message = ("the module %q waits with the whole worker"):format(use.name), fix = module_fix }
    end
  end
end

-- Files that nobody requires -----------------------------------------------------------------------------------------

local function mentioned_in(files)
  local names, prefixes = {}, {}
  for _, file in ipairs(files) do
    for text in pairs(file.strings) do
      if text:find "^[%w_.-]+$" then names[text] = true end
      if text:find "^[%w_.-]+%.$" then prefixes[#prefixes + 1] = text end
    end
  end
  return names, prefixes
end

local function is_mentioned(module, names, prefixes)
  if names[module] then return true end
  for _, prefix in ipairs(prefixes) do
    if module:sub(1, #prefix) == prefix then return true end -- require("routes." .. name)
  end
  return false
end

--- `srv apps/bench/stack.lua`: one file may be an app, beside others.
local function is_app(file)
  for _, use in ipairs(file.uses) do
    if use.kind == "field" and use.name == "srv.app" and use.depth == 0 then return true end
  end
  return false
end

--- A folder in the app may be an app as well (step1/app.lua), whose modules have their names from there.
local function names_within(file, paths)
  local names = { file.module }
  for at in file.path:gmatch "()/" do
    if paths[file.path:sub(1, at) .. "app.lua"] then names[#names + 1] = module_of(file.path:sub(at + 1)) end
  end
  return names
end

local function is_required(file, paths, names, prefixes)
  for _, module in ipairs(names_within(file, paths)) do
    if is_mentioned(module, names, prefixes) then return true end
  end
  return false
end

local function check_unused(files, findings)
  local names, prefixes = mentioned_in(files)
  local paths = {}
  for _, file in ipairs(files) do paths[file.path] = true end
  for _, file in ipairs(files) do
    local is_used = STARTED[file.path] or file.is_spec or is_app(file)
      or is_required(file, paths, names, prefixes)
    if not is_used then
      findings:add { file = file.path, code = "unused_file", message = "no file requires it",
        fix = ("require %q where it belongs, or remove the file"):format(file.module) }
    end
  end
end

---@param files srv.cli.LuaFile[]
---@param findings srv.cli.Findings
function check.all(files, findings)
  local declared, modules = declared_in(files), {}
  for _, file in ipairs(files) do modules[file.module] = true end
  for _, file in ipairs(files) do
    check_globals(file, declared, findings)
    check_parts(file, findings)
    if not file.is_spec then check_blocking(file, modules, findings) end
  end
  check_unused(files, findings)
end

return check
