--- What a recording says about an app: findings, the gravest first, each with its evidence; and notes on
--- what the numbers are worth.
local doctor_advice = require "srv.cli.doctor_advice"
local doctor_rules_cpu = require "srv.cli.doctor_rules_cpu"
local doctor_rules_growth = require "srv.cli.doctor_rules_growth"
local doctor_rules_wait = require "srv.cli.doctor_rules_wait"
local doctor_view = require "srv.cli.doctor_view"

local doctor_findings = {}

local RULES = {
  doctor_rules_cpu.blocked, doctor_rules_cpu.saturated, doctor_rules_cpu.hot_worker, doctor_rules_cpu.garbage,
  doctor_rules_cpu.interpreted, doctor_rules_wait.io, doctor_rules_wait.slow_clients, doctor_rules_wait.pool,
  doctor_rules_wait.backlog, doctor_rules_wait.errors, doctor_rules_growth.tasks, doctor_rules_growth.connections,
  doctor_rules_growth.descriptors, doctor_rules_growth.memory,
}

local STALLED_NOTE = 0.2  -- of the time workers could have run: then the machine has its part in all numbers
local REQUESTS_NOTE = 100 -- fewer say little
local REFUSED_NOTE = 0.1  -- of the answers

local STALLED = "Other programs had the processors while the workers were ready to run, for %.0f %% of the time. That is not "
  .. "counted as the app's; a quiet machine gives better numbers."
local SILENT = "%d workers did not give their last samples: they are stuck in a C function."

local REFUSED = "%.0f %% of the answers had a status of 400 to 499: what refuses them was looked at, not what lies behind it. "
  .. "-H gives the load a cookie or a token, -m and -b another method and a body."

---@class srv.cli.DoctorFinding
---@field id string
---@field score number  0 to 1
---@field title string
---@field site srv.cli.DoctorSite?
---@field evidence string[]
---@field advice string
---@field next string[]
---@field chart string  of the page
---@field from number?
---@field to number?

--- The share of answers that say that the request was wrong.
local function refused_share(result)
  if not result or result.answered == 0 then return 0 end
  return result["4xx"] / result.answered
end

local function notes_of(view)
  local notes = {}
  local stalled = view:mean(function(line) return doctor_view.of_workers(line, "stalled") end) / view.workers
  if stalled >= STALLED_NOTE then
    notes[#notes + 1] = STALLED:format(stalled * 100)
  end
  if view.requests < REQUESTS_NOTE then
    notes[#notes + 1] = ("There were only %d requests: a longer or a harder load shows more."):format(view.requests)
  end
  local refused = refused_share(view.recording.result)
  if refused >= REFUSED_NOTE then notes[#notes + 1] = REFUSED:format(refused * 100) end
  if view.recording.load_status then
    notes[#notes + 1] = ("The load ended with %s: it may be little of what was meant."):format(view.recording.load_status)
  end
  if (view.recording.silent or 0) > 0 then
    notes[#notes + 1] = SILENT:format(view.recording.silent)
  end
  if (view.recording.dropped or 0) > 0 then
    notes[#notes + 1] = ("%d samples were dropped, since they came faster than they were read."):format(view.recording.dropped)
  end
  return notes
end

---@param recording srv.cli.DoctorRecording
---@param about { flame: string, pid: integer? }
---@return srv.cli.DoctorFinding[]
---@return string[] notes
---@return srv.cli.DoctorView view
function doctor_findings.of(recording, about)
  local view = doctor_view.new(recording)
  view.flame, view.pid = about.flame, about.pid
  local findings = {}
  for _, rule in ipairs(RULES) do
    local finding = rule(view)
    if finding then finding.advice = finding.advice or doctor_advice[finding.id] end
    findings[#findings + 1] = finding
  end
  table.sort(findings, function(a, b)
    if a.score ~= b.score then return a.score > b.score end
    return a.id < b.id
  end)
  return findings, notes_of(view), view
end

return doctor_findings
