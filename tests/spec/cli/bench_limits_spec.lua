local limits = require "srv.cli.bench_limits"

local RESULT = {
  latency = { p50 = 1, p97_5 = 15, p99 = 20.5, mean = 3, max = 40, min = 0.2 }, requests = { average = 950 },
  sent = 1000, errors = 2, timeouts = 0, non2xx = 100, mismatches = 0,
}

local function holds(text)
  local limit = assert(limits.read(text))
  return (limit.holds(RESULT))
end

local function refuses(pattern, text)
  local limit, problem = limits.read(text)
  assert.is_nil(limit)
  assert.matches(pattern, problem)
end

describe("--fail-if", function()
  it("takes times with their unit", function()
    assert.is_true(holds "p99>20ms")
    assert.is_false(holds "p99 > 20.5ms")
    assert.is_true(holds "p99>=20500us")
    assert.is_true(holds "p97.5<16ms")
    assert.is_false(holds "max>1s")
    assert.is_true(holds "mean<=3ms")
  end)

  it("takes numbers of requests and their share of all that were sent", function()
    assert.is_true(holds "errors>0")
    assert.is_true(holds "errors>0.1%")
    assert.is_false(holds "errors>0.2%")
    assert.is_true(holds "non2xx>=10%")
    assert.is_false(holds "late>0")
    assert.is_true(holds "rps<1000")
    assert.is_false(holds "rps<1e2")
  end)

  it("gives what was measured", function()
    local _, value = assert(limits.read "non2xx>5%").holds(RESULT)
    assert.equal(10, value)
  end)

  it("refuses what it cannot mean", function()
    refuses("NAME>BOUND", "p99")
    refuses("NAME>BOUND", "p99=20ms")
    refuses("needs a duration", "p99>20")
    refuses("needs a duration", "p99>soon")
    refuses('unknown name "p98"', "p98>1ms")
    refuses('unknown name "speed"', "speed>1")
    refuses("needs a number or a share", "errors>x%")
    refuses("rps needs a number", "rps<fast")
  end)
end)
