--- `srv flame APP`: starts an app, loads it, samples it, and shows where its time goes.
local fs = require "srv.async.fs"
local monotonic = require "srv.core.env".monotonic
local now = require "srv.core.env".now
local json = require "srv.base.json"
local task = require "srv.async.task"
local admin = require "srv.cli.admin"
local app_under_load = require "srv.cli.app_under_load"
local bench_text = require "srv.cli.bench_text"
local flame_diff = require "srv.cli.flame_diff"
local flame_export = require "srv.cli.flame_export"
local flame_options = require "srv.cli.flame_options"
local flame_page = require "srv.cli.flame_page"
local flame_record = require "srv.cli.flame_record"
local flame_text = require "srv.cli.flame_text"
local page = require "srv.cli.page"
local server_process = require "srv.cli.server_process"
local terminal = require "srv.cli.terminal"
local until_interrupted = require "srv.cli.until_interrupted"

local FAILED = 1
local HZ_MAX = 1000
local LOOK = 0.1        -- seconds from look to look at what ends the recording

local function fail(problem)
  io.stderr:write("srv flame: ", problem, "\n")
  return FAILED
end

local function tell(opts, ...)
  if not opts.quiet then io.stderr:write(...) end
end

-- The line ---------------------------------------------------------------------------------------------

local function what_is_wrong(opts, rest)
  if opts.attach and rest[1] then return "--attach looks at a server that runs already: no APP beside it" end
  if not opts.attach and #rest ~= 1 then return "which APP?" end
  if opts.attach and opts.load then return "--attach takes what load there is: no --load beside it" end
  if opts.load and opts["on-port"] then return "--load or --on-port, not both" end
  if opts.hz < 1 or opts.hz > HZ_MAX then return ("--hz must be 1 to %d"):format(HZ_MAX) end
  if opts.duration and opts.duration <= 0 then return "--duration must be longer than nothing" end
  return nil
end

-- The load ---------------------------------------------------------------------------------------------

--- The load that the options ask for; nil: none.
local function start_load(opts, server)
  if opts["on-port"] then return app_under_load.start(app_under_load.shell(opts["on-port"]), server and server.port) end
  if opts.load then return app_under_load.start(app_under_load.bench(opts.load, server), server.port) end
  return nil
end

--- What `srv bench --json` has said, in a line.
local function bench_line(output)
  local result = json.decode(output)
  if not result then return output end
  return ("the load: %s answered%s, %s/s, p50 %s, p99 %s, %s\n"):format(bench_text.count(result.answered),
    result.non2xx > 0 and (" (%s not 2xx)"):format(bench_text.count(result.non2xx)) or "",
    bench_text.count(result.requests.average), bench_text.time(result.latency.p50), bench_text.time(result.latency.p99),
    result.errors > 0 and bench_text.count(result.errors) .. " failed" or "none failed")
end

--- Ends LOAD and tells what it has said. What is wrong, if it ended by itself and badly.
local function end_load(opts, load)
  local ended_by_itself = load:is_over()
  local status, output, errors = load:finish()
  tell(opts, errors, opts.load and bench_line(output) or output)
  if not ended_by_itself or status == 0 then return nil end
  return ("the load ended with %s: what was sampled may be little of what was meant"):format(status)
end

-- The recording ------------------------------------------------------------------------------------------

local function live_line(opts, started, load)
  local took = monotonic() - started
  local of = opts.duration and (" of %g s"):format(opts.duration) or ""
  local ending = load and "until the load ends" or opts.duration and "" or "until Ctrl-C"
  return ("%s %.1f s%s  %s"):format(terminal.err:paint("red", "recording"), took, of, terminal.err:paint("dim", ending))
end

local function is_over(opts, ending, started, load, server)
  if ending.has_come then return true end
  if opts.duration and monotonic() - started >= opts.duration then return true end
  return load and load:is_over() or server and server:status() ~= nil
end

--- Waits for the first of: Ctrl-C, the duration, the load's end, the server's end.
local function wait_for_end(opts, ending, load, server)
  local started = monotonic()
  while not is_over(opts, ending, started, load, server) do
    if not opts.quiet then terminal.err:draw { live_line(opts, started, load) } end
    task.sleep(LOOK)
  end
  terminal.err:erase()
end

local function ask_about(pid, server)
  local about = server and admin.await(pid, function() return server:status() ~= nil end) or admin.about(pid)
  if not about then return nil, admin.nobody(pid) end
  return about
end

--- Samples what runs as process PID under the load that the options ask for. ENDING: what Ctrl-C does.
local function record(opts, ending, pid, server)
  local about, problem = ask_about(pid, server)
  if not about then return nil, problem end
  local recording, load
  recording, problem = flame_record.start(pid, opts.hz)
  if not recording then return nil, problem end
  load, problem = start_load(opts, server)
  if problem then return nil, problem end
  if not load and not opts.duration then
    tell(opts, ("%s: load it now, Ctrl-C ends the recording\n"):format(
      server and server:url() or "process " .. pid))
  end
  ending.keeps_samples = true
  wait_for_end(opts, ending, load, server)
  local profile
  profile, problem = recording:stop()
  local load_problem = load and end_load(opts, load)
  if not profile then return nil, problem end
  profile.app, profile.version, profile.load_problem = about.app, about.version, load_problem
  return profile
end

local function record_app(opts, ending, app, flags)
  tell(opts, "starting ", app, " ...\n")
  local server, problem = server_process.start(server_process.command(app, unpack(flags or {})),
    { seconds = opts["start-timeout"] })
  if not server then return nil, problem end
  local profile
  profile, problem = record(opts, ending, server.pid, server)
  server:stop()
  if problem and server:output() ~= "" then problem = problem .. "\nIt has said:\n" .. server:output() end
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

local function describe(profile, opts)
  profile.title, profile.date = opts.title, now()
  profile.command = opts["on-port"] or opts.load and "srv bench " .. opts.load:gsub("[%[%]]", ""):gsub("^%s+", "") or nil
end

--- Writes all that was asked for. Returns the first thing that went wrong.
local function write_results(profile, opts, old)
  local dest = opts.dest or page.file_name(profile.app, "flame")
  local why = write_file(dest, flame_page.write(profile, old))
  if not why and opts.json then why = write_file(opts.json, flame_export.json(profile)) end
  if not why and opts.folded then why = write_file(opts.folded, flame_export.folded(profile)) end
  if not why and opts.speedscope then why = write_file(opts.speedscope, flame_export.speedscope(profile)) end
  if why then return why end
  if not opts.quiet then
    local out = opts.json == "-" or opts.folded == "-" or opts.speedscope == "-" or opts.dest == "-"
    local file = out and io.stderr or io.stdout -- a program may read the other
    file:write("\n", flame_text.summary(profile), old and flame_text.changes(old, profile) or "")
    if dest ~= "-" then file:write("\nThe page: ", dest, "\n") end
  end
  return opts.open and dest ~= "-" and page.open(dest) or nil
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

local SILENT = [[
worker %d was busy with one turn from before the end to after it, and what it did there comes with that turn's end.
  slice_limit ends one that goes on for ever: record for longer, or read "where the long slice is" in the server's log]]

--- Why a recording has not one sample.
local function why_nothing(profile)
  if profile.silent[1] then return SILENT:format(profile.silent[1]) end
  return profile.load_problem or NOTHING:format(profile.seconds)
end

---@param args string[]
---@return integer exit_status
return function(args)
  local opts, rest = flame_options:read(app_under_load.join_brackets(args))
  if not opts then return rest end
  local wrong = what_is_wrong(opts, rest)
  if wrong then return flame_options:refuse(wrong) end
  local old, problem = read_old(opts.diff)
  if problem then return fail(problem) end

  local profile
  profile, problem = until_interrupted(function(ending)
    if opts.attach then return record(opts, ending, opts.attach) end
    return record_app(opts, ending, rest[1], rest.behind)
  end)
  if not profile then return fail(problem) end
  if profile.samples == 0 and profile.waits == 0 then return fail(why_nothing(profile)) end
  describe(profile, opts)
  if old then flame_diff.align(old, profile) end
  problem = write_results(profile, opts, old) or profile.load_problem
  return problem and fail(problem) or 0
end
