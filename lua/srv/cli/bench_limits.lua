--- `--fail-if`: conditions under which a load has failed, like "p99>20ms", "errors>0.1%", "rps<1000".
local units = require "srv.base.units"
local bench_result = require "srv.cli.bench_result"

local bench_limits = {}

local function times_of(name)
  local percentile = name:match "^p(%d+%.?%d*)$"
  if percentile then return function(result) return result.latency[bench_result.key(percentile)] end end
  if name == "mean" or name == "max" or name == "min" then return function(result) return result.latency[name] end end
  return nil
end

--- Numbers of requests: what share of all that were sent they are, for bounds in %.
local COUNTS = {
  errors = function(result) return result.errors end,
  timeouts = function(result) return result.timeouts end,
  non2xx = function(result) return result.non2xx end,
  mismatches = function(result) return result.mismatches end,
  late = function(result) return result.late or 0 end,
}

local NAMES = "p50 p75 p90 p95 p97.5 p99 p99.9 p99.99 mean max min, rps, errors timeouts non2xx mismatches late"

local function is_known_percentile(name)
  for _, text in ipairs(bench_result.percentiles) do
    if name == "p" .. text then return true end
  end
  return name:sub(1, 1) ~= "p"
end

--- Bound and how values of a result are read, or nil and what is wrong.
local function read_side(name, bound)
  local times = is_known_percentile(name) and times_of(name)
  if times then
    local us = tonumber(bound:match "^(%d+%.?%d*)us$")
    local seconds = us and us / 1e6 or bound:find "%a" and units.duration(bound)
    if not seconds then return nil, ("%s needs a duration like 20ms behind it, not %q"):format(name, bound) end
    return seconds * 1000, times
  end
  if name == "rps" then
    local number = tonumber(bound)
    if not number then return nil, ("rps needs a number behind it, not %q"):format(bound) end
    return number, function(result) return result.requests.average end
  end
  local count = COUNTS[name]
  if not count then return nil, ("unknown name %q; known: %s"):format(name, NAMES) end
  local share = bound:match "^(%d+%.?%d*)%%$"
  if share then
    return tonumber(share), function(result) return result.sent > 0 and 100 * count(result) / result.sent or 0 end
  end
  if not tonumber(bound) then return nil, ("%s needs a number or a share like 0.1%% behind it"):format(name) end
  return tonumber(bound), count
end

local HOLDS = {
  [">"] = function(a, b) return a > b end, [">="] = function(a, b) return a >= b end,
  ["<"] = function(a, b) return a < b end, ["<="] = function(a, b) return a <= b end,
}

--- A condition, or nil and what is wrong with TEXT.
---@param text string
---@return { text: string, holds: fun(result: table): boolean, number }?
---@return string? problem
function bench_limits.read(text)
  local name, sign, bound = text:match "^%s*([%w%.]+)%s*([<>]=?)%s*(%S+)%s*$"
  if not name then return nil, ("--fail-if is NAME>BOUND or NAME<BOUND, not %q"):format(text) end
  local number, value_of = read_side(name, bound)
  if not number then return nil, "--fail-if: " .. value_of end
  return {
    text = text,
    holds = function(result)
      local value = value_of(result)
      return HOLDS[sign](value, number), value
    end,
  }
end

return bench_limits
