--- The rules of waiting, claimed of each function of a table, which waits for what does not come.
local srv = require "srv"

local function takes_less_than(seconds, fn)
  local from = srv.monotonic()
  fn()
  local took = srv.monotonic() - from
  assert.is_true(took < seconds, "took " .. took)
end

local PATIENCE = 8   -- far less than what is waited for, and far more than it takes

---@param waits table<string, fun()>
return function(waits)
  describe("cancelled in", function()
    for name, wait in pairs(waits) do
      it(name .. ": it is never resumed, its defers run, and whoever waits is told", function()
        local cause, returned
        local task = srv.spawn(function()
          srv.defer(function(err) cause = err end)
          pcall(wait)
          returned = true
        end)
        srv.sleep "20ms"
        assert.equal("running", task.state)
        takes_less_than(PATIENCE, function()
          task:cancel()
          local v, err = task:wait()
          assert.is_nil(v)
          assert.equal("cancelled", err.code)
        end)
        assert.equal("cancelled", cause.code)
        assert.is_nil(returned)
      end)
    end
  end)

  describe("srv.timeout around", function()
    for name, wait in pairs(waits) do
      it(name .. " is a timeout", function()
        takes_less_than(PATIENCE, function()
          local v, err = srv.timeout("20ms", wait)
          assert.is_nil(v)
          assert.equal("timeout", err.code)
        end)
      end)
    end
  end)

  describe("a deadline of the request in", function()
    for name, wait in pairs(waits) do
      it(name .. " answers 503, from inside a coroutine and pcall, too", function()
        local app = srv.app()
        app:get("/", { timeout = "30ms" }, function()
          coroutine.wrap(function() pcall(wait) end)()
          return "never"
        end)
        takes_less_than(PATIENCE, function() srv.test(app):get("/"):expect(503) end)
      end)
    end
  end)
end
