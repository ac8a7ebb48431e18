--- `srv doctor APP`: starts an app, loads it, looks at its workers from outside, and says what slows it down.
local array = require "srv.base.json".array
local exec = require "srv.async.exec"
local fs = require "srv.async.fs"
local json = require "srv.base.json"
local now = require "srv.core.env".now
local program = require "srv.core.process".program
local app_under_load = require "srv.cli.app_under_load"
local doctor_findings = require "srv.cli.doctor_findings"
local doctor_options = require "srv.cli.doctor_options"
local doctor_run = require "srv.cli.doctor_run"
local doctor_series = require "srv.cli.doctor_series"
local doctor_text = require "srv.cli.doctor_text"
local page = require "srv.cli.page"
local server_process = require "srv.cli.server_process"
local terminal = require "srv.cli.terminal"
local until_interrupted = require "srv.cli.until_interrupted"

local FAILED = 1
local CONNECTIONS = 100 -- of the load, where the line does not say
local ROUTES_MAX = 20   -- loaded, of an app that has more
local INTERVAL_MIN, INTERVAL_MAX = 20, 10000 -- server/vitals.h

local function fail(problem)
  io.stderr:write("srv doctor: ", problem, "\n")
  return FAILED
end

local function tell(opts, ...)
  if not opts.quiet and not opts.json then io.stderr:write(...) end
end

local function what_is_wrong(opts, rest)
  if opts.attach and rest[1] then return "--attach looks at a server that runs already: no APP beside it" end
  if not opts.attach and #rest ~= 1 then return "which APP?" end
  local has_load = opts.load or opts["on-port"]
  if opts.attach and has_load then return "--attach takes what load there is: no --load and no --on-port beside it" end
  if opts.load and opts["on-port"] then return "--load or --on-port, not both" end
  if opts.duration <= 0 then return "--duration must be longer than nothing" end
  local interval = opts["sample-interval"]
  if interval < INTERVAL_MIN or interval > INTERVAL_MAX then
    return ("--sample-interval must be %d to %d"):format(INTERVAL_MIN, INTERVAL_MAX)
  end
  return nil
end

-- The load -----------------------------------------------------------------------------------------------

--- The paths of APP that a GET without anything else reaches; "/" if nobody can tell.
local function plain_paths(app)
  local paths = {}
  local listed = exec({ assert(program()), "routes", app, "--json" })
  local told = listed and listed.status == 0 and json.decode(listed.stdout)
  for _, route in ipairs(told and told.routes or {}) do
    local is_plain = route.method == "GET" and not route.websocket and not route.host and not route.path:find "[:*{]"
    if is_plain and #paths < ROUTES_MAX then paths[#paths + 1] = route.path end
  end
  return #paths > 0 and paths or { "/" }
end

local function default_load(opts, app)
  return ("[ -c %d -d %g %s ]"):format(CONNECTIONS, opts.duration, table.concat(plain_paths(app), " "))
end

local function load_of(opts, app, server)
  if opts["on-port"] then return { command = app_under_load.shell(opts["on-port"]), port = server.port } end
  return { command = app_under_load.bench(opts.load, server), is_bench = true, port = server.port, app = app }
end

-- A look -------------------------------------------------------------------------------------------------

local function look(opts, ending, pid, how)
  local show = not opts.quiet and function(run) terminal.err:draw(doctor_text.live(run, terminal.err)) end or nil
  local recording, problem = doctor_run.look(pid, opts["sample-interval"], how, ending, show)
  terminal.err:erase()
  return recording, problem
end

local function look_at_app(opts, ending, app, flags)
  opts.load = opts.load or not opts["on-port"] and default_load(opts, app) or nil
  tell(opts, "starting ", app, " ...\n")
  local server, problem = server_process.start(server_process.command(app, unpack(flags or {})),
    { seconds = opts["start-timeout"] })
  if not server then return nil, problem end
  local recording
  recording, problem = look(opts, ending, server.pid, load_of(opts, app, server))
  if problem and server:status() ~= nil then problem = ("%s ended:\n%s"):format(app, server:output()) end
  server:stop()
  return recording, problem
end

-- The result ---------------------------------------------------------------------------------------------

--- How to see the same with srv flame.
local function flame_command(opts, app)
  if opts.attach then return ("srv flame --attach %d -d %g"):format(opts.attach, opts.duration) end
  if opts["on-port"] then return ("srv flame %s --on-port '%s'"):format(app, opts["on-port"]) end
  return ("srv flame %s --load '%s'"):format(app, opts.load)
end

local function own_command(opts, app)
  local what = opts.attach and ("--attach %d -d %g"):format(opts.attach, opts.duration) or app
  if opts["on-port"] then return ("srv doctor %s --on-port '%s'"):format(what, opts["on-port"]) end
  return "srv doctor " .. what .. (opts.load and (" --load '%s'"):format(opts.load) or "")
end

local function latency_of(recording, view)
  local result = recording.result
  if result and result.latency then
    return { p50 = result.latency.p50, p99 = result.latency.p99, max = result.latency.max }
  end
  if view.requests == 0 then return nil end
  return {
    p50 = view:mean(function(line) return line.p50 end), p99 = view:most(function(line) return line.p99 end),
    max = view:most(function(line) return line.p99 end),
  }
end

local function result_of(recording, opts, app)
  local findings, notes, view = doctor_findings.of(recording, { flame = flame_command(opts, app), pid = opts.attach })
  for _, finding in ipairs(findings) do finding.evidence, finding.next = array(finding.evidence), array(finding.next) end
  return {
    title = opts.title or ("srv doctor %s"):format(app), app = app, command = own_command(opts, app), date = now(),
    workers = recording.workers, seconds = view.seconds, from = view.from, to = view.to, interval = recording.ms,
    requests = view.requests, failed = view.failed, latency = latency_of(recording, view),
    findings = array(findings), notes = array(notes), jit = recording.jit,
  }
end

local function write_page(result, series, opts)
  local path = opts.dest or page.file_name(result.app, "doctor")
  local written, err = fs.write(path, page.write("doctor", { result = result, series = series }))
  if not written then return err.message end
  tell(opts, "The page: ", path, "\n")
  return opts.open and page.open(path) or nil
end

--- Shows what was found in all ways that were asked for. Returns what went wrong.
local function show(recording, result, opts)
  local series = doctor_series.of(recording)
  if opts.json then
    io.stdout:write(json.encode { result = result, series = series }, "\n")
  else
    io.stdout:write("\n", doctor_text.report(result, terminal.out), "\n")
  end
  return (opts.page or opts.dest) and write_page(result, series, opts) or nil
end

---@param args string[]
---@return integer exit_status
return function(args)
  local opts, rest = doctor_options:read(app_under_load.join_brackets(args))
  if not opts then return rest end
  local wrong = what_is_wrong(opts, rest)
  if wrong then return doctor_options:refuse(wrong) end

  local recording, problem = until_interrupted(function(ending)
    if opts.attach then return look(opts, ending, opts.attach, { seconds = opts.duration }) end
    return look_at_app(opts, ending, rest[1], rest.behind)
  end)
  if not recording then return fail(problem) end
  local result = result_of(recording, opts, rest[1] or recording.app)
  problem = show(recording, result, opts)
  if problem then return fail(problem) end
  return opts.check and #result.findings > 0 and FAILED or 0
end
