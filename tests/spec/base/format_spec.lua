local format = require "srv".format
local units = require "srv.base.units"

describe("format.bytes", function()
  it("takes the largest unit that fits, with four digits at most", function()
    local cases = {
      [0] = "0 bytes", [1] = "1 byte", [1023] = "1023 bytes", [1024] = "1 KiB", [1536] = "1.5 KiB", [1048575] = "1 MiB",
      [1024 ^ 2 * 1023.4] = "1023 MiB", [1024 ^ 4] = "1 TiB", [1024 ^ 5 * 2] = "2 PiB", [123456789] = "117.7 MiB", [-2048] = "-2 KiB",
    }
    for bytes, text in pairs(cases) do assert.equal(text, format.bytes(bytes)) end
  end)

  it("never writes an exponent or a thousand of a unit", function()
    for power = 0, 5300 do
      local text = format.bytes(2 ^ (power / 100))
      assert.is_nil(text:find "e%+", 1)
      assert.is_true(tonumber(text:match "^[%d.]+") < 1024, text)
    end
  end)
end)

describe("format.duration", function()
  it("takes one unit where one says it, else the two largest", function()
    local cases = {
      [0] = "0ms", [0.25] = "250ms", [0.0123] = "12.3ms", [0.9994] = "999ms", [0.9996] = "1s", [1.5] = "1.5s", [59.97] = "1m",
      [60] = "1m", [61.2] = "61s", [90] = "90s", [100] = "1m 40s", [5400] = "90m", [5425] = "1h 30m", [7200] = "2h", [3599.9] = "1h",
      [86399] = "1d", [85113] = "23h 39m", [86385] = "1d", [129600] = "36h", [273913] = "3d 4h", [604800] = "7d", [1e7] = "115d 18h", [-90] = "-90s", [0.0000001] = "0ms",
    }
    for seconds, text in pairs(cases) do assert.equal(text, format.duration(seconds)) end
  end)

  it("agrees with the texts of errors, and is read back, where it has one unit", function()
    for seconds = 60, 99 do assert.equal(units.duration_text(seconds), format.duration(seconds)) end
    for _, text in ipairs { "1ms", "250ms", "5s", "90s", "10m", "2h", "36h", "7d", "1.5s" } do
      assert.equal(text, format.duration(units.duration(text)))
    end
  end)

  it("is right to the digits that it shows", function()
    local sizes = { ms = 0.001, s = 1, m = 60, h = 3600, d = 86400 }
    for power = -100, 900 do
      local seconds, read = 10 ^ (power / 100), 0
      local text = format.duration(seconds)
      for number, unit in text:gmatch "([%d.]+)(%a+)" do read = read + number * sizes[unit] end
        assert.is_true(math.abs(read - seconds) <= seconds * 0.0205, text) -- half an hour of a day and more
      assert.is_nil(text:find "e%+")
    end
  end)
end)

describe("format.ago", function()
  it("counts whole units, back and ahead", function()
    local DAY = 86400
    local cases = {
      [0] = "just now", [59] = "just now", [-59] = "just now", [60] = "1 minute ago", [119] = "1 minute ago", [180] = "3 minutes ago",
      [-180] = "in 3 minutes", [3599] = "59 minutes ago", [3600] = "1 hour ago", [DAY] = "1 day ago", [-2 * DAY] = "in 2 days",
      [30 * DAY] = "30 days ago", [31 * DAY] = "1 month ago", [365 * DAY] = "11 months ago", [366 * DAY] = "1 year ago", [3653 * DAY] = "10 years ago",
    }
    for age, text in pairs(cases) do assert.equal(text, format.ago(1e9 - age, 1e9)) end
  end)

  it("counts from now", function()
    assert.equal("just now", format.ago(os.time()))
    assert.equal("2 hours ago", format.ago(os.time() - 7230))
  end)
end)

describe("format", function()
  it("blames misuse on its caller", function()
    for name, call in pairs(format) do
      local ok, message = pcall(function() call "5" end)
      assert.is_false(ok)
      assert.matches("format_spec.lua:%d+: srv.format." .. name .. ": expected a number, not a string$", message)
      for _, wrong in ipairs { 0 / 0, 1 / 0, -1 / 0, 1e300 } do
        assert.matches("is no amount$", select(2, pcall(call, wrong)))
      end
    end
  end)
end)
