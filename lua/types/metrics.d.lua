---@meta srv.core.metrics
-- luacheck: ignore 212 241

--- What a process counts (src/bind/lmetrics.c). Apps use srv.metrics.
local metrics = {}

--- The metric of that name; misuse if it is another one already.
---@param kind "counter"|"gauge"|"histogram"
---@param name string
---@param help string
---@param labels string[]?
---@param buckets number[]?  of a histogram
---@return srv.Counter|srv.Gauge|srv.Histogram
function metrics.define(kind, name, help, labels, buckets) end

--- The page for a scraper. Waits.
---@param is_openmetrics boolean
---@return string?
---@return srv.Error? err  too_large, busy
function metrics.render(is_openmetrics) end

--- The server counts its requests from now on.
function metrics.watch() end

return metrics
