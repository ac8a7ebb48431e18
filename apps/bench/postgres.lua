--- What bench/run postgres asks for: one row by its key, and twenty at once.
local srv = require "srv"

local db = srv.postgres(nil, { env = "BENCH_POSTGRES_URL", migrations = false, queue = 1000 })
local app = srv.app()

local ROW = "select id, title, body from items where id = $1"
local SLOW = "select pg_sleep(0.02), $1::int as id"

app:get("/rows/:id<int>", function(req) return db:one(ROW, req.params.id) end)

--- How long one statement of 20 ms takes, and twenty of them at once, in ms.
app:get("/parallel/:count<int>", function(req)
  local keys = {}
  for i = 1, req.params.count do keys[i] = i end
  local started = srv.monotonic()
  assert(srv.map(keys, function(i) return db:one(SLOW, i) end, { limit = #keys }))
  return { ms = (srv.monotonic() - started) * 1000 }
end)

return app
