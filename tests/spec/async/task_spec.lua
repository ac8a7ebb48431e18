local errors = require "srv.base.errors"
local task = require "srv.async.task"

local sleep = task.sleep

--- Runs FN in a task of its own and gives what its wait() gives, errors included.
local function outcome(fn, ...)
  return pcall(task.timeout, "5s", fn, ...)
end

describe("srv.sleep", function()
  it("takes seconds and durations", function()
    sleep(0)
    sleep(0.001)
    sleep "1ms"
  end)

  it("blames the caller's line for what is no duration", function()
    local ok, why = pcall(sleep, "soon")
    assert.is_false(ok)
    assert.matches('srv.sleep: soon is no duration: give seconds or a text like "250ms"', why, 1, true)
    ok, why = pcall(function() sleep(-1) end)
    assert.is_false(ok)
    assert.matches("^tests/spec/async/task_spec.lua:%d+: srv.sleep: %-1 is no duration", why)
    assert.has_error(function() sleep() end)
  end)

  it("lets a hundred others sleep at the same time", function()
    local handles, asleep, most = {}, 0, 0
    for i = 1, 100 do
      handles[i] = task.spawn(function()
        asleep = asleep + 1
        most = math.max(most, asleep)
        sleep "2ms"
        asleep = asleep - 1
      end)
    end
    for _, handle in ipairs(handles) do handle:wait() end
    assert.equal(100, most)
  end)
end)

describe("srv.spawn", function()
  it("starts at our next wait and gives all values", function()
    local began
    local handle = task.spawn(function(...) began = true return select("#", ...), ... end, 1, nil, nil)
    assert.is_nil(began)
    assert.equal("running", handle.state)
    assert.equal(4, select("#", handle:wait()))
    assert.same({ 3, 1 }, { handle:wait() })
    assert.equal("done", handle.state)
  end)

  it("raises the error where it is asked for, each time", function()
    local handle = task.spawn(function() sleep(0) error({ word = "own" }) end)
    for _ = 1, 2 do
      local ok, e = pcall(handle.wait, handle)
      assert.is_false(ok)
      assert.equal("own", e.word)
    end
    assert.equal("failed", handle.state)
  end)

  it("gives nil and a timeout error when it takes longer", function()
    local handle = task.spawn(sleep, "1h")
    local v, err = handle:wait "1ms"
    assert.is_nil(v)
    assert.is_true(errors.is(err, "timeout"))
    assert.equal("running", handle.state)
    handle:cancel()
    handle:wait()
    assert.equal("cancelled", handle.state)
  end)

  it("gives nil and a cancelled error to all who wait", function()
    local handle = task.spawn(sleep, "1h")
    local other = task.spawn(function() return handle:wait() end)
    sleep(0)
    handle:cancel()
    local v, err = handle:wait()
    assert.is_nil(v)
    assert.is_true(errors.is(err, "cancelled"))
    v, err = other:wait()
    assert.is_nil(v)
    assert.is_true(errors.is(err, "cancelled"))
  end)

  it("never resumes a cancelled task, whatever pcall is around", function()
    local rounds = 0
    local handle = task.spawn(function()
      while true do
        rounds = rounds + 1
        pcall(sleep, "1ms")
      end
    end)
    sleep "5ms"
    handle:cancel()
    local at_cancel = rounds
    sleep "10ms"
    assert.equal(at_cancel, rounds)
  end)

  it("refuses to wait for itself", function()
    local handle
    handle = task.spawn(function() return handle:wait() end)
    local ok, why = pcall(handle.wait, handle)
    assert.is_false(ok)
    assert.matches("a task cannot wait for itself", why)
  end)

  it("ends its children when the function returns", function()
    local ended
    outcome(function()
      task.spawn(function()
        task.defer(function(err) ended = err end)
        sleep "1h"
      end)
      sleep(0)
    end)
    assert.is_true(errors.is(ended, "cancelled"))
  end)

  it("wants a function", function()
    assert.has_error(function() task.spawn(nil) end)
    assert.has_error(function() task.spawn {} end)
    assert.equal("called", task.spawn(setmetatable({}, { __call = function() return "called" end })):wait())
  end)
end)

describe("srv.all", function()
  it("takes functions, or functions with arguments, and gives the first value of each in order", function()
    local a, b, c = task.all(
      { function(x) sleep "5ms" return x, "second" end, "a" },
      function() return "b" end,
      { function(...) return select("#", ...) end, 1, 2 })
    assert.same({ "a", "b", 2 }, { a, b, c })
  end)

  it("knows nil alone as a value", function()
    local a, b, c = task.all(function() end, function() return 2 end, function() return nil end)
    assert.is_nil(a)
    assert.equal(2, b)
    assert.is_nil(c)
    assert.equal(3, select("#", task.all(function() end, function() end, function() end)))
  end)

  it("raises the first error and cancels the rest", function()
    local cancelled
    local ok, e = pcall(task.all,
      function() task.defer(function(err) cancelled = err end) sleep "1h" end,
      function() sleep "1ms" error("second failed", 0) end)
    assert.is_false(ok)
    assert.equal("second failed", e)
    assert.is_true(errors.is(cancelled, "cancelled"))
  end)

  it("gives back the first nil, err and cancels the rest", function()
    local cancelled
    local problem = errors.new(404)
    local v, err = task.all(
      function() task.defer(function(e) cancelled = e end) sleep "1h" end,
      function() return nil, problem end)
    assert.is_nil(v)
    assert.equal(problem, err)
    assert.is_true(errors.is(cancelled, "cancelled"))
  end)

  it("of nothing is nothing", function() assert.equal(0, select("#", task.all())) end)

  it("says whose argument is no function, before one has begun", function()
    local begun = false
    local ok, why = pcall(function() task.all(function() begun = true end, 7) end)
    sleep(0)
    assert.is_false(ok)
    assert.is_false(begun)
    assert.matches("^tests/spec/async/task_spec.lua:%d+: srv.all: a function was expected, not a number", why)
  end)

  it("tells of an error with the stack of the task it came from", function()
    local trace
    local function failing_part() sleep(0) error "deep" end
    xpcall(function() task.all(function() failing_part() return 1 end) end, function(e)
      trace = require "srv.core.task".traceback(e)
    end)
    assert.matches("in function 'failing_part'", trace)
    assert.matches("resumed from", trace)
  end)

  it("may be cancelled as a whole", function()
    local ended = 0
    local handle = task.spawn(function()
      task.all(function() task.defer(function() ended = ended + 1 end) sleep "1h" end,
        function() task.defer(function() ended = ended + 1 end) sleep "1h" end)
    end)
    sleep(0)
    handle:cancel()
    handle:wait()
    assert.equal(2, ended)
  end)
end)

describe("srv.map", function()
  it("gives the results in the order of the items", function()
    assert.same({ 2, 4, 6, 8 }, task.map({ 1, 2, 3, 4 }, function(n) sleep(0.001 * (5 - n)) return n * 2 end))
    assert.same({}, task.map({}, function() end))
  end)

  it("runs no more at once than its limit", function()
    local running, most = 0, 0
    task.map({ 1, 2, 3, 4, 5, 6, 7 }, function()
      running = running + 1
      most = math.max(most, running)
      sleep "1ms"
      running = running - 1
    end, { limit = 3 })
    assert.equal(3, most)
  end)

  it("runs eight at once by default", function()
    local running, most, items = 0, 0, {}
    for i = 1, 20 do items[i] = i end
    task.map(items, function()
      running = running + 1
      most = math.max(most, running)
      sleep(0)
      running = running - 1
    end)
    assert.equal(8, most)
  end)

  it("ends at the first failure and starts nothing more", function()
    local started = 0
    local v, err = task.map({ 1, 2, 3, 4, 5 }, function(n)
      started = started + 1
      if n == 2 then return nil, "refused" end
      sleep(0)
      return n
    end, { limit = 2 })
    assert.is_nil(v)
    assert.equal("refused", err)
    assert.is_true(started <= 3)
    assert.has_error(function() task.map({ 1 }, function() error "raised" end) end)
  end)

  it("refuses wrong options", function()
    assert.has_error(function() task.map({ 1 }, print, { limits = 1 }) end)
    assert.has_error(function() task.map({ 1 }, print, { limit = 0 }) end)
    assert.has_error(function() task.map("items", print) end)
  end)
end)

describe("srv.race", function()
  it("gives all values of the first and cancels the others", function()
    local cancelled
    local a, b = task.race(
      function() task.defer(function(err) cancelled = err end) sleep "1h" end,
      function() sleep "1ms" return "won", 2 end)
    assert.same({ "won", 2 }, { a, b })
    assert.is_true(errors.is(cancelled, "cancelled"))
  end)

  it("raises what the first raises", function()
    local ok, e = pcall(task.race, function() error("lost", 0) end, function() sleep "1h" end)
    assert.is_false(ok)
    assert.equal("lost", e)
  end)

  it("needs somebody to win", function() assert.has_error(function() task.race() end) end)
end)

describe("srv.timeout", function()
  it("gives the function's values when it is in time", function()
    assert.same({ "a", "b" }, { task.timeout("1s", function(...) sleep(0) return ... end, "a", "b") })
  end)

  it("gives nil and a timeout error, and cancels, when it is not", function()
    local cancelled
    local v, err = task.timeout("2ms", function()
      task.defer(function(e) cancelled = e end)
      sleep "1h"
    end)
    assert.is_nil(v)
    assert.is_true(errors.is(err, "timeout"))
    assert.is_true(errors.is(cancelled, "cancelled"))
  end)

  it("passes errors on", function()
    local ok, e = pcall(task.timeout, "1s", error, { status = 418 })
    assert.is_false(ok)
    assert.equal(418, e.status)
  end)

  it("holds whatever waits inside", function()
    local outer, inner
    outer = task.timeout("5ms", function()
      inner = task.timeout("1h", function() sleep "1h" return "never" end)
      return "never"
    end)
    assert.is_nil(outer)
    assert.is_nil(inner)
  end)
end)

describe("srv.defer", function()
  it("runs the last first, after the function's end, with nil after success", function()
    local order = {}
    local v = task.timeout("1s", function()
      task.defer(function(err) order[#order + 1] = "a" .. tostring(err) end)
      task.defer(function(err) sleep(0) order[#order + 1] = "b" .. tostring(err) end)
      order[#order + 1] = "body"
      return "value"
    end)
    assert.equal("value", v)
    assert.same({ "body", "bnil", "anil" }, order)
  end)

  it("gets the error after an error", function()
    local seen
    pcall(task.timeout, "1s", function()
      task.defer(function(err) seen = err end)
      error({ word = "own" })
    end)
    assert.equal("own", seen.word)
  end)

  it("runs the others when one fails", function()
    local ran
    outcome(function()
      task.defer(function() ran = true end)
      task.defer(function() error "in a defer" end)
    end)
    assert.is_true(ran)
  end)

  it("sees the state that a cancelled wait left", function()
    local state = "before"
    local handle = task.spawn(function()
      state = "changed"
      task.defer(function() state = "restored" end)
      sleep "1h"
    end)
    sleep(0)
    assert.equal("changed", state)
    handle:cancel()
    handle:wait()
    assert.equal("restored", state)
  end)

  it("belongs to the task, also inside a generator", function()
    local ran
    outcome(function()
      coroutine.wrap(function() task.defer(function() ran = true end) end)()
      assert.is_nil(ran)
    end)
    assert.is_true(ran)
  end)
end)
