--- Ctrl-C ends a recording, and what was seen is shown; before there is one it ends all that was started.
local interrupt = require "srv.core.interrupt"
local task = require "srv.async.task"

---@class srv.cli.Ending
---@field has_come boolean?       the user wants an end
---@field keeps_samples boolean?  for WORK to set: from here on it looks at `has_come` by itself

--- What WORK(ending) returns: a value, or nil and a problem.
---@param work fun(ending: srv.cli.Ending): any, string?
---@return any
---@return string? problem
return function(work)
  local signals, ending = assert(interrupt.catch()), {}
  local working = task.spawn(work, ending)
  local watch = task.spawn(function()
    ending.has_come = signals:wait() ~= nil
    if ending.has_come and not ending.keeps_samples then working:cancel() end
  end)
  local value, problem = working:wait()
  watch:cancel()
  signals:close()
  return value, type(problem) == "table" and "interrupted" or problem
end
