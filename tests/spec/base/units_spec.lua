local units = require "srv.base.units"

describe("units", function()
  it("reads durations as seconds", function()
    assert.same({ 0.25, 5, 600, 7200, 604800, 90, 1.5 }, {
      units.duration "250ms", units.duration "5s", units.duration "10m", units.duration "2h",
      units.duration "7d", units.duration "90", units.duration "1.5s",
    })
    assert.equal(3, units.duration(3))
  end)

  it("reads sizes as whole bytes", function()
    assert.same({ 65536, 1048576, 2147483648, 512, 5, 1000 }, {
      units.bytes "64KiB", units.bytes "1MiB", units.bytes "2GiB", units.bytes "512B", units.bytes "5", units.bytes "1kB",
    })
    assert.is_nil(units.bytes "0.3B")
  end)

  it("takes nothing else for one", function()
    for _, wrong in ipairs { "", "s", "-5s", "5 s", "5x", "0x10", "1e3", "5ss", "inf", ("9"):rep(40), -1, 0 / 0, 1 / 0, true } do
      assert.is_nil(units.duration(wrong), tostring(wrong))
      assert.is_nil(units.bytes(wrong), tostring(wrong))
    end
  end)

  it("has an end: a thousand years", function()
    assert.is_nil(units.duration "366000d")
  end)

  it("says amounts to people", function()
    assert.equal("1.5 KiB", units.bytes_text(1536))
    assert.equal("2 MiB", units.bytes_text(2 * 1024 ^ 2))
    assert.equal("100 bytes", units.bytes_text(100))
    assert.equal("1 byte", units.bytes_text(1))
    assert.equal("1 MiB", units.bytes_text(1024 ^ 2 - 1))
    assert.equal("12 TiB", units.bytes_text(12 * 1024 ^ 4))
    assert.equal("90s", units.duration_text(90))
    assert.equal("2h", units.duration_text(7200))
    assert.equal("250ms", units.duration_text(0.25))
  end)
end)
