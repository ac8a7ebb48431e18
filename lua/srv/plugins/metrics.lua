--- srv.metrics (API, sections 13 and 14): the module of counters, and when it is called, the plugin that shows
--- them with the server's own.
local core = require "srv.core.metrics"
local errors = require "srv.base.errors"
local factory = require "srv.base.factory"
local metrics = require "srv.base.metrics"
local networks = require "srv.plugins.networks"
local options = require "srv.base.options"

local OPTIONS = { path = "string", allow = "table" }

local PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
local OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

--- Prometheus names the format that it prefers in Accept.
local function wants_openmetrics(req)
  local accept = req:header "accept"
  return accept ~= nil and accept:find("application/openmetrics-text", 1, true) ~= nil
end

local function page_for(allowed)
  return function(req)
    if not networks.admits(allowed, req) then errors.raise(403, "metrics are not shown to this address") end
    local is_open = wants_openmetrics(req)
    local text, err = core.render(is_open)
    if not text then return nil, err end
    return text, 200, { ["Content-Type"] = is_open and OPENMETRICS or PROMETHEUS, ["Cache-Control"] = "no-store" }
  end
end

--- Shows all metrics at `path` to clients in `allow`, and has the server count its requests.
---@param opts { path?: string, allow?: string[] }?
---@return table plugin
local function plugin(_, opts)
  opts = options.check("srv.metrics", opts, OPTIONS)
  local allowed = networks.set("srv.metrics", opts.allow or { "loopback", "private" })
  core.watch()
  return {
    name = "metrics",
    setup = function(router) router:get(opts.path or "/metrics", { hidden = true }, page_for(allowed)) end,
  }
end

return factory.name("srv.metrics", setmetatable({
  counter = metrics.counter, gauge = metrics.gauge, histogram = metrics.histogram, BUCKETS = metrics.BUCKETS,
}, { __call = plugin }))
