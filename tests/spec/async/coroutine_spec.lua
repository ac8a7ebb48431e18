-- What user coroutines do when something inside them waits. The plain cases hold Lua's own semantics.
local errors = require "srv.base.errors"
local sync = require "srv.async.sync"
local task = require "srv.async.task"

local sleep = task.sleep
local create, resume, status, wrap, yield =
  coroutine.create, coroutine.resume, coroutine.status, coroutine.wrap, coroutine.yield

describe("a generator", function()
  it("may wait between its values, beside a sibling that does", function()
    local function numbers(n)
      return wrap(function()
        for i = 1, n do
          sleep "1ms"
          yield(i)
        end
      end)
    end
    local function sum()
      local total = 0
      for i in numbers(5) do total = total + i end
      return total
    end
    assert.same({ 15, 15, 15 }, task.map({ 1, 2, 3 }, sum))
  end)

  it("may wait three levels deep, with values going both ways", function()
    local function level(depth)
      return wrap(function(...)
        local args = { ... }
        if depth > 0 then
          local inner = level(depth - 1)
          args = { inner(unpack(args)) }
        end
        sleep(0)
        local back = { yield(unpack(args)) }
        sleep(0)
        return unpack(back)
      end)
    end
    local outer = level(3)
    assert.same({ 1, 2, 3 }, { outer(1, 2, 3) })
    assert.same({ "back" }, { outer("back") })
  end)

  it("keeps nils and the number of values through a wait", function()
    local co = create(function(...)
      sleep(0)
      local n = select("#", ...)
      sleep(0)
      return select("#", yield(n, nil, nil)), nil
    end)
    assert.equal(4, select("#", resume(co, nil, nil, nil)))
    local values = { resume(co, nil, nil) }
    assert.same({ true, 2 }, values)
  end)

  it("may be left early, and collected", function()
    local weak = setmetatable({}, { __mode = "k" })
    do
      local gen = wrap(function()
        weak[coroutine.running()] = true
        while true do sleep(0) yield(1) end
      end)
      assert.equal(1, gen())
    end
    collectgarbage()
    collectgarbage()
    assert.is_nil(next(weak))
  end)

  it("nests a hundred levels", function()
    local function nest(n)
      if n == 0 then sleep(0) return "bottom" end
      return wrap(nest)(n - 1)
    end
    assert.equal("bottom", nest(100))
  end)

  it("stops with an error where nesting has no end", function()
    local function nest() return wrap(nest)() end
    local ok, why = pcall(nest)
    assert.is_false(ok)
    assert.matches("C stack overflow", why)
  end)
end)

describe("an error after a wait", function()
  it("is returned by resume and raised by wrap, tables as they are", function()
    local problem = errors.new(404)
    local co = create(function() sleep(0) error(problem) end)
    local ok, e = resume(co)
    assert.is_false(ok)
    assert.equal(problem, e)
    assert.equal("dead", status(co))
    ok, e = pcall(wrap(function() sleep(0) error(problem) end))
    assert.is_false(ok)
    assert.equal(problem, e)
  end)

  it("can be caught on either side", function()
    assert.equal("inside", wrap(function()
      local _, e = pcall(function() sleep(0) error("inside", 0) end)
      sleep(0)
      return e
    end)())
    local _, e = xpcall(wrap(function() sleep(0) error("outside", 0) end), function(e) return e .. "!" end)
    assert.equal("outside!", e)
  end)

  it("keeps its position and every coroutine's stack", function()
    local text
    xpcall(function()
      wrap(function()
        wrap(function() local function innermost() sleep(0) error "lost" end innermost() return 1 end)()
        return 1
      end)()
    end, function(e)
      text = e .. "\n" .. require "srv.core.task".traceback(e)
    end)
    assert.matches("^tests/spec/async/coroutine_spec.lua:%d+: lost", text)
    assert.matches("in function 'innermost'", text)
    local _, sections = text:gsub("resumed from:", "")
    assert.equal(2, sections)
  end)
end)

describe("a coroutine that two tasks know", function()
  it("cannot be resumed while it waits, and the first task is not disturbed", function()
    local go = sync.event()
    local co = create(function() go:wait() return "value" end)
    local first = task.spawn(function() return resume(co) end)
    sleep(0)
    local ok, why = resume(co)
    assert.is_false(ok)
    assert.equal("cannot resume non-suspended coroutine", why)
    assert.equal("normal", status(co))
    go:set()
    assert.same({ true, "value" }, { first:wait() })
  end)

  it("can be resumed by the other between its waits", function()
    local gen = wrap(function() for i = 1, 4 do sleep(0) yield(i) end end)
    local a = task.spawn(function() return gen() end):wait()
    local b = task.spawn(function() return gen() end):wait()
    assert.same({ 1, 2, 3 }, { a, b, (gen()) })
  end)

  it("is dead when it was abandoned in a wait", function()
    local co = create(function() sleep "1h" end)
    local holder = task.spawn(function() resume(co) end)
    sleep(0)
    holder:cancel()
    holder:wait()
    assert.equal("dead", status(co))
    assert.same({ false, "cannot resume dead coroutine" }, { resume(co) })
  end)

  it("shields nobody: what it wraps in pcall is never resumed after a cancel", function()
    local rounds = 0
    local holder = task.spawn(function()
      wrap(function()
        while true do
          rounds = rounds + 1
          pcall(sleep, "1ms")
        end
      end)()
    end)
    sleep(0)
    holder:cancel()
    holder:wait()
    local before = rounds
    sleep "5ms"
    assert.equal(before, rounds)
  end)
end)

describe("where a wait cannot pass", function()
  local function why_of(fn)
    local ok, why = pcall(fn)
    assert.is_false(ok)
    return why
  end

  it("it raises at its own line and names the way round", function()
    assert.matches("^tests/spec/async/coroutine_spec.lua:%d+: .*cannot wait in a callback of table.sort.*then sort",
      why_of(function() table.sort({ 2, 1 }, function(a, b) sleep(0) return a < b end) end))
    assert.matches("cannot wait in a callback of string.gsub.*string.gmatch",
      why_of(function() return ("a"):gsub("a", function() sleep(0) end) end))
    assert.matches("cannot wait in a callback of string.format.*tostring",
      why_of(function()
        return ("%s"):format(setmetatable({}, { __tostring = function() sleep(0) return "x" end }))
      end))
  end)

  it("it raises through a generator too, and takes the wait back", function()
    local event = sync.event()
    assert.matches("cannot wait in a callback of string.gsub",
      why_of(function() return ("a"):gsub("a", wrap(function() event:wait() end)) end))
    event:set() -- nobody is woken who is not there
    sleep(0)
  end)

  it("plain generators work as callbacks", function()
    local gen = wrap(function() while true do yield "x" end end)
    assert.equal("xx", (("ab"):gsub(".", function() return gen() end)))
  end)

  it("metamethods, iterators, pcall and tostring are no obstacle", function()
    local waiting = setmetatable({}, {
      __index = function(_, k) sleep(0) return k end,
      __add = function() sleep(0) return "sum" end,
      __tostring = function() sleep(0) return "text" end,
      __call = function() sleep(0) return "called" end,
      __lt = function() sleep(0) return true end,
      __concat = function() sleep(0) return "joined" end,
    })
    assert.equal("key", waiting.key)
    assert.equal("sum", waiting + 1)
    assert.equal("text", tostring(waiting))
    assert.equal("called", waiting())
    assert.is_true(waiting < waiting)
    assert.equal("joined", waiting .. "")
    for v in function(_, last) sleep(0) return not last and 1 or nil end do assert.equal(1, v) end
    assert.equal("loaded", loadstring("local sleep = ... sleep(0) return 'loaded'")(sleep))
  end)
end)

describe("coroutine.*", function()
  it("answers as Lua does", function()
    local co
    co = create(function()
      assert.equal("running", status(co))
      assert.equal(co, coroutine.running())
      assert.same({ false, "cannot resume non-suspended coroutine" }, { resume(co) })
      yield()
    end)
    assert.equal("suspended", status(co))
    assert.is_true(resume(co))
    assert.equal("suspended", status(co))
    assert.is_true(resume(co))
    assert.equal("dead", status(co))
    assert.same({ false, "cannot resume dead coroutine" }, { resume(co) })
    assert.has_error(function() resume(1) end)
    assert.has_error(function() wrap(1) end)
    assert.has_error(wrap(function() error "x" end))
    local _, why = pcall(function()
      local f = wrap(function() end)
      f()
      f()
    end)
    assert.matches("^tests/spec/async/coroutine_spec.lua:%d+: cannot resume dead coroutine$", why)
  end)

  it("yield with nobody to take it raises a clear error, which pcall catches", function()
    local ok, why = pcall(function() yield(1) end)
    assert.is_false(ok)
    assert.matches("^tests/spec/async/coroutine_spec.lua:%d+: coroutine.yield outside of a coroutine", why)
  end)

  it("running() tells tasks apart, also when one comes after the other", function()
    local seen = {}
    for _ = 1, 3 do
      task.spawn(function() seen[#seen + 1] = coroutine.running() end):wait()
    end
    assert.not_equal(seen[1], seen[2])
    assert.not_equal(seen[2], seen[3])
  end)

  it("moves many values", function()
    local many = {}
    for i = 1, 200 do many[i] = i end
    local gen = wrap(function(...) sleep(0) return ... end)
    assert.equal(200, select("#", gen(unpack(many))))
  end)
end)
