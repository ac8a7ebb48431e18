--- `srv routes [APP]`: every route with its method, path, middleware and place, and the folders behind them.
local app_load = require "srv.cli.app_load"
local env = require "srv.core.env"
local json = require "srv.base.json"
local new_findings = require "srv.cli.findings"
local options = require "srv.cli.options"
local terminal = require "srv.cli.terminal"

local LINE = options.new("routes", "[APP]", "every route of an app: method, path, middleware, file:line", {
  { false, "json", false, "as JSON: routes, folders, mounts" },
}, [[
What hosts, names and limits a route has stands behind its path. Exit status 1: the app does not load.

  srv routes apps/news
  srv routes --json | jq -r '.routes[].path'
]])

local COLOURS = {
  GET = "green", HEAD = "green", OPTIONS = "green", POST = "yellow", PUT = "blue", PATCH = "blue", DELETE = "red", FILES = "cyan",
}

-- What is shown ------------------------------------------------------------------------------------------------

local function split(place)
  local file, line = place:match "^(.*):(%d+)$"
  return file, tonumber(line)
end

local function or_root(path) return path == "" and "/" or path end

local function middleware_of(route)
  local names = json.array {}
  for _, use in ipairs(route.uses) do names[#names + 1] = use.name end
  for i = 1, #route.functions - 1 do names[#names + 1] = route.functions[i].name end
  return names
end

local function routes_of(made)
  local list = json.array {}
  for _, route in ipairs(made.routes) do
    local file, line = split(route.place)
    for _, method in ipairs(route.methods) do
      list[#list + 1] = {
        method = method, path = route.path, name = route.options.name, host = route.settings.host,
        fallback = route.options.fallback, middleware = middleware_of(route), file = file, line = line,
        websocket = route.is_socket,
      }
    end
  end
  return list
end

local function folders_of(made)
  local list = json.array {}
  for _, static in ipairs(made.statics) do
    local file, line = split(static.place)
    list[#list + 1] = {
      path = or_root(static.pattern:text()), folder = static.folder, host = static.scope.settings.host,
      fallback = static.options.fallback, file = file, line = line,
    }
  end
  return list
end

local function mounts_of(made)
  local list = json.array {}
  for _, scope in ipairs(made.scopes) do
    if scope.parent then
      local file, line = split(scope.place)
      list[#list + 1] = { path = or_root(scope.prefix), host = scope.settings.host, file = file, line = line }
    end
  end
  return list
end

-- The table ----------------------------------------------------------------------------------------------------

--- What a route has besides method and path: "name=news.show host=api.example".
local function notes_of(route)
  local notes = { route.websocket and "websocket" }
  if route.name then notes[#notes + 1] = "name=" .. route.name end
  if route.host then notes[#notes + 1] = "host=" .. route.host end
  if route.fallback == true then notes[#notes + 1] = "fallback" end
  if type(route.fallback) == "string" then notes[#notes + 1] = "fallback=" .. route.fallback end
  return table.concat(notes, " ")
end

local function rows_of(routes, folders)
  local rows = {}
  for _, route in ipairs(routes) do
    rows[#rows + 1] = { route.method == "*" and "ANY" or route.method, route.path, notes_of(route),
      table.concat(route.middleware, ", "), ("%s:%d"):format(route.file, route.line) }
  end
  for _, folder in ipairs(folders) do
    local path = folder.path == "/" and "/..." or folder.path .. "/..."
    rows[#rows + 1] = { "FILES", path, notes_of(folder), folder.folder, ("%s:%d"):format(folder.file, folder.line) }
  end
  return rows
end

--- The widest of each column; one that is empty everywhere takes no room.
local function widths(rows)
  local wide = { 0, 0, 0, 0, 0 }
  for _, row in ipairs(rows) do
    for column, text in ipairs(row) do wide[column] = math.max(wide[column], #text) end
  end
  return wide
end

local function write_row(row, wide, out)
  local cells = {}
  for column, text in ipairs(row) do
    if wide[column] > 0 then
      local padded = column < #row and text .. (" "):rep(wide[column] - #text) or text
      local colour = column == 1 and COLOURS[text] or column > 2 and "dim" or nil
      cells[#cells + 1] = colour and out:paint(colour, padded) or padded
    end
  end
  out.file:write(table.concat(cells, "  "), "\n")
end

local function write_table(made)
  local rows = rows_of(routes_of(made), folders_of(made))
  local wide = widths(rows)
  for _, row in ipairs(rows) do write_row(row, wide, terminal.out) end
end

-- ------------------------------------------------------------------------------------------------------------------

local function tell_problem(problem)
  local findings = new_findings(env.root)
  findings:add_error(problem, "load", "app.lua")
  findings:write(terminal.err)
  return 1
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
  local app, problem = app_load.app(app_file)
  if not app then return tell_problem(problem) end
  local made
  made, problem = app_load.made(app)
  if not made then return tell_problem(problem) end
  if opts.json then
    local told = { routes = routes_of(made), folders = folders_of(made), mounts = mounts_of(made) }
    io.stdout:write(json.encode(told, { pretty = true }), "\n")
  else
    write_table(made)
  end
  return 0
end
