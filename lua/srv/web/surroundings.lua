--- What an app may ask of where it runs: srv.env, srv.config, srv.options (API, section 15).
local core = require "srv.core.env"
local errors = require "srv.base.errors"
local folder = require "srv.core.folder"
local misuse = require "srv.core.task".misuse
local schema = require "srv.web.schema"

local surroundings = {}

-- The environment -------------------------------------------------------------------------------------

local Environment = { __name = "srv.env" }

--- `srv.env.NAME` -> string, or nil.
function Environment.__index(_, name) return core.getenv(name) end

function Environment.__newindex() misuse "srv.env is read only" end

--- `srv.env("LIMIT", "integer 1..64 = 4")`: the variable by a rule, at start; what does not fit it is
--- an error that names the variable, but not its value: that may be a secret.
---@param name string
---@param rule any?
---@return any
function Environment.__call(_, name, rule)
  local text = core.getenv(name)
  if rule == nil then return text end
  local value, err = schema.of(rule, 3):check(text, { source = "text" })
  if err then
    local fault = err.errors[1]
    misuse(("environment variable %s %s"):format(name, text == nil and "is required" or fault.message))
  end
  return value
end

surroundings.env = setmetatable({}, Environment)

-- Files ---------------------------------------------------------------------------------------------------

--- Names a file or folder that the app loads besides its Lua files, views and migrations
--- (translations, a table of prices): an edit of it loads the app anew, as one of app.lua does.
---@param path string  in the app's folder: "locales"
function surroundings.watch(path)
  if type(path) ~= "string" then misuse("srv.watch: a path is a string, not " .. type(path)) end
  local plain = path:gsub("^%./", "")
  if plain:sub(1, 1) == "/" or ("/" .. plain .. "/"):find("/../", 1, true) then
    misuse(("srv.watch: %q is not in the app's folder"):format(path))
  end
  folder.watch(plain)
end

-- Settings --------------------------------------------------------------------------------------------

--- The settings in force, read only; durations are seconds, sizes bytes.
surroundings.config = setmetatable({}, {
  __index = core.settings(),
  __newindex = function() misuse "srv.config is read only: settings are made in config.lua" end,
})

--- A fault of options as srv's own functions would word it.
local function describe(fault)
  local name = fault.path:sub(2)
  if fault.code ~= "unknown" then return ("option %q %s"):format(name, fault.message) end
  return ("unknown option %q"):format(name) .. (fault.message:match(", did you mean.*") or "")
end

--- What a plugin was given, checked by rules: srv.options("stamp", opts, { header = "string = X-Stamp" }).
---@param name string
---@param opts table?
---@param rules table<string, any>
---@return table
function surroundings.options(name, opts, rules)
  if opts ~= nil and type(opts) ~= "table" then
    misuse(("srv.%s: options are a table, not a %s"):format(tostring(name), type(opts)))
  end
  local value, err = schema.of(rules, 3):check(opts or {}, { source = "json" })
  if not err then return value end
  local parts = {}
  for i, fault in ipairs(err.errors) do parts[i] = describe(fault) end
  misuse(("srv.%s: %s"):format(name, #parts > 0 and table.concat(parts, "; ") or errors.adopt(err).message))
end

return surroundings
