--- `srv flame APP`: starts an app, loads it, samples it, and shows where its time goes.
local exec = require "srv.async.exec"
local fs = require "srv.async.fs"
local interrupt = require "srv.core.interrupt"
local monotonic = require "srv.core.env".monotonic
local now = require "srv.core.env".now
local program = require "srv.core.process".program
local task = require "srv.async.task"
local admin = require "srv.cli.admin"
local flame_diff = require "srv.cli.flame_diff"
local flame_export = require "srv.cli.flame_export"
local flame_options = require "srv.cli.flame_options"
local flame_page = require "srv.cli.flame_page"
local flame_record = require "srv.cli.flame_record"
local flame_text = require "srv.cli.flame_text"
local server_process = require "srv.cli.server_process"
local terminal = require "srv.cli.terminal"

local FAILED = 1
local HZ_MAX = 1000
local LOOK = 0.1        -- seconds from look to look at what ends the recording
local LOAD_END_TIME = 5 -- seconds for a load to end after Ctrl-C

local function fail(problem)
  io.stderr:write("srv flame: ", problem, "\n")
  return FAILED
end

local function tell(opts, ...)
  if not opts.quiet then io.stderr:write(...) end
end

-- The line ---------------------------------------------------------------------------------------------

--- "--load [ -c 5 / ]" as one value, as it is with quotes.
local function join_brackets(args)
  local joined, inside = {}, nil
  for i, arg in ipairs(args) do
    if not inside and arg == "[" and args[i - 1] == "--load" then
      inside = {}
    elseif inside and arg == "]" then
      joined[#joined + 1] = "[ " .. table.concat(inside, " ") .. " ]"
      inside = nil
    else
      table.insert(inside or joined, arg)
    end
  end
  return joined
end

local function what_is_wrong(opts, rest)
  if opts.attach and rest[1] then return "--attach looks at a server that runs already: no APP beside it" end
  if not opts.attach and #rest ~= 1 then return "which APP?" end
  if opts.attach and opts.load then return "--attach takes what load there is: no --load beside it" end
  if opts.load and opts["on-port"] then return "--load or --on-port, not both" end
  if opts.hz < 1 or opts.hz > HZ_MAX then return ("--hz must be 1 to %d"):format(HZ_MAX) end
  if opts.duration and opts.duration <= 0 then return "--duration must be longer than nothing" end
  return nil
end

--- What the load is, as a command with $PORT in its environment: srv bench takes paths for those of it.
local function load_command(opts)
  if opts["on-port"] then return { "/bin/sh", "-c", opts["on-port"] } end
  if not opts.load then return nil end
  local command = { assert(program()), "bench", "--no-progress" }
  for word in opts.load:gmatch "[^%s%[%]]+" do command[#command + 1] = word end
  return command
end

-- The load ---------------------------------------------------------------------------------------------

local function keep_output(stream, kept)
  for text in stream do kept[#kept + 1] = text end
end

--- Starts COMMAND. What it says is shown after the live view, or at once if there is none.
local function start_load(command, port)
  if not command then return nil end
  local process, err = exec.start(command, { env = { PORT = port and tostring(port) } })
  if not process then return nil, ("the load did not start: %s"):format(err.message) end
  process.stdin:close()
  local load = { process = process, said = {} }
  load.reading = task.spawn(keep_output, process.stdout, load.said)
  load.reading_errors = task.spawn(keep_output, process.stderr, load.said)
  return load
end

local function end_load(load)
  if not load then return nil end
  load.process:kill "SIGINT"
  local status = load.process:wait(LOAD_END_TIME)
  if status == nil then load.process:kill "SIGKILL" end
  load.reading:wait()
  load.reading_errors:wait()
  return status
end

-- The recording ------------------------------------------------------------------------------------------

local function live_line(opts, started, load)
  local took = monotonic() - started
  local of = opts.duration and (" of %g s"):format(opts.duration) or ""
  local ending = load and "until the load ends" or opts.duration and "" or "until Ctrl-C"
  return ("%s %.1f s%s  %s"):format(terminal.err:paint("red", "recording"), took, of, terminal.err:paint("dim", ending))
end

local function is_over(opts, started, load, server)
  if opts.duration and monotonic() - started >= opts.duration then return true end
  if load and load.process:wait(0) ~= nil then return true end
  return server and server:status() ~= nil
end

--- Waits for the first of: Ctrl-C, the duration, the load's end, the server's end.
local function wait_for_end(opts, load, server)
  local signals, started, was_interrupted = assert(interrupt.catch()), monotonic(), false
  local watch = task.spawn(function() was_interrupted = signals:wait() ~= nil end)
  while not was_interrupted and not is_over(opts, started, load, server) do
    if not opts.quiet then terminal.err:draw { live_line(opts, started, load) } end
    task.sleep(LOOK)
  end
  terminal.err:erase()
  watch:cancel()
  signals:close()
end

--- Samples what runs as process PID under the load that the options ask for.
local function record(opts, pid, server)
  local about = admin.about(pid)
  if not about then return nil, admin.nobody(pid) end
  local recording, problem = flame_record.start(pid, opts.hz)
  if not recording then return nil, problem end
  local load
  load, problem = start_load(load_command(opts), server and server.port)
  if problem then
    recording:stop()
    return nil, problem
  end
  if not load and not opts.duration then
    tell(opts, ("%s: load it now, Ctrl-C ends the recording\n"):format(
      server and "http://127.0.0.1:" .. server.port or "process " .. pid))
  end
  wait_for_end(opts, load, server)
  local profile
  profile, problem = recording:stop()
  if profile then profile.app, profile.version = about.app, about.version end
  local status = end_load(load)
  if load then tell(opts, table.concat(load.said)) end
  if profile and load and status ~= 0 and profile.samples == 0 then
    return nil, "the load failed, and nothing was sampled" .. (opts.quiet and ":\n" .. table.concat(load.said) or "")
  end
  return profile, problem
end

local function record_app(opts, app, flags)
  tell(opts, "starting ", app, " ...\n")
  local server, problem = server_process.start(server_process.command(app, unpack(flags or {})),
    { seconds = opts["start-timeout"] })
  if not server then return nil, problem end
  local profile
  profile, problem = record(opts, server.pid, server)
  server:stop()
  return profile, problem
end

-- The results --------------------------------------------------------------------------------------------

local function write_file(path, text)
  if path == "-" then
    io.stdout:write(text)
    return nil
  end
  local written, err = fs.write(path, text)
  return not written and err.message or nil
end

local function base_name(path)
  local name = path:gsub("/+$", ""):match "([^/]*)$":gsub("%.lua$", "")
  return name:find "^[%w._-]+$" and not name:find "^%.+$" and name or "app"
end

local function describe(profile, opts)
  profile.title, profile.date = opts.title, now()
  profile.command = opts["on-port"] or opts.load and "srv bench " .. opts.load:gsub("[%[%]]", ""):gsub("^%s+", "") or nil
end

local function open_page(path)
  local shown, err = exec({ "xdg-open", path }, { timeout = "10s" })
  if not shown then return err.message end
  return shown.status ~= 0 and ("xdg-open %s: %s"):format(path, shown.stderr) or nil
end

--- Writes all that was asked for. Returns the first thing that went wrong.
local function write_results(profile, opts, old)
  local dest = opts.dest or base_name(profile.app) .. "-flame.html"
  local why = write_file(dest, flame_page.write(profile, old))
  if not why and opts.json then why = write_file(opts.json, flame_export.json(profile)) end
  if not why and opts.folded then why = write_file(opts.folded, flame_export.folded(profile)) end
  if not why and opts.speedscope then why = write_file(opts.speedscope, flame_export.speedscope(profile)) end
  if why then return why end
  if not opts.quiet then
    local out = opts.json == "-" or opts.folded == "-" or opts.speedscope == "-" or opts.dest == "-"
    local file = out and io.stderr or io.stdout
    file:write("\n", flame_text.summary(profile), old and flame_text.changes(old, profile) or "")
    if dest ~= "-" then file:write("\nThe page: ", dest, "\n") end
  end
  return opts.open and dest ~= "-" and open_page(dest) or nil
end

local function read_old(path)
  if not path then return nil end
  local text, err = fs.read(path)
  if not text then return nil, err.message end
  local old, problem = flame_export.read_json(text)
  return old, problem and ("%s: %s"):format(path, problem)
end

local NOTHING = [[
nothing was sampled: no worker used the CPU in %.1f s.
  Give the app something to do: --load '[ -c 50 -d 10 / ]', or --on-port with a load of your own]]

---@param args string[]
---@return integer exit_status
return function(args)
  local opts, rest = flame_options:read(join_brackets(args))
  if not opts then return rest end
  local wrong = what_is_wrong(opts, rest)
  if wrong then return flame_options:refuse(wrong) end
  local old, problem = read_old(opts.diff)
  if problem then return fail(problem) end

  local profile
  if opts.attach then
    profile, problem = record(opts, opts.attach)
  else
    profile, problem = record_app(opts, rest[1], rest.behind)
  end
  if not profile then return fail(problem) end
  if profile.samples == 0 and profile.waits == 0 then return fail(NOTHING:format(profile.seconds)) end
  describe(profile, opts)
  if old then flame_diff.align(old, profile) end
  problem = write_results(profile, opts, old)
  return problem and fail(problem) or 0
end
