--- `srv types [APP]`: srv's types for the editor, in the app's folder, and the file that tells it of them.
local fs = require "srv.async.fs"
local json = require "srv.base.json"

local FOLDER, SETTINGS = ".srv/types", ".luarc.json"

--- The files of lua/types/srv.
local NAMES = {
  "app", "data", "errors", "files", "http", "network", "plugins", "request", "response", "schema", "srv",
  "surroundings", "tasks", "testing", "values",
}

local function settings()
  return json.encode(json.object({
    ["runtime.version"] = "LuaJIT",
    ["workspace.library"] = { FOLDER },
    ["workspace.checkThirdParty"] = false,
    ["diagnostics.globals"] = { "describe", "it", "setup", "teardown", "before_each", "after_each" },
  }), { pretty = true }) .. "\n"
end

--- What the build has put into the binary; a developer of srv, whose Lua is read from a folder, has the files there.
local function text_of(name)
  local folder = os.getenv "SRV_LUA_PATH"
  if not folder or folder == "" then return require("types.srv." .. name .. ".d") end
  local file = assert(io.open(("%s/types/srv/%s.d.lua"):format(folder, name)))
  local text = file:read "*a"
  file:close()
  return text
end

local function write_types()
  assert(fs.mkdir(FOLDER))
  for _, name in ipairs(NAMES) do assert(fs.write(("%s/%s.d.lua"):format(FOLDER, name), text_of(name))) end
  io.write(("%s: %d files\n"):format(FOLDER, #NAMES))
end

--- One that is there is the app's own.
local function write_settings()
  if not fs.stat(SETTINGS) then
    assert(fs.write(SETTINGS, settings()))
    io.write(SETTINGS, ": made\n")
  elseif not assert(fs.read(SETTINGS)):find(FOLDER, 1, true) then
    io.write(SETTINGS, ' is there: add "', FOLDER, '" to its "workspace.library"\n')
  end
end

---@return integer exit_status
return function()
  write_types()
  write_settings()
  return 0
end
