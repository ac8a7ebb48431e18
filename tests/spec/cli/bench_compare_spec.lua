local compare = require "srv.cli.bench_compare"

local function near(want, got) assert.is_true(math.abs(want - got) < 1e-6, ("%.9f is not %.9f"):format(got, want)) end

--- A result with a sample for each number of REQUESTS; times are FACTOR of them.
local function result_of(requests, factor)
  local series = {}
  for i, number in ipairs(requests) do series[i] = { requests = number, p50 = number * factor, p99 = 7 } end
  return { series = series }
end

describe("the rank test of Mann and Whitney", function()
  -- Normal approximation with both corrections, as R's wilcox.test(exact = FALSE) and SciPy's asymptotic method.
  it("gives the chances that are known", function()
    near(0.012185780, compare.chance({ 1, 2, 3, 4, 5 }, { 6, 7, 8, 9, 10 }))
    near(0.244623604, compare.chance({ 0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46 }, { 1.15, 0.88, 0.90, 0.74, 1.21 }))
  end)

  it("corrects for ties", function() near(0.030423784, compare.chance({ 1, 1, 2, 2, 3 }, { 2, 3, 3, 4, 4, 4 })) end)

  it("does not care which comes first", function()
    assert.equal(compare.chance({ 1, 2, 3, 9 }, { 4, 5, 6 }), compare.chance({ 4, 5, 6 }, { 1, 2, 3, 9 }))
  end)

  it("sees no difference where there is none", function()
    near(1, compare.chance({ 5, 5, 5 }, { 5, 5, 5 }))
    near(1, compare.chance({ 1, 2, 3 }, { 1, 2, 3 }))
  end)

  it("has the tails of the normal distribution", function()
    near(1, compare.tail(0))
    near(0.0499957902, compare.tail(1.96))
    near(0.0026997961, compare.tail(3))
  end)
end)

describe("two loads compared", function()
  it("differ if their samples do, and more requests are better, as is less time", function()
    local rows = compare.compare(result_of({ 100, 101, 102, 103, 104 }, 0.1), result_of({ 200, 201, 202, 203, 204 }, 0.01))
    assert.same({ "better", "better", "same" }, { rows[1].verdict, rows[2].verdict, rows[3].verdict })
    near(102, rows[1].old)
    near(202, rows[1].new)
    near(100 / 102, rows[1].change)
    rows = compare.compare(result_of({ 200, 201, 202, 203, 204 }, 0.01), result_of({ 100, 101, 102, 103, 104 }, 0.1))
    assert.same({ "worse", "worse" }, { rows[1].verdict, rows[2].verdict })
  end)

  it("do not differ by one burst", function()
    local rows = compare.compare(result_of({ 100, 101, 102, 103, 104 }, 1), result_of({ 100, 101, 102, 103, 900 }, 1))
    assert.equal("same", rows[1].verdict)
  end)

  it("say nothing with few samples", function()
    local rows, problem = compare.compare(result_of({ 1, 2, 3, 4 }, 1), result_of({ 1, 2, 3, 4, 5 }, 1))
    assert.is_nil(rows)
    assert.matches("too few", problem)
  end)

  it("must be results of ours", function()
    assert.is_true(compare.is_result(result_of({ 1 }, 1)))
    for _, other in ipairs { {}, { series = 1 }, { series = { {} } }, { series = { 1 } }, "text", false } do
      assert.is_false(compare.is_result(other))
    end
  end)
end)
