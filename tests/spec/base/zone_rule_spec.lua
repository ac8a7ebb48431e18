local calendar = require "srv.base.calendar"
local zone_rule = require "srv.base.zone_rule"

local function utc(...) return calendar.seconds(...) end

--- "offset name" a second before the moment and at it.
local function around(text, t)
  local rule = assert(zone_rule.parse(text), text)
  local function at(moment) return ("%d %s"):format(zone_rule.at(rule, moment)) end
  return { at(t - 1), at(t) }
end

describe("rules for daylight saving", function()
  it("change on weekdays of months", function()
    local berlin = "CET-1CEST,M3.5.0,M10.5.0/3"
    assert.same({ "3600 CET", "7200 CEST" }, around(berlin, utc(2050, 3, 27, 1, 0, 0)))
    assert.same({ "7200 CEST", "3600 CET" }, around(berlin, utc(2050, 10, 30, 1, 0, 0)))
    assert.same({ "-18000 EST", "-14400 EDT" }, around("EST5EDT,M3.2.0,M11.1.0", utc(2024, 3, 10, 7, 0, 0)))
    assert.same({ "-18000 EST", "-14400 EDT" }, around("EST5EDT", utc(2024, 3, 10, 7, 0, 0)))
  end)

  it("hold over the new year in the south", function()
    local sydney = "AEST-10AEDT,M10.1.0,M4.1.0/3"
    assert.same({ "39600 AEDT", "39600 AEDT" }, around(sydney, utc(2050, 1, 1, 0, 0, 0)))
    assert.same({ "39600 AEDT", "36000 AEST" }, around(sydney, utc(2050, 4, 2, 16, 0, 0)))
  end)

  it("may be backwards, before midnight, in quarters, or for ever", function()
    assert.same({ "3600 IST", "0 GMT" }, around("IST-1GMT0,M10.5.0,M3.5.0/1", utc(2050, 10, 30, 1, 0, 0)))
    assert.same({ "-10800 -03", "-7200 -02" }, around("<-03>3<-02>,M3.5.0/-2,M10.5.0/-1", utc(2050, 3, 27, 1, 0, 0)))
    assert.same({ "45900 +1245", "49500 +1345" }, around("<+1245>-12:45<+1345>,M9.5.0/2:45,M4.1.0/3:45", utc(2049, 9, 25, 14, 0, 0)))
    assert.same({ "-7200 AAA", "-7200 AAA" }, around("XXX3AAA,0/0,J365/25", utc(2024, 1, 1, 3, 0, 0)))
    assert.same({ "19800 IST", "19800 IST" }, around("IST-5:30", 0))
  end)

  it("may count days, with and without the leap day", function()
    assert.same({ "0 AAA", "3600 BBB" }, around("AAA0BBB,J60/0,J300", utc(2024, 3, 1, 0, 0, 0)))
    assert.same({ "0 AAA", "3600 BBB" }, around("AAA0BBB,59/0,300", utc(2024, 2, 29, 0, 0, 0)))
    assert.same({ "0 AAA", "3600 BBB" }, around("AAA0BBB,59/0,300", utc(2023, 3, 1, 0, 0, 0)))
  end)

  it("are nothing else", function()
    for _, wrong in ipairs {
      "", "C", "CET", "-1", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0",
      "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,J0,J365", "CET-1CEST,366,1", "CET-1CEST,M3.5.0,M10.5.0/3x", "CET-1C",
      "CET-168", "<CET-1", "CET-1CEST,M3.5.0/,M10.5.0", "CET-1:60", "CET-1" .. ("x"):rep(200),
    } do
      assert.is_nil(zone_rule.parse(wrong), wrong)
    end
  end)
end)
