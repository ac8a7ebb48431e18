--- `srv new NAME`: a folder with an app that serves, is tested and clean, to begin with.
local asset = require "srv.core.asset"
local fs = require "srv.async.fs"
local options = require "srv.cli.options"
local suggest = require "srv.base.suggest"
local terminal = require "srv.cli.terminal"

-- In every new app; "dot_gitignore" becomes ".gitignore".
local COMMON = "templates/common/"
local PLACE_OF_NAME = "@NAME@"
local NAME_BYTES_MAX = 64

local TEMPLATES = {
  { "minimal", "one route and its spec" },
  { "api", "routes, controllers, services; a database with migrations; its own description at /docs" },
  { "site", "pages with a layout, a form, a session, public files" },
  { "chat", "a WebSocket, messages that go to all over the bus, and the page for them" },
}

local NEXT = [[

  srv .          # serves it, and loads each edit
  srv test       # runs its specs
  srv types      # types for your editor
]]

local function list_templates()
  local lines = {}
  for _, template in ipairs(TEMPLATES) do lines[#lines + 1] = ("  %-10s%s"):format(template[1], template[2]) end
  return table.concat(lines, "\n")
end

local LINE = options.new("new", "NAME", "a folder with a new app, its specs and its git files", {
  { "t", "template", "NAME", "what it begins as", default = "minimal" },
  { false, "force", false, "into a folder that is not empty; no file that is there is written over" },
}, "Templates:\n" .. list_templates() .. [[


  srv new shop --template api && cd shop && srv .
]])

local function known_names()
  local names = {}
  for i, template in ipairs(TEMPLATES) do names[i] = template[1] end
  return names
end

--- The name goes into code, SQL and pages as it is, so it is one that means the same in all of them.
local function check_name(name)
  if #name > NAME_BYTES_MAX then return ("a name has at most %d characters"):format(NAME_BYTES_MAX) end
  if name:find "^[%l][%l%d_-]*$" then return nil end
  return ("%q is no name: it begins with a lower case letter, and goes on with those, digits, - and _"):format(name)
end

local function check_template(name)
  for _, known in ipairs(known_names()) do
    if known == name then return nil end
  end
  return ("there is no template %q%s\n%s"):format(name, suggest.hint(name, known_names()), list_templates())
end

--- Files of the template and of all templates: { path in the app, text } in order.
local function files_of(template, name)
  local files = {}
  for _, prefix in ipairs { "templates/" .. template .. "/", COMMON } do
    for _, source in ipairs(asset.list(prefix)) do
      local path = source:sub(#prefix + 1):gsub("^dot_", "."):gsub("/dot_", "/.")
      files[#files + 1] = { path, (asset.read(source):gsub(PLACE_OF_NAME, name)) }
    end
  end
  table.sort(files, function(a, b) return a[1] < b[1] end)
  return files
end

--- Where it would be written, or why it cannot be.
local function check_folder(folder, files, is_forced)
  local found = fs.stat(folder)
  if not found then return nil end
  if found.kind ~= "folder" then return folder .. " is there, and no folder" end
  local entries, err = fs.list(folder)
  if not entries then return tostring(err) end
  if #entries > 0 and not is_forced then
    return folder .. " is there and not empty: give another name, or --force to write beside what it has"
  end
  for _, file in ipairs(files) do
    if fs.stat(folder .. "/" .. file[1]) then return folder .. "/" .. file[1] .. " is there, and is not written over" end
  end
end

local function write_all(folder, files)
  for _, file in ipairs(files) do
    local path = folder .. "/" .. file[1]
    local ok, err = fs.mkdir(path:match "^(.*)/")
    if ok then ok, err = fs.write(path, file[2]) end
    if not ok then return nil, tostring(err) end
  end
  return true
end

local function tell(folder, files)
  local out = terminal.out
  io.stdout:write(("%s: %d files\n"):format(folder, #files))
  for _, file in ipairs(files) do io.stdout:write("  ", out:paint("dim", file[1]), "\n") end
  io.stdout:write("\n  cd ", folder, NEXT)
end

local function fail(text)
  io.stderr:write("srv new: ", text, "\n")
  return 1
end

---@param args string[]
---@return integer exit_status
return function(args)
  local opts, rest = LINE:read(args)
  if not opts then return rest end
  if #rest ~= 1 then return LINE:refuse(#rest == 0 and "a NAME is missing" or "one NAME is enough") end
  local folder = rest[1]:gsub("(.)/+$", "%1")
  local name = folder:match "[^/]*$"
  local wrong = check_name(name) or check_template(opts.template)
  if wrong then return LINE:refuse(wrong) end
  local files = files_of(opts.template, name)
  local problem = check_folder(folder, files, opts.force)
  if problem then return fail(problem) end
  local ok, err = write_all(folder, files)
  if not ok then return fail(err) end
  tell(folder, files)
  return 0
end
