--- What a load has done, as the table that is shown, kept as JSON and compared: autocannon's keys, where it
--- has them (times in milliseconds, but with their microseconds), and ours.
local iso = require "srv.base.time".iso
local object = require "srv.base.json".object

local bench_result = {}

local PERCENTILES = {
  "0.001", "0.01", "0.1", "1", "2.5", "10", "25", "50", "75", "90", "95", "97.5", "99", "99.9", "99.99", "99.999",
}
bench_result.percentiles = PERCENTILES

local CURVE = {
  0, 10, 25, 40, 50, 60, 70, 75, 80, 85, 90, 92.5, 95, 96, 97, 97.5, 98, 98.5, 99, 99.25, 99.5, 99.6, 99.7, 99.8, 99.85, 99.9,
  99.925, 99.95, 99.96, 99.97, 99.98, 99.985, 99.99, 100,
}

--- The key of a percentile: "p97_5".
---@param text string
---@return string
function bench_result.key(text) return "p" .. text:gsub("%.", "_") end

local function ms(us) return us / 1000 end

local function round(number, digits)
  local factor = 10 ^ digits
  return math.floor(number * factor + 0.5) / factor
end

--- Times of a histogram, in milliseconds.
---@param hist srv.core.Hist
---@return table
function bench_result.times(hist)
  local mean = round(ms(hist:mean()), 3)
  local times = {
    average = mean, mean = mean, stddev = round(ms(hist:deviation()), 3),
    min = ms(hist:percentile(0)), max = ms(hist:percentile(100)), totalCount = hist:count(),
  }
  for _, text in ipairs(PERCENTILES) do times[bench_result.key(text)] = ms(hist:percentile(tonumber(text))) end
  return times
end

local function sorted_copy(list)
  local copy = { unpack(list) }
  table.sort(copy)
  return copy
end

--- The PERCENT-th of SORTED numbers, by nearest rank.
local function rank(sorted, percent)
  if #sorted == 0 then return 0 end
  return sorted[math.max(1, math.ceil(#sorted * percent / 100))]
end

--- How a rate was spread over the samples: requests or bytes a second. The mean is that of the whole run, the rest
--- behind the last sample with it.
local function spread_of(list, total, seconds)
  local sorted, average = sorted_copy(list), seconds > 0 and total / seconds or 0
  local squares = 0
  for _, number in ipairs(list) do squares = squares + (number - average) ^ 2 end
  local spread = {
    average = round(average, 2), mean = round(average, 2), total = total,
    stddev = round(#list > 0 and math.sqrt(squares / #list) or 0, 2), min = sorted[1] or 0, max = sorted[#sorted] or 0,
  }
  for _, text in ipairs(PERCENTILES) do spread[bench_result.key(text)] = rank(sorted, tonumber(text)) end
  return spread
end

local function sum_of(map)
  local sum = 0
  for _, number in pairs(map) do sum = sum + number end
  return sum
end

local function by_class(statuses)
  local classes = { ["1xx"] = 0, ["2xx"] = 0, ["3xx"] = 0, ["4xx"] = 0, ["5xx"] = 0 }
  local stats, other = object {}, 0
  for status, count in pairs(statuses) do
    local class = ("%dxx"):format(math.floor(status / 100))
    classes[class] = (classes[class] or 0) + count
    stats[tostring(status)] = { count = count }
    if status < 200 or status > 299 then other = other + count end
  end
  return classes, stats, other
end

local function column(samples, name)
  local list = {}
  for i, sample in ipairs(samples) do list[i] = sample[name] end
  return list
end

--- A few points of the distribution, for the page.
local function curve_of(hist)
  local points = {}
  for i, percent in ipairs(CURVE) do points[i] = { percent, ms(hist:percentile(percent)) } end
  return points
end

--- Neighbours joined until a bar is a tenth of its value wide: exact enough to draw, and few.
local function bars_of(hist)
  local bars = {}
  for _, bucket in ipairs(hist:buckets()) do
    local last = bars[#bars]
    if last and bucket.high <= last[1] * 1000 * 1.1 + 10 then
      last[2], last[3] = ms(bucket.high), last[3] + bucket.count
    else
      bars[#bars + 1] = { ms(bucket.low), ms(bucket.high), bucket.count }
    end
  end
  return bars
end

---@param totals table    what load:read() gave at the end
---@param samples table[] { t, requests, bytes, p50, p99, errors }
---@param about table     url, title, command, start, finish, connections, protocol, pipelining or streams, workers, rate, ...
---@return table
function bench_result.new(totals, samples, about)
  local classes, stats, other = by_class(totals.statuses)
  local answered, faults = sum_of(totals.statuses), sum_of(totals.faults)
  local result = {
    title = about.title, url = about.url, socketPath = about.socket_path, command = about.command,
    connections = about.connections, pipelining = about.pipelining, protocol = about.protocol, streams = about.streams,
    workers = about.workers, rate = about.rate, sampleInt = about.sample_interval,
    interrupted = about.was_interrupted,
    start = iso(about.start), finish = iso(about.finish), duration = round(totals.elapsed, 3), samples = #samples,
    errors = faults, timeouts = totals.faults.timeout + totals.faults.connect_timeout, resets = totals.faults.reset,
    mismatches = totals.mismatched, non2xx = other, statusCodeStats = stats,
    latency = bench_result.times(totals.latency), service = bench_result.times(totals.service),
    requests = spread_of(column(samples, "requests"), answered, totals.elapsed),
    throughput = spread_of(column(samples, "bytes"), totals.bytes_in, totals.elapsed),
    sent = totals.sent, answered = answered, in_flight = totals.sent - answered - faults,
    faults = totals.faults, bytes_out = totals.bytes_out, connections_made = totals.connections, unasked = totals.unasked,
    late = about.rate and totals.late or nil, backlog = about.rate and totals.backlog or nil,
    generator_cpu = round(totals.elapsed > 0 and totals.cpu / totals.elapsed / about.workers or 0, 3),
    series = samples, curve = curve_of(totals.latency), bars = bars_of(totals.latency),
  }
  result.requests.sent = totals.sent
  for class, count in pairs(classes) do result[class] = count end
  return result
end

return bench_result
