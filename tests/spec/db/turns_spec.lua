-- needs: redis
local env = require "srv.core.env"

local getenv = env.getenv
env.getenv = function(name)
  if name == "REDIS_URL" then return getenv "TEST_REDIS_URL" end
  return getenv(name)
end

local machines = require "srv.db.machines"
local srv = require "srv"
local turns = require "srv.db.turns"

describe("turns of machines", function()
  local runs
  local function run() runs = runs + 1 end

  before_each(function()
    runs = 0
    machines.redis():flushall()
  end)

  it("give a moment of a cron expression to the first who asks", function()
    srv.map({ 1, 2, 3, 4 }, function() turns.take("job", 1000, nil, true, run) end)
    assert.equal(1, runs)
    turns.take("job", 1060, nil, true, run)
    turns.take("other", 1000, nil, true, run)
    assert.equal(3, runs)
  end)

  it("give most of an interval to the first who asks", function()
    turns.take("job", nil, 3600, true, run)
    turns.take("job", nil, 3600, true, run)
    assert.equal(1, runs)
    local left = machines.redis():pttl "srv:timer:every:job"
    assert.is_true(left > 3600 * 800 and left <= 3600 * 900)
  end)

  it("give none while the last run lasts, unless runs may overlap", function()
    local going = srv.spawn(function() turns.take("job", 1, nil, false, function() run() srv.sleep(60) end) end)
    for _ = 1, 1000 do
      if runs == 1 then break end
      srv.sleep(0.005)
    end
    turns.take("job", 2, nil, false, run)
    assert.equal(1, runs)
    turns.take("job", 3, nil, true, run)
    assert.equal(2, runs)
    going:cancel()
    for _ = 1, 1000 do
      if machines.redis():exists "srv:timer:running:job" == 0 then break end
      srv.sleep(0.005)
    end
    turns.take("job", 4, nil, false, run)
    assert.equal(3, runs)
    assert.equal(0, machines.redis():exists "srv:timer:running:job")
  end)

  it("pass an error of a run on, and the next may run", function()
    local ok, err = pcall(turns.take, "job", 1, nil, false, function() error "broken" end)
    assert.is_false(ok)
    assert.matches("broken", tostring(err))
    turns.take("job", 2, nil, false, run)
    assert.equal(1, runs)
  end)

  it("make timers ask", function()
    local timer = {}
    turns.introduce(timer)
    assert.equal(turns.take, timer.take_turn)
  end)
end)
