--- Holds every #include and every require against the tables of docs/internals/ARCHITECTURE.md:
--- a file reaches its own floor and those below, a foreign library is named in its home alone,
--- nothing goes in a circle, a header stands first in its own .c. And that page names every other.
---
--- For circles, x.c and x.h are one room. An arrow goes from a room to each whose header it includes
--- and to each that defines a function or table its .c names, whatever header has the declaration.
---
---     luajit tests/lint/floors.lua [ROOT]      exit status 1 and a line for each offence
local root = arg[1] or "."
local PAGE = "docs/internals/ARCHITECTURE.md"

local offences = 0

local function offend(place, format, ...)
  offences = offences + 1
  print(place .. ": " .. format:format(...))
end

local function read_file(path)
  local file = assert(io.open(root .. "/" .. path))
  local text = file:read "*a"
  file:close()
  return text
end

--- Files below FOLDER that end in one of the extensions, in order.
local function list_files(folder, ...)
  local names = {}
  for _, extension in ipairs { ... } do
    names[#names + 1] = "-name '*." .. extension .. "'"
  end
  local pipe = assert(io.popen(("cd '%s' && find %s -type f \\( %s \\) 2>/dev/null | sort")
    :format(root, folder, table.concat(names, " -o "))))
  local files = {}
  for path in pipe:lines() do files[#files + 1] = path end
  pipe:close()
  return files
end

-- The page's tables --------------------------------------------------------------------------------

--- Rows of the table whose first heading is TITLE, each a list of cells.
local function read_table(page, title)
  local rows, inside = {}, false
  for line in page:gmatch "[^\n]+" do
    local cells = {}
    for cell in line:gmatch "|%s*([^|]-)%s*%f[|]" do cells[#cells + 1] = cell end
    if cells[1] == title then
      inside = true
    elseif #cells == 0 then
      inside = false
    elseif inside and not cells[1]:find "^%-+$" then
      rows[#rows + 1] = cells
    end
  end
  assert(#rows > 0, PAGE .. ": no table of " .. title)
  return rows
end

--- "web, db" and "base ev net": the words.
local function words(cell)
  local list = {}
  for word in cell:gmatch "[%w_./*-]+" do list[#list + 1] = word end
  return list
end

--- { floor = { floor it may reach = true } } from the columns "floor" and "may include".
local function read_floors(rows)
  local floors, all = {}, {}
  for _, row in ipairs(rows) do
    for _, floor in ipairs(words(row[1])) do
      floors[floor] = { [floor] = true }
      all[floor] = true
    end
  end
  for _, row in ipairs(rows) do
    for _, floor in ipairs(words(row[1])) do
      if row[2]:find "^all" then floors[floor] = all end
      for _, below in ipairs(words(row[2])) do
        if all[below] then floors[floor][below] = true end
      end
    end
  end
  return floors
end

--- { { pattern, homes } } from the table of foreign libraries.
local function read_libraries(rows)
  local libraries = {}
  for _, row in ipairs(rows) do
    for _, header in ipairs(words(row[2])) do
      local pattern = "^" .. header:gsub("%p", "%%%0"):gsub("%%%*", ".*") .. "$"
      libraries[#libraries + 1] = { pattern = pattern, name = row[1], homes = words(row[3]) }
    end
  end
  return libraries
end

local page = read_file(PAGE)
local c_floors = read_floors(read_table(page, "floor"))
local lua_floors = read_floors(read_table(page, "Lua floor"))
local libraries = read_libraries(read_table(page, "library"))

-- Headers of the C library and the kernel.
local SYSTEM = {}
for header in ([[
  assert.h ctype.h dirent.h dlfcn.h elf.h endian.h errno.h fcntl.h fenv.h float.h fnmatch.h getopt.h glob.h
  grp.h inttypes.h langinfo.h limits.h link.h locale.h malloc.h math.h netdb.h poll.h pthread.h pwd.h regex.h
  sched.h semaphore.h setjmp.h signal.h spawn.h stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h
  stdint.h stdio.h stdlib.h stdnoreturn.h string.h strings.h syslog.h termios.h threads.h time.h
  ucontext.h unistd.h utime.h wchar.h
]]):gmatch "%S+" do SYSTEM[header] = true end
local SYSTEM_FOLDERS = { arpa = true, linux = true, net = true, netinet = true, sys = true }

-- C -------------------------------------------------------------------------------------------------

--- "src/net/tls.c" -> "net", "net/tls"; src/main.c is a floor of its own.
local function place_in_tree(path)
  local inner = path:match "^src/(.*)%.[ch]$"
  return inner:match "^([^/]+)/" or inner, inner
end

local function is_home(homes, unit)
  for _, home in ipairs(homes) do
    local prefix = home:match "^.*/$" or home:match "^(.*)%*$"
    if home == unit or (prefix and unit:sub(1, #prefix) == prefix) then return true end
  end
  return false
end

local function check_foreign(place, unit, header)
  for _, library in ipairs(libraries) do
    if header:find(library.pattern) then
      if not is_home(library.homes, unit) then
        offend(place, "<%s>: %s is named in %s alone", header, library.name, table.concat(library.homes, ", "))
      end
      return
    end
  end
  if not SYSTEM[header] and not SYSTEM_FOLDERS[header:match "^[^/]+" ] then
    offend(place, "<%s> is no header of the C library; give the library a home in %s", header, PAGE)
  end
end

local function check_own(place, floor, header)
  local reached = header:match "^([^/]+)/"
  if not reached or not c_floors[reached] then
    offend(place, '"%s": an include names its floor ("base/buf.h")', header)
  elseif not c_floors[floor][reached] then
    offend(place, '"%s": %s may not include %s', header, floor, reached)
  end
end

--- The #include lines of a file: { number, name, foreign }.
local function includes_of(path)
  local list, number = {}, 0
  for line in (read_file(path) .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    local open, name = line:match '^%s*#%s*include%s*([<"])([^>"]+)[>"]'
    if name then list[#list + 1] = { number = number, name = name, foreign = open == "<" } end
  end
  return list
end

--- Checks each include of one file; returns the files of ours among them.
local function check_includes(path, exists)
  local floor, unit = place_in_tree(path)
  local list, ours = includes_of(path), {}
  if not c_floors[floor] then
    offend(path, "floor %s is not in %s", floor, PAGE)
    return ours
  end
  for _, include in ipairs(list) do
    local place = path .. ":" .. include.number
    if include.foreign then
      check_foreign(place, unit, include.name)
    else
      check_own(place, floor, include.name)
      ours[#ours + 1] = "src/" .. include.name
    end
  end
  if path:find "%.c$" and exists["src/" .. unit .. ".h"] and list[1].name ~= unit .. ".h" then
    offend(path .. ":" .. list[1].number, '"%s.h" comes first in its own .c: it must stand alone', unit)
  end
  return ours
end

-- Circles -----------------------------------------------------------------------------------------

--- Says each circle of GRAPH ({ node = { node... } }) once, as a -> b -> a. WHY(from, to), if given,
--- is a word that explains an arrow.
local function find_circles(graph, order, why)
  local state, path = {}, {}
  local function say(from)
    local steps = { path[from] }
    for i = from + 1, #path do
      steps[#steps + 1] = path[i] .. (why and (" (%s)"):format(why(path[i - 1], path[i])) or "")
    end
    offend(path[from], "circle: %s", table.concat(steps, " -> "))
  end
  local function visit(node)
    if state[node] == "done" or not graph[node] then return end
    path[#path + 1] = node
    if state[node] == "open" then
      local from = 1
      while path[from] ~= node do from = from + 1 end
      say(from)
    else
      state[node] = "open"
      for _, target in ipairs(graph[node]) do visit(target) end
      state[node] = "done"
    end
    path[#path] = nil
  end
  for _, node in ipairs(order) do visit(node) end
end

-- Rooms -------------------------------------------------------------------------------------------

--- Where the comment, string or character that begins at FROM ends; FROM itself: it is none.
local function end_of_token(text, from)
  local two, quote = text:sub(from, from + 1), text:sub(from, from)
  if two == "/*" then return select(2, text:find("*/", from + 2, true)) end
  if two == "//" then return text:find("\n", from, true) end
  if quote == "/" then return from end
  local at = from + 1
  while text:sub(at, at) ~= quote do
    at = at + (text:sub(at, at) == "\\" and 2 or 1)
    if at > #text then break end
  end
  return at
end

--- C without its comments and without what stands in quotes.
local function code_of(text)
  local parts, at = {}, 1
  while true do
    local from = text:find("[\"'/]", at)
    parts[#parts + 1] = text:sub(at, (from or 0) - 1)
    if not from then return table.concat(parts, " ") end
    at = (end_of_token(text, from) or #text) + 1
  end
end

--- Calls FOUND(name) for each function and constant table that CODE defines for other files.
local function each_definition(code, found)
  for before, name in ("\n" .. code):gmatch "\n(%a[%w_ *]-)([%a_][%w_]*)%b()%s*{" do
    if not before:find "^static%f[%W]" then found(name) end
  end
  for name in ("\n" .. code):gmatch "\nconst [%w_ *]-([%a_][%w_]*)[%[%]%w_]*%s*=" do found(name) end
end

local function new_rooms()
  return { order = {}, graph = {}, code = {}, includes = {}, definer = {}, why = {} }
end

local function add_to_room(rooms, path, includes)
  local _, room = place_in_tree(path)
  if not rooms.graph[room] then
    rooms.order[#rooms.order + 1] = room
    rooms.graph[room], rooms.code[room], rooms.includes[room] = {}, "", {}
  end
  for _, include in ipairs(includes) do table.insert(rooms.includes[room], include) end
  if path:find "%.c$" then
    rooms.code[room] = code_of(read_file(path))
    each_definition(rooms.code[room], function(name) rooms.definer[name] = room end)
  end
end

--- WORD is what says so in the text.
local function add_arrow(rooms, from, to, word)
  local arrow = from .. " -> " .. to
  if from == to or not rooms.graph[to] or rooms.why[arrow] then return end
  rooms.why[arrow] = word
  table.insert(rooms.graph[from], to)
end

local function check_rooms(rooms)
  for _, room in ipairs(rooms.order) do
    for word in rooms.code[room]:gmatch "[%a_][%w_]*" do
      if rooms.definer[word] then add_arrow(rooms, room, rooms.definer[word], word) end
    end
    for _, include in ipairs(rooms.includes[room]) do
      add_arrow(rooms, room, select(2, place_in_tree(include)), (include:gsub("^src/", "")))
    end
  end
  find_circles(rooms.graph, rooms.order, function(from, to) return rooms.why[from .. " -> " .. to] end)
end

local function check_c()
  local files, exists, rooms = list_files("src", "c", "h"), {}, new_rooms()
  for _, path in ipairs(files) do exists[path] = true end
  for _, path in ipairs(files) do
    add_to_room(rooms, path, check_includes(path, exists))
  end
  check_rooms(rooms)
  return #files
end

-- Lua -----------------------------------------------------------------------------------------------

--- "lua/srv/web/app.lua" -> "web", "srv.web.app"; lua/srv/init.lua is the floor init, module srv.
local function lua_place(path)
  local inner = path:match "^lua/srv/(.*)%.lua$"
  local name = ("srv/" .. inner):gsub("/init$", ""):gsub("/", ".")
  return inner:match "^([^/]+)", name
end

local function check_require(place, floor, name)
  if name:find "^srv%.core%." then return end
  local reached = name == "srv" and "init" or name:match "^srv%.([^.]+)"
  if not reached then
    if name ~= "ffi" and name ~= "bit" and not name:find "^jit%.?" and not name:find "^string%.buffer$"
      and not name:find "^table%." then
      offend(place, 'require "%s": the library needs nothing but LuaJIT', name)
    end
  elseif not lua_floors[reached] then
    offend(place, 'require "%s": floor %s is not in %s', name, reached, PAGE)
  elseif not lua_floors[floor][reached] then
    offend(place, 'require "%s": %s may not require %s', name, floor, reached)
  end
end

local function without_comment(line)
  return (line:gsub("%-%-.*$", ""))
end

local function check_requires(path)
  local floor = lua_place(path)
  local required, number = {}, 0
  if not lua_floors[floor] then
    offend(path, "Lua floor %s is not in %s", floor, PAGE)
    return required
  end
  for line in (read_file(path) .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    for name in without_comment(line):gmatch "%f[%w_]require%s*%(?%s*[\"']([%w_.]+)[\"']" do
      check_require(path .. ":" .. number, floor, name)
      required[#required + 1] = name
    end
  end
  return required
end

local function check_lua()
  local files, graph, order = list_files("lua/srv", "lua"), {}, {}
  for _, path in ipairs(files) do
    local _, name = lua_place(path)
    order[#order + 1] = name
    graph[name] = check_requires(path)
  end
  find_circles(graph, order)
  return #files
end

local function check_pages()
  local text = read_file(PAGE)
  for _, path in ipairs(list_files("docs/internals", "md")) do
    local name = path:match "[^/]+$"
    if path ~= PAGE and not text:find("](" .. name .. ")", 1, true) then offend(path, "%s does not name it", PAGE) end
  end
end

check_pages()
local c_count, lua_count = check_c(), check_lua()
print(("%d C files, %d Lua files, %d offences"):format(c_count, lua_count, offences))
os.exit(offences == 0 and 0 or 1)
