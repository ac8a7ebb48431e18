local bench_hgrm = require "srv.cli.bench_hgrm"
local bench_result = require "srv.cli.bench_result"

--- What a histogram of C tells, of exact VALUES in microseconds.
local function hist_of(values)
  table.sort(values)
  local hist = {}
  function hist:count() return #values end
  function hist:percentile(percent) return values[math.max(1, math.ceil(#values * percent / 100 - 1e-9))] or 0 end
  function hist:mean()
    local sum = 0
    for _, value in ipairs(values) do sum = sum + value end
    return #values > 0 and sum / #values or 0
  end
  function hist:deviation() return 0 end
  function hist:buckets()
    local list = {}
    for i, value in ipairs(values) do list[i] = { low = value, high = value + 1, count = 1 } end
    return list
  end
  return hist
end

local function numbers(from, to)
  local list = {}
  for i = from, to do list[#list + 1] = i end
  return list
end

local function totals_of(change)
  local totals = {
    elapsed = 2, sent = 110, mismatched = 1, late = 3, backlog = 4, connections = 10, unasked = 0, cpu = 1, bytes_in = 5000, bytes_out = 600,
    statuses = { [200] = 90, [204] = 5, [404] = 3, [503] = 2 },
    faults = { refused = 1, connect_timeout = 1, reset = 2, closed = 1, timeout = 1, malformed = 0 },
    latency = hist_of(numbers(1, 1000)), service = hist_of { 500 },
  }
  for key, value in pairs(change or {}) do totals[key] = value end
  return totals
end

local ABOUT = { url = "http://x/", start = 0, finish = 2, connections = 10, pipelining = 1, workers = 2, sample_interval = 1000 }
local SAMPLES = { { t = 1, requests = 40, bytes = 2000, p50 = 1, p99 = 2, errors = 0 }, { t = 2, requests = 60, bytes = 3000, p50 = 1, p99 = 2, errors = 6 } }

describe("a result", function()
  it("accounts for all that was sent", function()
    local result = bench_result.new(totals_of(), SAMPLES, ABOUT)
    assert.same({ 110, 100, 6, 4 }, { result.sent, result.answered, result.errors, result.in_flight })
    assert.same({ 95, 0, 3, 2, 5 }, { result["2xx"], result["3xx"], result["4xx"], result["5xx"], result.non2xx })
    assert.same({ 2, 2, 1 }, { result.timeouts, result.resets, result.mismatches })
    assert.same({ count = 3 }, result.statusCodeStats["404"])
  end)

  it("has times in milliseconds with their microseconds", function()
    local result = bench_result.new(totals_of(), SAMPLES, ABOUT)
    local times = result.latency
    assert.same({ 0.5, 0.95, 0.975, 0.999, 1, 0.001 }, { times.p50, times.p95, times.p97_5, times.p99_9, times.max, times.min })
    assert.equal(1000, times.totalCount)
    assert.equal(0.5, result.service.mean)
  end)

  it("has how requests and bytes a second were spread", function()
    local result = bench_result.new(totals_of(), SAMPLES, ABOUT)
    assert.same({ 50, 10, 40, 60, 100, 110 }, {
      result.requests.average, result.requests.stddev, result.requests.min, result.requests.max, result.requests.total, result.requests.sent,
    })
    assert.equal(5000, result.throughput.total)
    assert.equal(2, result.samples)
  end)

  it("has the mean of the whole run, whatever fell behind the last sample", function()
    local result = bench_result.new(totals_of(), { { requests = 0, bytes = 0 } }, ABOUT)
    assert.same({ 50, 2500 }, { result.requests.average, result.throughput.average })
  end)

  it("tells of lateness at a rate alone", function()
    assert.is_nil(bench_result.new(totals_of(), SAMPLES, ABOUT).late)
    local about = { rate = 100 }
    for key, value in pairs(ABOUT) do about[key] = value end
    local result = bench_result.new(totals_of(), SAMPLES, about)
    assert.same({ 3, 4 }, { result.late, result.backlog })
  end)

  it("is whole with nothing in it", function()
    local none = hist_of {}
    local result = bench_result.new(totals_of { statuses = {}, latency = none, service = none, elapsed = 0 }, {}, ABOUT)
    assert.same({ 0, 0, 0 }, { result.answered, result.latency.p99, result.requests.average })
  end)

  it("joins neighbours to bars that add up", function()
    local bars, sum = bench_result.new(totals_of(), SAMPLES, ABOUT).bars, 0
    for i, bar in ipairs(bars) do
      sum = sum + bar[3]
      assert.is_true(bar[1] < bar[2] and (i == 1 or bars[i - 1][2] <= bar[1]))
    end
    assert.equal(1000, sum)
    assert.is_true(#bars < 100)
  end)
end)

describe("the distribution in HdrHistogram's form", function()
  it("begins with the least, steps through halves and ends with the largest", function()
    local lines = {}
    for line in bench_hgrm.text(hist_of(numbers(1, 1000))):gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.matches("^ +Value +Percentile +TotalCount +1/%(1%-Percentile%)$", lines[1])
    assert.matches("^ +0%.001 0%.000000000000 +1 +1%.00$", lines[2])
    assert.matches("^ +0%.100 0%.100000000000 +100 +1%.11$", lines[3])
    assert.matches("^ +0%.500 0%.500000000000 +500 +2%.00$", lines[7])
    assert.matches("^ +0%.550 0%.550000000000 +550 +2%.22$", lines[8])
    assert.matches("^ +1%.000 1%.000000000000 +1000 +inf$", lines[#lines - 2])
    assert.matches("^#%[Mean +=  +0%.50%d, StdDeviation", lines[#lines - 1])
    assert.matches("^#%[Max +=  +1%.000, Total count +=  +1000%]$", lines[#lines])
    assert.is_true(#lines < 80)
  end)

  it("is a head and a foot with nothing in it", function()
    local _, lines = bench_hgrm.text(hist_of {}):gsub("\n", "")
    assert.equal(4, lines)
  end)
end)
