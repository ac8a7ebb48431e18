--- `srv bench URL...`: a load, and what became of it.
local json = require "srv.base.json"
local bench_compare = require "srv.cli.bench_compare"
local bench_limits = require "srv.cli.bench_limits"
local bench_options = require "srv.cli.bench_options"
local bench_requests = require "srv.cli.bench_requests"
local bench_run = require "srv.cli.bench_run"
local bench_text = require "srv.cli.bench_text"
local options = require "srv.cli.options"
local page = require "srv.cli.page"
local server_process = require "srv.cli.server_process"
local terminal = require "srv.cli.terminal"

local FAILED = 1

local WARMUP = options.new("bench --warmup", "[ -c N -d TIME ]", "the run before", {
  { "c", "connections", "N", "open at once", kind = "count", default = 1 },
  { "d", "duration", "TIME", "for so long", kind = "duration", default = 3 },
  { "a", "amount", "N", "so many requests", kind = "count" },
})

--- "-W [ -c 1 -d 3 ]" as one value, which is how it is meant.
local function join_brackets(args)
  local joined, inside = {}, nil
  for i, arg in ipairs(args) do
    if not inside and arg == "[" and (args[i - 1] == "-W" or args[i - 1] == "--warmup") then
      inside = {}
    elseif inside and arg == "]" then
      joined[#joined + 1] = table.concat(inside, " ")
      inside = nil
    elseif inside then
      inside[#inside + 1] = arg
    else
      joined[#joined + 1] = arg
    end
  end
  return joined
end

local function words_of(text)
  local words = {}
  for word in text:gmatch "[^%s%[%]]+" do words[#words + 1] = word end
  return words
end

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
  plan.connections, plan.threads, plan.pipelining = opts.connections, math.max(1, opts.workers), opts.pipelining
  plan.duration = opts.amount and 0 or opts.duration
  plan.amount = least(opts.amount, opts["max-overall-requests"])
  plan.rate = opts["connection-rate"] and opts["connection-rate"] * opts.connections or opts["overall-rate"]
  plan.timeout = opts.timeout
  plan.per_connection, plan.reconnect = opts["max-connection-requests"], opts["reconnect-rate"]
  plan.bailout, plan.only_ok = opts.bailout, opts["exclude-error-stats"]
  return plan
end

local function about_of(urls, opts, plan)
  return {
    url = #urls == 1 and urls[1] or table.concat(urls, " "), title = opts.title, connections = plan.connections,
    pipelining = plan.pipelining, workers = math.min(plan.threads, plan.connections), rate = plan.rate,
    sample_interval = math.max(100, opts["sample-interval"]), amount = plan.amount,
    seconds = plan.duration > 0 and plan.duration or nil,
    length = opts.amount and bench_text.count(opts.amount) .. " requests" or ("%g s"):format(opts.duration),
  }
end

local function check_ranges(opts)
  for _, name in ipairs { "connections", "pipelining", "sample-interval" } do
    if opts[name] < 1 then return ("--%s must be 1 at least"):format(name) end
  end
  if opts.amount and opts.amount < 1 then return "--amount must be 1 at least" end
  if not opts.amount and opts.duration <= 0 then return "--duration must be longer than nothing" end
  if opts.timeout <= 0 then return "--timeout must be longer than nothing" end
  for _, name in ipairs { "overall-rate", "connection-rate" } do
    if opts[name] and opts[name] <= 0 then return ("--%s must be more than 0"):format(name) end
  end
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
  local text = file:read "*a"
  file:close()
  local old, err = json.decode(text)
  if not old then return nil, ("%s: %s"):format(opts.compare, err.message) end
  return old
end

--- Bare paths are those of the server that was started, or of $PORT.
local function absolute(urls, port)
  local base = port and "http://127.0.0.1:" .. port
  local list = {}
  for i, address in ipairs(urls) do
    if address:sub(1, 1) == "/" then
      if not base then return nil, ("%q has no host: give a whole URL, PORT in the environment, or --on-port"):format(address) end
      address = base .. address
    elseif not address:find "^%a[%w+.-]*://" then
      address = "http://" .. address
    end
    list[i] = address
  end
  if #list == 0 and base then list[1] = base .. "/" end
  return list
end

-- A run ------------------------------------------------------------------------------------------------

local function warm_up(plan, opts)
  if not opts.warmup then return nil end
  local own, rest = WARMUP:read(words_of(opts.warmup))
  if not own then return rest end
  local warm = {}
  for key, value in pairs(plan) do warm[key] = value end
  warm.connections, warm.threads, warm.amount, warm.rate = own.connections, 1, own.amount, nil
  warm.duration = own.amount and 0 or own.duration
  terminal.err:draw { "warming up ..." }
  local _, err = bench_run.run(warm, { url = "", workers = 1, connections = 1, pipelining = 1, sample_interval = 1000 })
  terminal.err:erase()
  return err and fail(err.message)
end

local function write_file(path, text)
  local file, why = io.open(path, "wb")
  if not file then return why end
  local written
  written, why = file:write(text)
  file:close()
  return not written and why or nil
end

local function print_comparison(rows)
  local out = terminal.out
  out.file:write("\nAgainst the earlier run:\n")
  for _, row in ipairs(rows) do
    local text = row.key == "requests" and bench_text.count or bench_text.time
    local colour = row.verdict == "better" and "green" or row.verdict == "worse" and "red" or "dim"
    local verdict = row.verdict == "same" and "no difference that chance would not make" or row.verdict
    out.file:write(("  %-10s  %s -> %s (%+.1f %%)  %s (p = %.3f)\n"):format(row.name, text(row.old), text(row.new),
      row.change * 100, out:paint(colour, verdict), row.chance))
  end
end

--- Whether a limit was broken; says which.
local function is_over(limits, result)
  local broken = false
  for _, limit in ipairs(limits) do
    local holds, value = limit.holds(result)
    if holds then
      broken = true
      io.stderr:write(terminal.err:paint("red", ("failed: %s (it is %.4g)"):format(limit.text, value)), "\n")
    end
  end
  return broken
end

--- Shows RESULT in all ways that were asked for. Returns an exit status if one of them failed.
local function show(result, opts, old)
  local why
  if opts.json then
    io.stdout:write(json.encode(result), "\n")
  else
    io.stdout:write(bench_text.report(result, opts))
  end
  if opts.output then why = write_file(opts.output, json.encode(result)) end
  if old and not why then
    local rows, problem = bench_compare.compare(old, result)
    if not rows then return fail(("--compare %s: %s"):format(opts.compare, problem)) end
    result.comparison = rows
    if not opts.json then print_comparison(rows) end
  end
  if opts.html and not why then why = write_file(opts.html, page.write("bench", { result = result, old = old })) end
  return why and fail(why)
end

local function run_once(urls, opts, limits, old)
  local plan, problem = bench_requests.plan(urls, opts)
  if not plan then return fail(problem) end
  local failed = warm_up(fill_plan(plan, opts), opts)
  if failed then return failed end
  local about = about_of(urls, opts, plan)
  if not opts.json then io.stderr:write(bench_text.headline(about), "\n\n") end
  local result, err = bench_run.run(plan, about, not opts["no-progress"] and bench_text.live(about) or nil)
  terminal.err:erase()
  if not result then return fail(err.message) end
  if opts["ignore-coordinated-omission"] then result.latency = result.service end
  failed = show(result, opts, old)
  if failed then return failed end
  if result.answered == 0 then return fail "nothing was answered" end
  return is_over(limits, result) and FAILED or 0, result.interrupted
end

local function run(urls, opts, limits, old)
  repeat
    local status, was_interrupted = run_once(urls, opts, limits, old)
    if not opts.forever or status ~= 0 or was_interrupted then return status end
  until false
end

---@param args string[]
---@return integer exit_status
return function(args)
  local opts, rest = bench_options:read(join_brackets(args))
  if not opts then return rest end
  local wrong = check_ranges(opts)
  local limits, problem = read_limits(opts)
  wrong = wrong or problem
  if not wrong and opts["on-port"] and not (rest.behind and rest.behind[1]) then wrong = "--on-port wants a command behind --" end
  if not wrong and #rest == 0 and not rest.behind then wrong = "which URL?" end
  if wrong then return bench_options:refuse(wrong) end
  local old
  old, problem = read_old(opts)
  if problem then return fail(problem) end

  local server
  if rest.behind and rest.behind[1] then
    server, problem = server_process.start(rest.behind, { seconds = opts["start-timeout"] })
    if not server then return fail(problem) end
  end
  local urls
  urls, problem = absolute(rest, server and server.port or os.getenv "PORT")
  if not urls then return bench_options:refuse(problem) end
  local status = run(urls, opts, limits, old)
  if server then server:stop() end
  return status
end
