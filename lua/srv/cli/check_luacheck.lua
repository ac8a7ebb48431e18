--- What luacheck says of the app's files, if it is installed: https://luacheck.readthedocs.io.
local exec = require "srv.async.exec"
local fs = require "srv.async.fs"

local PROGRAM = "luacheck"
local TIME = "60s"
local OUTPUT = "16MiB"

-- Undeclared globals are ours to tell: we know which ones the app declares while it loads.
local OURS = { ["111"] = true, ["112"] = true, ["113"] = true }

local OPTIONS = { "--formatter", "plain", "--codes", "--ranges", "--no-color", "--no-cache" }
-- Where the app has no .luacheckrc of its own.
local DEFAULTS = { "--std", "luajit+busted", "--no-self", "--no-max-line-length", "--ignore", "21[1-3]/_.*" }

--- luacheck looks for its settings in the folder and all that it lies in.
local function has_settings(root)
  local at = root
  while at do
    if fs.stat(at .. "/.luacheckrc") then return true end
    at = at ~= "" and at:match "^(.*)/[^/]*$" or nil
  end
  return false
end

--- "app.lua:3:7-9: (W211) unused variable x"
local function note(line, findings)
  local file, at, column, kind, code, message = line:match "^(.-):(%d+):(%d+)%-%d+: %((%a)(%d+)%) (.*)$"
  if not file or OURS[code] or kind == "E" and code == "011" then return end -- what does not compile is told already
  findings:add { file = file, line = tonumber(at), column = tonumber(column), code = "luacheck_" .. code, message = message }
end

--- False: it is not installed.
---@param root string
---@param paths string[]
---@param findings srv.cli.Findings
---@return boolean
return function(root, paths, findings)
  if #paths == 0 then return true end
  local command = { PROGRAM, unpack(OPTIONS) }
  for _, option in ipairs(has_settings(root) and {} or DEFAULTS) do command[#command + 1] = option end
  command[#command + 1] = "--"
  for _, path in ipairs(paths) do command[#command + 1] = path end
  local result, err = exec(command, { cwd = root, timeout = TIME, limit = OUTPUT })
  if not result then
    if err.code ~= "not_found" then findings:add { file = ".", code = "luacheck", message = tostring(err) } end
    return err.code ~= "not_found"
  end
  for line in result.stdout:gmatch "[^\n]+" do note(line, findings) end
  return true
end
