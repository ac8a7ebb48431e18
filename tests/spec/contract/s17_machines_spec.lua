-- needs: postgres redis
--- The three apps of s17/: the same, unchanged, on what several machines share.
local run = dofile "tests/spec/contract/s17/run.lua"

describe("on PostgreSQL and Redis, the app", function()
  for _, app in ipairs { "news", "chat", "gateway" } do
    it(app, function() run(app, "DATABASE_URL=$TEST_POSTGRES_URL REDIS_URL=$TEST_REDIS_URL") end)
  end
end)
