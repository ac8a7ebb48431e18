--- `srv bench URL...`: a load, and what became of it.
local json = require "srv.base.json"
local bench_compare = require "srv.cli.bench_compare"
local bench_limits = require "srv.cli.bench_limits"
local bench_options = require "srv.cli.bench_options"
local bench_requests = require "srv.cli.bench_requests"
local bench_run = require "srv.cli.bench_run"
local bench_show = require "srv.cli.bench_show"
local bench_text = require "srv.cli.bench_text"
local options = require "srv.cli.options"
local server_process = require "srv.cli.server_process"
local terminal = require "srv.cli.terminal"

local FAILED = 1
local BRACKETED = { ["-W"] = true, ["--warmup"] = true }

local WARMUP = options.new("bench --warmup", "[ -c N -d TIME ]", "the run before", {
  { "c", "connections", "N", "open at once", kind = "count", default = 1 },
  { "d", "duration", "TIME", "for so long", kind = "duration", default = 3 },
  { "a", "amount", "N", "so many requests", kind = "count" },
})

local function fail(problem)
  io.stderr:write("srv bench: ", problem, "\n")
  return FAILED
end

-- What the options mean --------------------------------------------------------------------------------

local function least(a, b)
  if a and b then return math.min(a, b) end
  return a or b
end

--- The numbers of a plan (srv.core.load).
local function fill_plan(plan, opts)
  plan.connections, plan.threads = opts.connections, math.max(1, opts.workers)
  plan.http2, plan.pipelining = opts.http2, opts.http2 and (opts.streams or 1) or opts.pipelining
  plan.duration = opts.amount and 0 or opts.duration
  plan.amount = least(opts.amount, opts["max-overall-requests"])
  plan.tls = {
    ca = opts.ca, cert = opts.cert, key = opts.key, insecure = opts.insecure, full = opts["full-handshakes"],
  }
  plan.rate = opts["connection-rate"] and opts["connection-rate"] * opts.connections or opts["overall-rate"]
  plan.timeout = opts.timeout
  plan.per_connection, plan.reconnect = opts["max-connection-requests"], opts["reconnect-rate"]
  plan.bailout, plan.only_ok = opts.bailout, opts["exclude-error-stats"]
  return plan
end

local function quoted(word)
  return word:find "^[%w%-%./:=_,@+%%]+$" and word or "'" .. word:gsub("'", [['\'']]) .. "'"
end

local function command_text(args)
  local words = { "srv bench" }
  for i, arg in ipairs(args) do words[i + 1] = quoted(arg) end
  return table.concat(words, " ")
end

local function about_of(urls, opts, plan)
  return {
    url = #urls == 1 and urls[1] or table.concat(urls, " "), title = opts.title, socket_path = opts["socket-path"],
    connections = plan.connections, workers = math.min(plan.threads, plan.connections),
    protocol = plan.http2 and "HTTP/2" or plan.websocket and "WebSocket" or "HTTP/1.1",
    pipelining = plan.http2 and 1 or plan.pipelining,
    streams = plan.http2 and plan.pipelining or nil,
    rate = plan.rate, from_sending = opts["ignore-coordinated-omission"], command = opts.command,
    sample_interval = math.max(100, opts["sample-interval"]), amount = plan.amount,
    seconds = plan.duration > 0 and plan.duration or nil,
    length = opts.amount and bench_text.count(opts.amount) .. " requests" or ("%g s"):format(opts.duration),
  }
end

--- The bounds of src/load/load_plan.h, where it has one.
local RANGES = {
  { "connections", 1, 100000 }, { "pipelining", 1, 1000 }, { "streams", 1, 1000 }, { "workers", 0, 64 },
  { "sample-interval", 1, 3600000 },
  { "amount", 1, 1e15 }, { "overall-rate", 0, 1e9 }, { "connection-rate", 0, 1e9 },
}
local MORE_THAN_NOTHING = { "overall-rate", "connection-rate", "timeout", "duration" }

local function check_ranges(opts)
  for _, range in ipairs(RANGES) do
    local name, from, to = unpack(range)
    local value = opts[name]
    if value and (value < from or value > to) then return ("--%s must be %d to %.0f"):format(name, from, to) end
  end
  for _, name in ipairs(MORE_THAN_NOTHING) do
    if opts[name] and opts[name] <= 0 then return ("--%s must be more than 0"):format(name) end
  end
  return nil
end

--- Options that mean something with one protocol alone.
local function check_protocol(opts)
  if opts.streams and not opts.http2 then return "--streams are those of --http2" end
  if opts.http2 and opts.pipelining > 1 then return "--pipelining is of HTTP/1.1: with --http2 it is --streams" end
  return nil
end

local function read_limits(opts)
  local limits = {}
  for i, text in ipairs(opts["fail-if"] or {}) do
    local limit, wrong = bench_limits.read(text)
    if not limit then return nil, wrong end
    limits[i] = limit
  end
  return limits
end

local function read_old(opts)
  if not opts.compare then return nil end
  local file, why = io.open(opts.compare, "rb")
  if not file then return nil, why end
  local text
  text, why = file:read "*a"
  file:close()
  if not text then return nil, ("--compare %s: %s"):format(opts.compare, why) end
  local old = json.decode(text)
  if not bench_compare.is_result(old) then return nil, ("--compare %s: it is no result of srv bench"):format(opts.compare) end
  return old
end

-- Who says how TLS is to be means https where the URL does not say.
local TLS_OPTIONS = { "ca", "insecure", "cert", "servername", "full-handshakes" }

local function means_tls(opts)
  for _, name in ipairs(TLS_OPTIONS) do
    if opts[name] then return true end
  end
  return false
end

--- Bare paths are those of the SERVER that was started, or of $PORT.
local function absolute(urls, server, opts)
  local port = server and server.port or os.getenv "PORT"
  local scheme = (means_tls(opts) or server and server.has_tls) and "https://" or "http://"
  local base = port and scheme .. "127.0.0.1:" .. port
  local list = {}
  for i, address in ipairs(urls) do
    if address:sub(1, 1) == "/" then
      if not base then return nil, ("%q has no host: give a whole URL, PORT in the environment, or --on-port"):format(address) end
      address = base .. address
    elseif not address:find "^%a[%w+.-]*://" then
      address = scheme .. address
    end
    list[i] = address
  end
  if #list == 0 and base then list[1] = base .. "/" end
  return list
end

-- A run ------------------------------------------------------------------------------------------------

--- Options of --warmup, {} without one, or nil and an exit status.
local function read_warmup(opts)
  if not opts.warmup then return {} end
  return WARMUP:read(options.words(opts.warmup))
end

local function warm_up(plan, own, stop)
  local warm = {}
  for key, value in pairs(plan) do warm[key] = value end
  warm.connections, warm.threads, warm.amount, warm.rate = own.connections, 1, own.amount, nil
  warm.duration = own.amount and 0 or own.duration
  terminal.err:draw { "warming up ..." }
  local result, err = bench_run.run(warm, {
    url = "", workers = 1, connections = own.connections, pipelining = plan.pipelining, sample_interval = 1000,
  }, stop)
  terminal.err:erase()
  return result, err
end

--- Returns a result, or nil and an exit status.
local function load_once(plan, opts, about, stop)
  local warmup
  if opts.warmup then
    local err
    warmup, err = warm_up(plan, opts.warmup, stop)
    if not warmup then return nil, fail(err.message) end
    if stop.asked then return nil, 0 end
  end
  if not opts.json then io.stderr:write(bench_text.headline(about), "\n\n") end
  local result, err, hist = bench_run.run(plan, about, stop, opts.progress and bench_text.live(about) or nil)
  terminal.err:erase()
  if not result then return nil, fail(err.message) end
  result.warmup = warmup
  return result, nil, hist
end

--- The exit status of one run.
local function run_once(urls, opts, limits, old, stop)
  local plan, problem = bench_requests.plan(urls, opts)
  if not plan then return fail(problem) end
  fill_plan(plan, opts)
  local result, status, hist = load_once(plan, opts, about_of(urls, opts, plan), stop)
  if not result then return status end
  problem = bench_show.show(result, opts, old, hist)
  if problem then return fail(problem) end
  if result.answered == 0 then return fail "nothing was answered" end
  return bench_show.is_over(limits, result) and FAILED or 0
end

local function run(urls, opts, limits, old, stop)
  local status
  repeat
    status = run_once(urls, opts, limits, old, stop)
  until not opts.forever or status ~= 0 or stop.asked
  return status
end

--- What is wrong with the line as a whole.
local function check_line(opts, rest)
  if opts["on-port"] and not (rest.behind and rest.behind[1]) then return "--on-port wants a command behind --" end
  if #rest == 0 and not (rest.behind and rest.behind[1]) then return "which URL?" end
  return check_ranges(opts) or check_protocol(opts)
end

--- Runs against COMMAND, which is started for it, or against what is there.
local function run_with_server(command, rest, opts, limits, old)
  local server, problem
  if command then
    server, problem = server_process.start(command, { seconds = opts["start-timeout"] })
    if not server then return fail(problem) end
  end
  local stop = bench_run.catch()
  local urls
  urls, problem = absolute(rest, server, opts)
  local status = urls and run(urls, opts, limits, old, stop) or bench_options:refuse(problem)
  if server then server:stop() end
  stop:close()
  return status
end

--- Files that the results go to are opened before the load, not when an hour of it is over.
local function check_targets(opts)
  for _, name in ipairs { "html", "output", "hgrm" } do
    local file, why
    if opts[name] then
      file, why = io.open(opts[name], "ab")
      if not file then return ("--%s: %s"):format(name, why) end
      file:close()
    end
  end
  return nil
end

---@param args string[]
---@return integer exit_status
return function(args)
  local opts, rest = bench_options:read(options.join_brackets(args, BRACKETED))
  if not opts then return rest end
  local limits, problem = read_limits(opts)
  problem = check_line(opts, rest) or problem
  if problem then return bench_options:refuse(problem) end
  local warmup, status = read_warmup(opts)
  if not warmup then return status end
  local old
  old, problem = read_old(opts)
  problem = problem or check_targets(opts)
  if problem then return fail(problem) end
  opts.warmup, opts.command, opts.progress = opts.warmup and warmup, command_text(args), not opts["no-progress"]
  local command = rest.behind and rest.behind[1] and rest.behind
  return run_with_server(command, rest, opts, limits, old)
end
