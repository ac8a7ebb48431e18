local trace = require "srv.base.trace"

local RETURNED = [[stack traceback:
	[C]: in function 'error'
	srv/web/answer.lua:56: in function 'raise_returned'
	[C]: in function 'xpcall'
	srv/(runner of GET /):8: in function <srv/(runner of GET /):7>]]

describe("a traceback for the app", function()
  it("ends with the app's last line", function()
    local raised = RETURNED:gsub("web/answer.lua:56: in function 'raise_returned'", "base/errors.lua:9: in function 'raise'\n\tapp.lua:7: in function 'f'")
    assert.equal("stack traceback:\n\t[C]: in function 'error'\n\tsrv/base/errors.lua:9: in function 'raise'\n\tapp.lua:7: in function 'f'",
      trace.trim(raised))
  end)

  it("is none where the app has no line in it", function() assert.is_nil(trace.trim(RETURNED)) end)
end)

describe("a function's place", function()
  it("is where it begins, in the app", function()
    assert.matches("trace_spec.lua:21$", trace.place_of(function() end))
    assert.is_nil(trace.place_of(print))
    assert.is_nil(trace.place_of(trace.trim))
    assert.is_nil(trace.place_of {})
  end)
end)
