--- The result of a load in all ways that were asked for: text or JSON, files, a page, a comparison, limits.
local json = require "srv.base.json"
local bench_compare = require "srv.cli.bench_compare"
local bench_hgrm = require "srv.cli.bench_hgrm"
local bench_text = require "srv.cli.bench_text"
local page = require "srv.cli.page"
local terminal = require "srv.cli.terminal"

local bench_show = {}

local function write_file(path, text)
  local file, why = io.open(path, "wb")
  if not file then return why end
  local written
  written, why = file:write(text)
  file:close()
  return not written and why or nil
end

--- Adds what can be said against OLD. Returns what is wrong.
local function compare(result, opts, old)
  local rows, problem = bench_compare.compare(old, result)
  result.comparison = rows
  return problem and ("--compare %s: %s"):format(opts.compare, problem)
end

local function write_files(result, opts, old, hist)
  local why
  if opts.output then why = write_file(opts.output, json.encode(result)) end
  if opts.hgrm and not why then why = write_file(opts.hgrm, bench_hgrm.text(hist)) end
  if opts.html and not why then why = write_file(opts.html, page.write("bench", { result = result, old = old })) end
  return why
end

--- Returns what is wrong.
---@param result table
---@param opts table             of the command
---@param old table?             an earlier result
---@param hist srv.core.Hist     of latencies
---@return string? problem
function bench_show.show(result, opts, old, hist)
  local problem = old and compare(result, opts, old)
  if opts.json then
    io.stdout:write(json.encode(result), "\n")
  else
    io.stdout:write(bench_text.report(result, opts))
    if result.comparison then io.stdout:write(bench_text.comparison(result.comparison)) end
  end
  return write_files(result, opts, old, hist) or problem
end

--- Whether one of LIMITS was broken; says which.
---@param limits table[]  of bench_limits.read
---@param result table
---@return boolean
function bench_show.is_over(limits, result)
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

return bench_show
