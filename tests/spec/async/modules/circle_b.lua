require("srv.async.task").sleep(0)
return { a = require "async.modules.circle_a" }
