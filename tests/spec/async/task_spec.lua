local task = require "srv.async.task"

describe("srv.sleep", function()
  it("waits", function()
    task.sleep("1ms")
    task.sleep(0)
    assert.has_error(function() task.sleep("soon") end)
  end)
end)
