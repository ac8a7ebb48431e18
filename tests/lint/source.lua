--- Reads every committed source file for what no review should have to find:
---   * a path of one machine (the checkout's own folder, somebody's home),
---   * C calls that cannot be used safely, or that block or race in a server of many threads,
---   * work left open,
--- and lists, without failing, functions over 60 lines and files over 900.
---
---     luajit tests/lint/source.lua [ROOT]      exit status 1 and a line for each offence
local root = arg[1] or "."

local FUNCTION_LINES = 60
local FILE_LINES = 900

-- Each with what to use instead.
local BANNED = {
  strcpy = "memcpy or buf_add", strcat = "buf_add", strncat = "buf_add", stpcpy = "memcpy",
  sprintf = "snprintf or buf_printf", vsprintf = "vsnprintf", gets = "fgets", strtok = "str_next or strsep",
  atoi = "str_to_u64", atol = "str_to_u64", atoll = "str_to_u64", atof = "number_read",
  rand = "rand_below", srand = "rand_below", random = "rand_u64", drand48 = "rand_u64",
  gmtime = "gmtime_r", localtime = "localtime_r", asctime = "clock_iso", ctime = "clock_iso",
  tmpnam = "mkstemp", mktemp = "mkstemp", tempnam = "mkstemp", alloca = "an arena",
  system = "posix_spawn", popen = "posix_spawn", gethostbyname = "net/dns", getaddrinfo = "net/dns",
  usleep = "a timer", sleep = "a timer",
}

-- The one place where a banned call is what is meant.
local ALLOWED = {
  ["src/net/addr.c"] = { getaddrinfo = true },
}

local offences, notes = 0, 0

local function offend(place, format, ...)
  offences = offences + 1
  print(place .. ": " .. format:format(...))
end

local function note(place, format, ...)
  notes = notes + 1
  print("note: " .. place .. ": " .. format:format(...))
end

local function lines_of(command)
  local pipe, list = assert(io.popen(("cd '%s' && %s"):format(root, command))), {}
  for line in pipe:lines() do list[#list + 1] = line end
  pipe:close()
  return list
end

local function read_file(path)
  local file = io.open(root .. "/" .. path)
  if not file then return "" end
  local text = file:read "*a" or "" -- nil: a folder
  file:close()
  return text
end

local function each_line(text)
  local number = 0
  return function(_, at)
    if at > #text then return end
    number = number + 1
    local stop = text:find("\n", at, true) or #text + 1
    return stop + 1, number, text:sub(at, stop - 1)
  end, nil, 1
end

-- What git would commit, or all files where there is no git (a copied checkout).
local function committed_files()
  local files = lines_of "git ls-files --cached --others --exclude-standard 2>/dev/null"
  if #files > 0 then return files end
  return lines_of "find . -type f -not -path './build/*' -not -path './.git/*' | cut -c3- | sort"
end

-- Paths of one machine --------------------------------------------------------------------------------

local checkout = lines_of("pwd")[1]

--- Homes of people, and this very checkout where that is no short everyday path.
local function check_paths(path, text)
  if text:find "%z" then return end -- no text
  for _, number, line in each_line(text) do
    local hit = line:match "/home/[%w_.-]+/" or line:match "/Users/[%w_.-]+/" or line:match "%f[%w/~]/root/[%w_.-]+"
    if not hit and #checkout > 6 and line:find(checkout, 1, true) then hit = checkout end
    if hit then offend(path .. ":" .. number, "a path of one machine: %s", hit) end
  end
end

-- Open work ---------------------------------------------------------------------------------------------

local OPEN_WORK = { "TODO", "FIXME", "XXX", "HACK" }

local function check_open_work(path, text)
  for _, number, line in each_line(text) do
    for _, word in ipairs(OPEN_WORK) do
      if line:find("%f[%w]" .. word .. "%f[%W]") then
        offend(path .. ":" .. number, "%s: finish it or file it, do not leave it in the code", word)
      end
    end
  end
end

-- C -----------------------------------------------------------------------------------------------------

--- TEXT with comments, strings and character constants blanked, line ends kept.
local function bare_c(text)
  local out, at = {}, 1
  local function blank(s) return (s:gsub("[^\n]", " ")) end
  while at <= #text do
    local two, one = text:sub(at, at + 1), text:sub(at, at)
    local stop
    if two == "/*" then
      stop = select(2, text:find("*/", at + 2, true)) or #text
    elseif two == "//" then
      stop = (text:find("\n", at, true) or #text + 1) - 1
    elseif one == '"' or one == "'" then
      stop = at + 1
      while stop <= #text and text:sub(stop, stop) ~= one do
        stop = stop + (text:sub(stop, stop) == "\\" and 2 or 1)
      end
    end
    if stop then
      out[#out + 1] = blank(text:sub(at, stop))
      at = stop + 1
    else
      local run = text:match("^[^/\"']+", at) or one
      out[#out + 1] = run
      at = at + #run
    end
  end
  return table.concat(out)
end

local function check_calls(path, bare)
  local allowed = ALLOWED[path] or {}
  for _, number, line in each_line(bare) do
    for before, name in line:gmatch "([%w_.>]?)%f[%w_]([%a_][%w_]*)%s*%(" do
      local is_member = before == "." or before == ">"
      if BANNED[name] and not allowed[name] and not is_member then
        offend(path .. ":" .. number, "%s(): use %s", name, BANNED[name])
      end
    end
  end
end

--- Functions begin with a brace in the first column (clang-format sees to it).
local function note_lengths(path, bare)
  local start, count = nil, 0
  for _, number, line in each_line(bare) do
    count = number
    if line:find "^{" then
      start = number
    elseif start and line:find "^}" then
      if number - start - 1 > FUNCTION_LINES then
        note(path .. ":" .. start, "a function of %d lines", number - start - 1)
      end
      start = nil
    end
  end
  if count > FILE_LINES then note(path, "%d lines: is it one thing?", count) end
end

local function check_c(path, text)
  local bare = bare_c(text)
  check_calls(path, bare)
  note_lengths(path, bare)
end

-- All files ---------------------------------------------------------------------------------------------

local CODE_FOLDERS = { src = true, lua = true, apps = true, bench = true }
local CODE_EXTENSIONS = { c = true, h = true, lua = true }

local function is_code(path)
  return CODE_FOLDERS[path:match "^[^/]+" ] and CODE_EXTENSIONS[path:match "%.(%w+)$" ]
end

local files = committed_files()
for _, path in ipairs(files) do
  local text = read_file(path)
  check_paths(path, text)
  if is_code(path) then check_open_work(path, text) end
  if path:find "^src/.*%.[ch]$" then check_c(path, text) end
  if path:find "%.lua$" and select(2, text:gsub("\n", "")) > FILE_LINES then
    note(path, "over %d lines: is it one thing?", FILE_LINES)
  end
end
print(("%d files, %d offences, %d notes"):format(#files, offences, notes))
os.exit(offences == 0 and 0 or 1)
