--- The database: a file beside the app, or what DATABASE_URL names.
local srv = require "srv"

-- A statement here takes some microseconds: when many come back at once, they are better served late than refused.
return srv.db("sqlite:chat.db", { queue = 2000 })
