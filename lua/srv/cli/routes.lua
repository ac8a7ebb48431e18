--- `srv routes APP`: every route with its method, path, middleware and place.

local options = require "srv.cli.options"
local router = require "srv.web.router"

local LINE = options.new("routes", "[APP]", "every route of an app: method, path, middleware, file:line", {})

--- The widest of each column, so that the columns stand under each other.
local function widths(rows)
  local wide = { 0, 0, 0 }
  for _, row in ipairs(rows) do
    for column = 1, 3 do wide[column] = math.max(wide[column], #row[column]) end
  end
  return wide
end

local function row_of(route)
  local middleware = route.middleware
  if type(middleware) == "table" then middleware = table.concat(middleware, ", ") end
  return { route.method, route.path, tostring(middleware or ""), ("%s:%s"):format(route.file, route.line) }
end

---@param args string[]
---@param app_file string
---@return integer exit_status
return function(args, app_file)
  local opts, rest = LINE:read(args)
  if not opts then return rest end
  if app_file == "" then
    io.stderr:write("srv: no app.lua in ", rest[1] or "this folder", "\n")
    return 1
  end
  local app = assert(loadfile(app_file))()
  if not router.is(app) then error(app_file .. " does not return an app", 0) end
  local rows = {}
  for _, route in ipairs(app:routes()) do rows[#rows + 1] = row_of(route) end
  local wide = widths(rows)
  local form = ("%%-%ds  %%-%ds  %%-%ds  %%s\n"):format(wide[1], wide[2], wide[3])
  for _, row in ipairs(rows) do io.write(form:format(unpack(row))) end
  return 0
end
