local task = require "srv.async.task"
loads_of_waits.count = loads_of_waits.count + 1
task.sleep "5ms"
return { name = ... }
