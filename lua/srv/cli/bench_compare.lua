--- Whether two loads differ: the rank test of Mann and Whitney on their samples, one a second. It asks for no
--- shape of the distribution, and a burst in one sample does not decide.
local bench_compare = {}

local SAMPLES_MIN = 5 -- fewer can show nothing at the level below
local LEVEL = 0.05

--- The two-sided chance that numbers of one kind differ as much as A and B do; by the normal approximation with
--- its correction for ties and for whole steps.
---@param a number[]
---@param b number[]
---@return number p
function bench_compare.chance(a, b)
  local all = {}
  for _, number in ipairs(a) do all[#all + 1] = { number, true } end
  for _, number in ipairs(b) do all[#all + 1] = { number, false } end
  table.sort(all, function(x, y) return x[1] < y[1] end)
  local n, rank_sum, ties, at = #all, 0, 0, 1
  while at <= n do
    local last = at
    while last < n and all[last + 1][1] == all[at][1] do last = last + 1 end
    local count, rank = last - at + 1, (at + last) / 2
    ties = ties + count ^ 3 - count
    for i = at, last do
      if all[i][2] then rank_sum = rank_sum + rank end
    end
    at = last + 1
  end
  local mean = #a * #b / 2
  local away = math.abs(rank_sum - #a * (#a + 1) / 2 - mean)
  local variance = #a * #b / 12 * (n + 1 - ties / (n * (n - 1)))
  if variance <= 0 then return 1 end
  return bench_compare.tail(math.max(0, away - 0.5) / math.sqrt(variance))
end

--- The share of a normal distribution that lies further than Z deviations from its middle (Abramowitz and
--- Stegun, 7.1.26: error below 2e-7).
---@param z number
---@return number
function bench_compare.tail(z)
  local x = z / math.sqrt(2)
  local t = 1 / (1 + 0.3275911 * x)
  local poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
  return math.min(1, poly * math.exp(-x * x))
end

local function column(result, name)
  local list = {}
  for i, sample in ipairs(result.series) do list[i] = sample[name] end
  return list
end

local function median(list)
  local sorted = { unpack(list) }
  table.sort(sorted)
  local middle = math.floor(#sorted / 2)
  return #sorted % 2 == 1 and sorted[middle + 1] or (sorted[middle] + sorted[middle + 1]) / 2
end

local MEASURES = {
  { name = "requests/s", key = "requests", more_is_better = true },
  { name = "p50", key = "p50" },
  { name = "p99", key = "p99" },
}

--- Whether OLD can be compared with at all.
---@param old any
---@return boolean
function bench_compare.is_result(old)
  if type(old) ~= "table" or type(old.series) ~= "table" then return false end
  for _, sample in ipairs(old.series) do
    for _, measure in ipairs(MEASURES) do
      if type(sample) ~= "table" or type(sample[measure.key]) ~= "number" then return false end
    end
  end
  return true
end

--- What can be said of each measure; nil and why, if these cannot be compared.
---@param old table  results (bench_result.new)
---@param new table
---@return { name: string, old: number, new: number, change: number, chance: number, verdict: "better"|"worse"|"same" }[]?
---@return string? problem
function bench_compare.compare(old, new)
  if #old.series < SAMPLES_MIN or #new.series < SAMPLES_MIN then
    return nil, ("%d and %d samples are too few to tell a difference from chance: %d each are needed (-d %d)"):format(
      #old.series, #new.series, SAMPLES_MIN, SAMPLES_MIN)
  end
  local rows = {}
  for i, measure in ipairs(MEASURES) do
    local before, after = column(old, measure.key), column(new, measure.key)
    local row = { name = measure.name, key = measure.key, old = median(before), new = median(after) }
    row.chance = bench_compare.chance(before, after)
    row.change = row.old > 0 and (row.new - row.old) / row.old or 0
    local is_better = (row.new > row.old) == (measure.more_is_better or false)
    row.verdict = row.chance >= LEVEL and "same" or is_better and "better" or "worse"
    rows[i] = row
  end
  return rows
end

return bench_compare
