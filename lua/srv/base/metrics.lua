--- What an app counts (API, section 13): srv.metrics.counter, gauge, histogram.
---
--- A metric is the process's: the same definition in another worker, or after an edit, is the same one,
--- and goes on counting.
local core = require "srv.core.metrics"
local misuse = require "srv.core.task".misuse

local metrics = {}

--- Seconds of requests and calls, from half a millisecond on.
metrics.BUCKETS = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10 }

local function check(where, name, help, labels)
  if type(name) ~= "string" then misuse(where .. ": a name is missing") end
  if type(help) ~= "string" then misuse(where .. ": a sentence that says what is counted is missing") end
  if labels ~= nil and type(labels) ~= "table" then misuse(where .. ": labels are a list of names") end
end

---@class srv.Counter
---@field add fun(self: srv.Counter, n?: number, values?: table): srv.Counter  values by label, or in the labels' order

---@class srv.Gauge
---@field set fun(self: srv.Gauge, value: number, values?: table): srv.Gauge
---@field add fun(self: srv.Gauge, n?: number, values?: table): srv.Gauge  negative: falls

---@class srv.Histogram
---@field observe fun(self: srv.Histogram, value: number, values?: table): srv.Histogram

--- What only grows, summed over all workers.
---@param name string     "orders_total"
---@param help string
---@param labels string[]?
---@return srv.Counter
function metrics.counter(name, help, labels)
  check("srv.metrics.counter", name, help, labels)
  return core.define("counter", name, help, labels)
end

--- What rises and falls; one for all workers.
---@param name string
---@param help string
---@param labels string[]?
---@return srv.Gauge
function metrics.gauge(name, help, labels)
  check("srv.metrics.gauge", name, help, labels)
  return core.define("gauge", name, help, labels)
end

--- How many were at most so large. BUCKETS are upper bounds that rise; seconds unless given.
---@param name string
---@param help string
---@param labels string[]?
---@param buckets number[]?
---@return srv.Histogram
function metrics.histogram(name, help, labels, buckets)
  check("srv.metrics.histogram", name, help, labels)
  if buckets ~= nil and type(buckets) ~= "table" then misuse("srv.metrics.histogram: buckets are a list of numbers") end
  return core.define("histogram", name, help, labels, buckets or metrics.BUCKETS)
end

return metrics
