--- `srv types [APP]`: srv's types for the editor, in the app's folder, and the file that tells it of them.
local asset = require "srv.core.asset"
local fs = require "srv.async.fs"
local json = require "srv.base.json"
local options = require "srv.cli.options"

local SOURCE, FOLDER, SETTINGS = "lua/types/srv/", ".srv/types", ".luarc.json"

local LINE = options.new("types", "[APP]", "writes srv's types into the app's folder, for your editor", {})

local function settings()
  return json.encode(json.object({
    ["runtime.version"] = "LuaJIT",
    ["workspace.library"] = { FOLDER },
    ["workspace.checkThirdParty"] = false,
    ["diagnostics.globals"] = {
      "describe", "insulate", "it", "pending", "setup", "teardown", "lazy_setup", "lazy_teardown", "strict_setup",
      "strict_teardown", "before_each", "after_each", "finally", "spy", "stub", "mock",
    },
  }), { pretty = true }) .. "\n"
end

--- What went wrong, if it did.
local function write_types()
  local names = asset.list(SOURCE)
  local ok, err = fs.mkdir(FOLDER)
  for _, name in ipairs(names) do
    if ok then ok, err = fs.write(FOLDER .. name:sub(#SOURCE), asset.read(name)) end
  end
  if not ok then return err end
  io.write(("%s: %d files\n"):format(FOLDER, #names))
end

--- One that is there is the app's own.
local function write_settings()
  if not fs.stat(SETTINGS) then
    local ok, err = fs.write(SETTINGS, settings())
    if not ok then return err end
    io.write(SETTINGS, ": made\n")
    return nil
  end
  local text, err = fs.read(SETTINGS)
  if not text then return err end
  if not text:find(FOLDER, 1, true) then
    io.write(SETTINGS, ' is there: add "', FOLDER, '" to its "workspace.library"\n')
  end
end

---@param args string[]
---@return integer exit_status
return function(args)
  local opts, status = LINE:read(args)
  if not opts then return status end
  local err = write_types() or write_settings()
  if not err then return 0 end
  io.stderr:write("srv types: ", err.message, "\n")
  return 1
end
