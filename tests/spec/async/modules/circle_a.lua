require("srv.async.task").sleep(0)
return { b = require "async.modules.circle_b" }
