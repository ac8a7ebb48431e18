--- The distribution in the text that HdrHistogram's tools draw: five steps, then five for half of what is left.
local bench_hgrm = {}

local STEPS_OF_HALF = 5
local ROWS_MAX = 500

--- The percentiles worth a row, up to the last value: nearer to each other the nearer to 100 they are.
local function next_percentile(percent)
  local halves = math.floor(math.log(100 / (100 - percent)) / math.log(2) + 1e-9) + 1
  return percent + 100 / (2 ^ halves * STEPS_OF_HALF)
end

local function row_of(hist, percent, total)
  local count = math.max(1, math.ceil(total * percent / 100 - 1e-9))
  local inverse = percent < 100 and ("%14.2f"):format(1 / (1 - percent / 100)) or "           inf"
  return ("%12.3f %2.12f %10d %s"):format(hist:percentile(percent) / 1000, percent / 100, count, inverse)
end

---@param hist srv.core.Hist  in microseconds
---@return string             in milliseconds
function bench_hgrm.text(hist)
  local total, percent = hist:count(), 0
  local lines = { ("%12s %14s %10s %14s\n"):format("Value", "Percentile", "TotalCount", "1/(1-Percentile)") }
  while total > 0 and percent < 100 and total * (1 - percent / 100) >= 1 and #lines < ROWS_MAX do
    lines[#lines + 1] = row_of(hist, percent, total)
    percent = next_percentile(percent)
  end
  if total > 0 then lines[#lines + 1] = row_of(hist, 100, total) end
  lines[#lines + 1] = ("#[Mean    = %12.3f, StdDeviation   = %12.3f]"):format(hist:mean() / 1000, hist:deviation() / 1000)
  lines[#lines + 1] = ("#[Max     = %12.3f, Total count    = %12d]"):format(hist:percentile(100) / 1000, total)
  return table.concat(lines, "\n") .. "\n"
end

return bench_hgrm
