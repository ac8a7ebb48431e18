local options = require "srv.base.options"

local KNOWN = { timeout = "duration", limit = "bytes", name = "string", on = "boolean", mode = "fast|slow", any = "any", count = "1..", part = "0..9" }

describe("options", function()
  it("become numbers where they have units", function()
    assert.same({ timeout = 0.25, limit = 1024, name = "x", on = false, mode = "slow", any = 7 },
      options.check("f", { timeout = "250ms", limit = "1KiB", name = "x", on = false, mode = "slow", any = 7 }, KNOWN))
    assert.same({}, options.check("f", nil, KNOWN))
  end)

  it("are refused when unknown or wrong, on the caller's line", function()
    local function message_of(given)
      local _, message = pcall(function() options.check("f", given, KNOWN) end)
      return message
    end
    assert.matches('^tests/spec/base/options_spec.lua:%d+: f: unknown option "limti", did you mean "limit"?', message_of { limti = 1 })
    assert.matches('option "timeout" must be a duration like "5s" or a number of seconds, not "soon"', message_of { timeout = "soon" })
    assert.matches('option "mode" must be "fast" or "slow", not "medium"', message_of { mode = "medium" })
    assert.matches('option "on" must be true or false, not 1', message_of { on = 1 })
    assert.matches('option "count" must be a whole number from 1 on, not 0', message_of { count = 0 })
    for _, wrong in ipairs { 10, -1, 0.5, 0 / 0, 1 / 0, "1" } do
      assert.matches('option "part" must be a whole number from 0 to 9, not ', message_of { part = wrong })
    end
    assert.matches("options are a table, not a string", message_of "x")
  end)
end)
