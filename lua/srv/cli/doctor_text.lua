--- What `srv doctor` says in a terminal: a line while it looks, and the findings when it has.
local doctor_view = require "srv.cli.doctor_view"

local doctor_text = {}

local WIDE = 96 -- columns of a paragraph

--- TEXT in lines of at most WIDE columns, each behind INDENT.
local function wrap(text, indent)
  local lines, line = {}, nil
  for word in text:gmatch "%S+" do
    if line and #line + #word + 1 > WIDE - #indent then
      lines[#lines + 1] = indent .. line
      line = word
    else
      line = line and line .. " " .. word or word
    end
  end
  lines[#lines + 1] = line and indent .. line
  return table.concat(lines, "\n")
end

local function count(number)
  local text = ("%.0f"):format(number)
  repeat
    local replaced
    text, replaced = text:gsub("^(%-?%d+)(%d%d%d)", "%1,%2")
  until replaced == 0
  return text
end

local function colour_of(score) return score >= 0.7 and "red" or "yellow" end

local function finding_lines(number, finding, out)
  local lines = {
    ("%s %s"):format(out:paint(colour_of(finding.score), ("%d."):format(number)), out:paint("bold", finding.title))
      .. out:paint("dim", ("  (%.2f)"):format(finding.score)),
  }
  for _, text in ipairs(finding.evidence) do lines[#lines + 1] = wrap("- " .. text, "   ") end
  lines[#lines + 1] = wrap(finding.advice, "   ")
  for _, text in ipairs(finding.next) do lines[#lines + 1] = "   " .. out:paint("cyan", "-> " .. text) end
  return table.concat(lines, "\n") .. "\n"
end

--- "10.0 s, 13,520 requests (1,352 a second), p50 71 ms, p99 120 ms".
local function summary(result)
  local parts = { ("%.1f s"):format(result.seconds),
    ("%s requests (%s a second)"):format(count(result.requests), count(result.requests / result.seconds)) }
  if result.latency then
    parts[#parts + 1] = ("p50 %.3g ms, p99 %.3g ms"):format(result.latency.p50, result.latency.p99)
  end
  return table.concat(parts, ", ")
end

---@param result table  of doctor_result
---@param out srv.cli.Terminal
---@return string
function doctor_text.report(result, out)
  local lines = { ("%s: %d workers, %s\n"):format(out:paint("bold", result.title), result.workers, summary(result)) }
  for i, finding in ipairs(result.findings) do lines[#lines + 1] = finding_lines(i, finding, out) end
  if #result.findings == 0 then lines[#lines + 1] = out:paint("green", "Nothing found that slows it down.") .. "\n" end
  for _, note in ipairs(result.notes) do lines[#lines + 1] = wrap("Note: " .. note, "") .. "\n" end
  return table.concat(lines, "\n")
end

--- The line that is drawn while it looks.
---@param run srv.cli.DoctorRun
---@param out srv.cli.Terminal
---@return string[]
function doctor_text.live(run, out)
  local line = run.recording.lines[#run.recording.lines]
  local phase = run.is_loading and "under load" or run.recording.load and "coming to rest" or "looking"
  local head = ("%s %4.1f s  %s"):format(out:paint("red", "recording"), run:elapsed(), phase)
  if not line then return { head } end
  local worst, cpu = 0, 0
  for _, worker in ipairs(line.workers) do worst, cpu = math.max(worst, worker.delay_max), cpu + worker.cpu end
  return {
    head,
    ("  %s requests a second   p99 %.3g ms   loop delay up to %.3g ms   CPU %.0f %%   %.1f MiB"):format(
      count(doctor_view.of_workers(line, "requests") * 1000 / line.ms), line.p99, worst, cpu * 100, line.rss / 1048576),
  }
end

return doctor_text
