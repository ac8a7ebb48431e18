--- `srv test [APP] [specs or busted's arguments]`: runs an app's busted specs in the server's own
--- runtime, in a task, so that `it` may wait as handlers do.

local ENDED = {} -- raised in the place of os.exit(), which busted calls when something failed

local function usage(problem)
  io.stderr:write("srv: ", problem, "\n")
  return 1
end

local function root_of(app_file, args)
  return app_file:match("^(.*)/[^/]*$") or args[1] or "."
end

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

--- busted's arguments: those given behind the app, or all specs of the app's spec folder.
local function busted_args(args, root)
  local given, named = {}, false
  for i = 1, #args do
    local is_app = i == 1 and args[1]:sub(1, 1) ~= "-"
    if not is_app then
      given[#given + 1] = args[i]
      named = named or args[i]:sub(1, 1) ~= "-"
    end
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

local function status_of(code)
  if type(code) == "boolean" then return code and 0 or 1 end
  return tonumber(code) or 0
end

---@param args string[]
---@param app_file string
---@return integer exit_status
return function(args, app_file)
  local root = root_of(app_file, args)
  local given, named = busted_args(args, root)
  if not named and not exists(root .. "/spec") then
    return usage(("no specs: %s/spec is not there (specs are busted files named *_spec.lua)"):format(root))
  end
  local found, runner = pcall(require, "busted.runner")
  if not found then
    return usage("busted is not installed: `apt-get install lua-busted` (" .. tostring(runner):match("[^\n]*") .. ")")
  end
  local status = 0
  rawset(os, "exit", function(code)
    status = status_of(code)
    error(ENDED, 0)
  end)
  rawset(_G, "arg", given)
  rawset(_G, "print", print_plainly)
  local ok, problem = pcall(runner, { standalone = false })
  if not ok and problem ~= ENDED then error(problem, 0) end
  return status
end
