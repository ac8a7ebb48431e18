local core = require "srv.core.metrics"
local srv = require "srv"

local function page() return assert(core.render(false)) end

local function shows(text) return page():find(text, 1, true) ~= nil end

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

describe("srv.metrics", function()
  it("counts by label, under the label's name or in their order", function()
    local orders = srv.metrics.counter("spec_orders_total", "Orders.", { "kind", "paid" })
    orders:add(2, { kind = "book", paid = true }):add { "book", true }
    orders:add(0.5, { "pen", 7 })
    assert.is_true(shows '# HELP spec_orders_total Orders.\n# TYPE spec_orders_total counter\nspec_orders_total{kind="book",paid="true"} 3\n')
    assert.is_true(shows 'spec_orders_total{kind="pen",paid="7"} 0.5\n')
  end)

  it("shows a metric without labels from its definition on", function()
    local hits = srv.metrics.counter("spec_hits_total", "Hits.")
    assert.is_true(shows "\nspec_hits_total 0\n")
    hits:add():add(3)
    assert.is_true(shows "\nspec_hits_total 4\n")
  end)

  it("gauges rise, fall and are set", function()
    local depth = srv.metrics.gauge("spec_depth", "Depth.", { "queue" })
    depth:set(5, { "a" }):add(-2, { "a" }):add { "a" }
    assert.is_true(shows 'spec_depth{queue="a"} 4\n')
  end)

  it("histograms count what is at most so large", function()
    local seconds = srv.metrics.histogram("spec_seconds", "Time.", nil, { 0.5, 1 })
    seconds:observe(0.5):observe(0.7):observe(3)
    assert.is_true(shows 'spec_seconds_bucket{le="0.5"} 1\nspec_seconds_bucket{le="1"} 2\nspec_seconds_bucket{le="+Inf"} 3\nspec_seconds_sum 4.2\nspec_seconds_count 3\n')
    local usual = srv.metrics.histogram("spec_usual_seconds", "Time.")
    usual:observe(0.004)
    assert.is_true(shows 'spec_usual_seconds_bucket{le="0.005"} 1\n')
  end)

  it("the same definition is the same metric, another one is misuse", function()
    srv.metrics.counter("spec_same_total", "Same.", { "a" }):add(1, { "x" })
    srv.metrics.counter("spec_same_total", "Same.", { "a" }):add(1, { "x" })
    assert.is_true(shows 'spec_same_total{a="x"} 2\n')
    assert.matches("metrics_spec.lua:%d+: .*defined with another type",
      message_of(function() srv.metrics.gauge("spec_same_total", "Same.", { "a" }) end))
    assert.matches("metrics_spec.lua:%d+: .*other labels",
      message_of(function() srv.metrics.counter("spec_same_total", "Same.", { "b" }) end))
  end)

  it("misuse is blamed on the caller's line", function()
    local counter = srv.metrics.counter("spec_wrong_total", "Wrong.", { "a" })
    local bare = srv.metrics.counter("spec_bare_total", "Bare.")
    local gauge = srv.metrics.gauge("spec_wrong", "Wrong.")
    for _, fn in ipairs {
      function() srv.metrics.counter() end,
      function() srv.metrics.counter "no help" end,
      function() srv.metrics.counter("a b", "x") end,
      function() srv.metrics.counter("spec_le_total", "x", { "le" }) end,
      function() srv.metrics.counter("spec_labels_total", "x", "a") end,
      function() srv.metrics.histogram("spec_b", "x", nil, { 2, 1 }) end,
      function() srv.metrics.histogram("spec_b", "x", nil, {}) end,
      function() srv.metrics.histogram("spec_b", "x", nil, { "a" }) end,
      function() counter:add(-1, { "x" }) end,
      function() counter:add(0 / 0, { "x" }) end,
      function() counter:add(1) end,
      function() counter:add(1, { b = "x" }) end,
      function() counter:add(1, { a = "x", b = "y" }) end,
      function() counter:add(1, { "x", "y" }) end,
      function() counter:add(1, { a = {} }) end,
      function() bare:add(1, { "x" }) end,
      function() gauge:set() end,
    } do
      assert.matches("metrics_spec.lua:%d+: ", message_of(fn))
    end
  end)
end)
