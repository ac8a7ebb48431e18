--- The result of a load as text: tables for people, and a live line or two while it runs.
local format = require "srv.base.format"
local terminal = require "srv.cli.terminal"
local bench_result = require "srv.cli.bench_result"

local bench_text = {}

local SPARKS = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }
local SPARKS_SHOWN = 40

local BACKLOG_SEEN = 0.01 -- of what was sent: less is the last moment's

--- Columns of the main table: percentiles in their order.
local SHOWN = { "50", "75", "90", "95", "97.5", "99", "99.9", "99.99" }
local OF_RATES = { "1", "2.5", "50", "97.5" }

-- Numbers ----------------------------------------------------------------------------------------------

--- Milliseconds in three digits: "0.213 ms", "21.3 ms", "2.13 s".
local function time_text(ms)
  if ms >= 10000 then return ("%.1f s"):format(ms / 1000) end
  if ms >= 1000 then return ("%.2f s"):format(ms / 1000) end
  if ms >= 100 then return ("%.0f ms"):format(ms) end
  if ms >= 10 then return ("%.1f ms"):format(ms) end
  if ms >= 1 then return ("%.2f ms"):format(ms) end
  return ("%.0f us"):format(ms * 1000)
end
bench_text.time = time_text

--- "1,234,567"
local function count_text(number)
  local text = ("%.0f"):format(number)
  while true do
    local longer, changed = text:gsub("^(-?%d+)(%d%d%d)", "%1,%2")
    if changed == 0 then return text end
    text = longer
  end
end
bench_text.count = count_text

local function bytes_text(number) return format.bytes(math.floor(number + 0.5)) end

-- Tables -----------------------------------------------------------------------------------------------

local function widths_of(rows)
  local wide = {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do wide[i] = math.max(wide[i] or 0, #cell) end
  end
  return wide
end

--- ROWS, the first of which is the head; the first column stands left, the others right.
local function table_text(rows)
  local wide, lines = widths_of(rows), {}
  for number, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      local blank = (" "):rep(wide[i] - #cell)
      cells[i] = i == 1 and cell .. blank or blank .. cell
    end
    local line = "  " .. table.concat(cells, "  ")
    lines[number] = number == 1 and terminal.out:paint("dim", line) or line
  end
  return table.concat(lines, "\n")
end

local function time_row(name, times)
  local row = { name }
  for _, text in ipairs(SHOWN) do row[#row + 1] = time_text(times[bench_result.key(text)]) end
  row[#row + 1], row[#row + 2], row[#row + 3] = time_text(times.max), time_text(times.mean), time_text(times.stddev)
  return row
end

local function times_table(result)
  local head = { "" }
  for _, text in ipairs(SHOWN) do head[#head + 1] = "p" .. text end
  head[#head + 1], head[#head + 2], head[#head + 3] = "max", "mean", "stddev"
  local rows = { head, time_row("Latency", result.latency) }
  if result.rate then rows[3] = time_row("Service", result.service) end
  return table_text(rows)
end

local function rate_row(name, spread, text_of)
  local row = { name }
  for _, text in ipairs(OF_RATES) do row[#row + 1] = text_of(spread[bench_result.key(text)]) end
  row[#row + 1], row[#row + 2], row[#row + 3] = text_of(spread.average), text_of(spread.stddev), text_of(spread.min)
  return row
end

local function rates_table(result)
  local head = { "" }
  for _, text in ipairs(OF_RATES) do head[#head + 1] = text .. "%" end
  head[#head + 1], head[#head + 2], head[#head + 3] = "mean", "stddev", "min"
  return table_text {
    head, rate_row("Req/s", result.requests, count_text), rate_row("Bytes/s", result.throughput, bytes_text),
  }
end

local function all_percentiles(result)
  local rows = { { "Percentile", "Latency" } }
  for _, text in ipairs(bench_result.percentiles) do
    rows[#rows + 1] = { text, time_text(result.latency[bench_result.key(text)]) }
  end
  return table_text(rows)
end

local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local function statuses_table(result)
  local rows = { { "Status", "Count" } }
  for _, status in ipairs(sorted_keys(result.statusCodeStats)) do
    rows[#rows + 1] = { status, count_text(result.statusCodeStats[status].count) }
  end
  return table_text(rows)
end

-- Sentences --------------------------------------------------------------------------------------------

local WORDS = {
  refused = "connections refused", connect_timeout = "connects without an answer", reset = "connections reset",
  closed = "closed before the response", timeout = "timed out", malformed = "not HTTP", tls = "handshakes failed",
  stream_refused = "streams refused", stream_reset = "streams reset",
}

local function fault_lines(result)
  local lines = {}
  for _, name in ipairs(sorted_keys(result.faults)) do
    if result.faults[name] > 0 then lines[#lines + 1] = ("  %s %s"):format(count_text(result.faults[name]), WORDS[name]) end
  end
  if result.non2xx > 0 then
    lines[#lines + 1] = ("  %s responses that were not 2xx"):format(count_text(result.non2xx))
  end
  if result.mismatches > 0 then
    lines[#lines + 1] = ("  %s bodies that were not as expected"):format(count_text(result.mismatches))
  end
  if result.unasked > 0 then
    lines[#lines + 1] = ("  %s connections ended by bytes that answer no request"):format(count_text(result.unasked))
  end
  return lines
end

--- The identity, so that everybody can see that nothing got lost.
local function account_line(result)
  if result.protocol == "WebSocket" then
    return ("  %s messages sent = %s came back + %s failed + %s under way at the end"):format(count_text(result.sent),
      count_text(result.answered), count_text(result.errors), count_text(result.in_flight))
  end
  return ("  %s sent = %s answered (%s 2xx, %s others) + %s failed + %s under way at the end"):format(
    count_text(result.sent), count_text(result.answered), count_text(result["2xx"]), count_text(result.non2xx),
    count_text(result.errors), count_text(result.in_flight))
end

--- Whether the server kept up, and if it did, whether all left when they were due.
local function rate_line(result)
  if not result.rate or result.sent == 0 then return nil end
  local late = 100 * result.late / result.sent
  if result.backlog > result.sent * BACKLOG_SEEN then
    return ("  the rate of %s/s was not reached: %s requests were still due at the end, %.1f %% left late"):format(
      count_text(result.rate), count_text(result.backlog), late)
  end
  if late < 1 then return nil end
  return ("  %.1f %% left more than 1 ms after they were due: all connections, or this machine, were busy"):format(late)
end

local function generator_line(result)
  if result.generator_cpu < 0.95 then return nil end
  return ("  the load took all of its CPU (%d %%): the server may be faster than this; try -w %d"):format(
    math.floor(result.generator_cpu * 100 + 0.5), result.workers + 1)
end

--- What was run, as a headline.
---@param about table
---@return string
function bench_text.headline(about)
  local how = about.rate and (" at %s requests/s"):format(count_text(about.rate)) or ""
  local pipelining = about.pipelining > 1 and (", %d under way on each"):format(about.pipelining) or ""
  if about.protocol == "WebSocket" then pipelining = " of WebSocket" .. pipelining end
  if about.streams then pipelining = (" of HTTP/2, %s on each"):format(terminal.counted(about.streams, "stream")) end
  return ("%s: %s%s%s, %s"):format(about.url, terminal.counted(about.connections, "connection"), pipelining, how, about.length)
end

--- The whole report.
---@param result table
---@param opts table
---@return string
function bench_text.report(result, opts)
  local paint = function(colour, text) return terminal.out:paint(colour, text) end
  local parts = {}
  local function add(text) if text and text ~= "" then parts[#parts + 1] = text end end
  if result.title then add(paint("bold", result.title)) end
  add(times_table(result))
  add("")
  parts[#parts + 1] = ""
  add(rates_table(result))
  parts[#parts + 1] = ""
  if opts.latency then add(all_percentiles(result)) parts[#parts + 1] = "" end
  if opts["render-status-codes"] then add(statuses_table(result)) parts[#parts + 1] = "" end
  add(account_line(result))
  for _, line in ipairs(fault_lines(result)) do add(paint("red", line)) end
  local rate, generator = rate_line(result), generator_line(result)
  if rate then add(paint("yellow", rate)) end
  if generator then add(paint("yellow", generator)) end
  add(("\n%s %s in %.2f s, %s read"):format(count_text(result.answered),
    result.protocol == "WebSocket" and "messages" or "requests", result.duration,
    bytes_text(result.throughput.total)))
  return table.concat(parts, "\n") .. "\n"
end

--- What was said of each measure against an earlier run.
---@param rows table[]  of bench_compare.compare
---@return string
function bench_text.comparison(rows)
  local lines = { "\nAgainst the earlier run:" }
  for _, row in ipairs(rows) do
    local text = row.key == "requests" and count_text or time_text
    local colour = row.verdict == "better" and "green" or row.verdict == "worse" and "red" or "dim"
    local verdict = row.verdict == "same" and "no difference that chance would not make" or row.verdict
    local chance = row.chance < 0.001 and "p < 0.001" or ("p = %.3f"):format(row.chance)
    lines[#lines + 1] = ("  %-10s  %s -> %s (%+.1f %%)  %s (%s)"):format(row.name, text(row.old), text(row.new),
      row.change * 100, terminal.out:paint(colour, verdict), chance)
  end
  return table.concat(lines, "\n") .. "\n"
end

-- While it runs ----------------------------------------------------------------------------------------

local function spark_of(samples)
  local most, sparks = 1, {}
  for _, sample in ipairs(samples) do most = math.max(most, sample.requests) end
  for i = math.max(1, #samples - SPARKS_SHOWN + 1), #samples do
    local height = math.ceil(samples[i].requests / most * #SPARKS)
    sparks[#sparks + 1] = SPARKS[math.max(1, height)]
  end
  return table.concat(sparks)
end

local function bar_of(share)
  local full = math.floor(math.min(1, share) * 30 + 0.5)
  return ("█"):rep(full) .. ("░"):rep(30 - full)
end

--- A function for bench_run.run() that draws how far the load is.
---@param about table
---@return fun(totals: table, samples: table[])?
function bench_text.live(about)
  local screen = terminal.err
  if not screen.is_one then return nil end
  return function(totals, samples)
    local faults = 0
    for _, number in pairs(totals.faults) do faults = faults + number end
    local share = about.seconds and totals.elapsed / about.seconds or totals.sent / (about.amount or math.huge)
    local last = samples[#samples]
    screen:draw {
      ("%s %3d %%  %.1f s"):format(bar_of(share), math.min(100, share * 100), totals.elapsed),
      ("%s req/s  p50 %s  p99 %s  max %s%s"):format(last and count_text(last.requests) or "-",
        time_text(totals.latency:percentile(50) / 1000), time_text(totals.latency:percentile(99) / 1000),
        time_text(totals.latency:percentile(100) / 1000),
        faults > 0 and screen:paint("red", ("  %s failed"):format(count_text(faults))) or ""),
      screen:paint("cyan", spark_of(samples)),
    }
  end
end

return bench_text
