--- `srv test [APP] [specs or busted's arguments]`: runs an app's busted specs in the server's own
--- runtime, in a task, so that `it` may wait as handlers do. Exit status 0: all have passed; 1: not so.

local alarm = require "srv.core.alarm"
local seconds = require "srv.async.task".seconds

local TEST_LIMIT = "60s"
local HELP = [[
srv test [APP] [SPECS] [options] - runs an app's busted specs in the server's own runtime

  --watch               again after each change
  --timeout 60s         of each test, in real time
  --filter PATTERN      tests whose names fit; --filter-out: those whose do not
  --tags a,b            tests with one of these tags; --exclude-tags: without
  --output TAP|junit    how results are shown; -Xoutput FILE: where junit goes
  --coverage            with luacov, if it is installed
  --list                names of the tests; --repeat N: so often; --shuffle: in another order

Other options are busted's. Exit status 0: all have passed; 1: not so.
]]
local HELD = " (srv.test.clock() stands: sleeps and time limits end by clock:advance() alone)"

local ENDED = {} -- raised in the place of os.exit(), which busted calls when something failed

local function usage(problem)
  io.stderr:write("srv: ", problem, "\n")
  return 1
end

local function asks_for_help(args)
  for _, arg in ipairs(args) do
    if arg == "--help" or arg == "-h" then return true end
  end
  return false
end

local function app_comes_first(args)
  local first = args[1] or "-"
  return first:sub(1, 1) ~= "-" and not first:find "_spec%.lua$"
end

local function root_of(app_file, args)
  return app_file:match("^(.*)/[^/]*$") or app_comes_first(args) and args[1] or "."
end

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

-- busted's options that take the next argument, unless they have a "=".
local TAKES_NEXT = {}
for name in ([[
  -p --pattern --exclude-pattern -e -o --output -C --directory -f --config-file --coverage-config-file -t --tags
  --exclude-tags --filter --filter-out -m --lpath --cpath -r --run --repeat --seed --lang --loaders --helper --lua
  -Xoutput -Xhelper
]]):gmatch "%S+" do TAKES_NEXT[name] = true end

--- busted's arguments: those given behind the app, or all specs of the app's spec folder; and whether
--- specs were named.
local function busted_args(args, root)
  local given, named = {}, false
  for i = app_comes_first(args) and 2 or 1, #args do
    given[#given + 1] = args[i]
    named = named or args[i]:sub(1, 1) ~= "-" and not (i > 1 and TAKES_NEXT[args[i - 1]])
  end
  if not named then given[#given + 1] = root .. "/spec" end
  return given, named
end

--- In a spec, print() is for whoever debugs it. As a line of the log it would lie below the level here.
local function print_plainly(...)
  local texts = {}
  for i = 1, select("#", ...) do texts[i] = tostring((select(i, ...))) end
  io.stdout:write(table.concat(texts, "\t"), "\n")
end

--- busted gives the number of failures, of which a process could tell only the last eight bits.
local function status_of(code)
  return (code == true or code == nil or code == 0) and 0 or 1
end

--- What of a package is not installed, as a sentence that says how to come by it; nil if it is there.
local function missing(module, package)
  local found, problem = pcall(require, module)
  if found then return nil, problem end
  return ("%s is not installed: `%s` (%s)"):format(module:match "^[^.]+", package, tostring(problem):match "[^\n]*")
end

local function wants_coverage(args)
  for _, arg in ipairs(args) do
    if arg == "-c" or arg == "--coverage" then return true end
  end
  return false
end

--- Takes our own option out of the arguments: "--timeout 5s" or "--timeout=5s".
local function take_limit(args)
  for i, arg in ipairs(args) do
    local value = arg:match "^%-%-timeout=(.*)$"
    if value then
      table.remove(args, i)
      return value
    elseif arg == "--timeout" then
      table.remove(args, i)
      return table.remove(args, i) or ""
    end
  end
  return TEST_LIMIT
end

local function describe_test(element, limit)
  local trace = element.trace or {}
  return ("%s:%s: the test %q has not ended after %s"):format(
    trace.short_src or "?", trace.currentline or "?", element.name or "", limit)
end

--- Each test has so long, in real time: one that waits for what never comes would hold up the whole run.
local function limit_tests(limit)
  local found, core = pcall(require, "busted.core")
  if not found then error(core, 0) end
  package.loaded["busted.core"] = function(...)
    local busted = core(...)
    busted.exportApi("current_element", busted.context.get) -- srv.testing asks in what it is called
    busted.subscribe({ "test", "start" }, function(element)
      local why = describe_test(element, limit)
      alarm.set(seconds("--timeout", limit), why, why .. HELD)
      return nil, true
    end)
    busted.subscribe({ "test", "end" }, function()
      alarm.clear()
      return nil, true
    end)
    return busted
  end
end

---@param args string[]
---@param app_file string
---@return integer exit_status
return function(args, app_file)
  if asks_for_help(args) then
    io.stdout:write(HELP)
    return 0
  end
  local limit = take_limit(args)
  if not pcall(seconds, "--timeout", limit) then return usage(('--timeout: %q is no duration ("5s")'):format(limit)) end
  local root = root_of(app_file, args)
  local given, named = busted_args(args, root)
  if not named and not exists(root .. "/spec") then
    return usage(("no specs: %s/spec is not there (specs are busted files named *_spec.lua)"):format(root))
  end
  -- Before luacov is loaded: it calls what os.exit was when it came.
  local status = 0
  rawset(os, "exit", function(code)
    status = status_of(code)
    error(ENDED, 0)
  end)
  local problem, runner = missing("busted.runner", "apt-get install lua-busted")
  local coverage
  if not problem and wants_coverage(given) then
    problem, coverage = missing("luacov.runner", "luarocks install --lua-version 5.1 luacov")
  end
  if problem then return usage(problem) end
  if coverage then jit.off() end -- compiled code calls no hook for its lines
  limit_tests(limit)
  rawset(_G, "arg", given)
  rawset(_G, "print", print_plainly)
  local ok, raised = pcall(runner, { standalone = false })
  if coverage then coverage.shutdown() end -- writes luacov.stats.out
  if not ok and raised ~= ENDED then error(raised, 0) end
  return status
end
