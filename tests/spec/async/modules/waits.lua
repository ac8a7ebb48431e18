local task = require "srv.async.task"
local loads = rawget(_G, "loads_of_waits")
loads.count = loads.count + 1
task.sleep "5ms"
return { name = ... }
