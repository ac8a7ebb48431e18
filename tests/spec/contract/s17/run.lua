--- Runs the specs of an app of these in its own folder: a function of the app's name and of what the
--- environment is to be.
local FOLDER = "tests/spec/contract/s17/"

local function output_of(command)
  local pipe = assert(io.popen(command .. " 2>&1; echo \"exit $?\""))
  local text = pipe:read "*a"
  pipe:close()
  local output, status = text:match("^(.*)exit (%d+)\n$")
  return output, tonumber(status)
end

--- The program that runs this spec: lua_host.
local function this_program() return (output_of("readlink /proc/$PPID/exe"):gsub("\n$", "")) end

return function(app, environment)
  local output, status = output_of(("env -u REDIS_URL -u DATABASE_URL S17_PARTS=%sparts.lua %s '%s' '%s' -o plainTerminal '%s'")
    :format(FOLDER, environment, this_program(), FOLDER .. app, FOLDER .. app .. "/spec/check.lua"))
  assert(status == 0 and output:find "[1-9]%d* success", output)
end
