--- Asks all workers of a server to watch LuaJIT's compiler, and adds up what they have seen.
local admin = require "srv.cli.admin"
local json = require "srv.base.json"

local doctor_jit = {}

local ANSWER_TIME = "2s" -- a worker that is stuck does without
local WATCH = 'require "srv.cli.doctor_jit_watch"'

--- What TEXT prints in WORKER, or nil.
local function evaluate(pid, worker, text)
  local lines = admin.ask(pid, ("eval %d"):format(worker), { text = admin.framed(text), timeout = ANSWER_TIME })
  local printed
  for line in lines or function() end do printed = line.print or printed end
  return printed
end

function doctor_jit.begin(pid, workers)
  for worker = 0, workers - 1 do evaluate(pid, worker, WATCH .. ".begin()") end
end

local function add(sums, order, place)
  local key = ("%s:%d"):format(place.file, place.line)
  if not sums[key] then
    sums[key] = { file = place.file, line = place.line, count = 0 }
    order[#order + 1] = sums[key]
  end
  sums[key].count, sums[key].reason = sums[key].count + place.count, place.reason
end

---@return { aborts: { file: string, line: integer, count: integer, reason: string }[], flushes: integer }
function doctor_jit.finish(pid, workers)
  local sums, order, flushes = {}, {}, 0
  for worker = 0, workers - 1 do
    local seen = json.decode(evaluate(pid, worker, "print(" .. WATCH .. ".finish())") or "")
    for _, place in ipairs(seen and seen.aborts or {}) do add(sums, order, place) end
    flushes = flushes + (seen and seen.flushes or 0)
  end
  table.sort(order, function(a, b) return a.count > b.count end)
  return { aborts = order, flushes = flushes }
end

return doctor_jit
