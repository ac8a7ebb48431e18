local cron = require "srv.web.cron"

local TUESDAY = 1700000000 -- Tue, 14 Nov 2023 22:13:20 GMT

local function next_of(expression, after)
  local at = cron.next(cron.parse(expression), after or TUESDAY)
  return at and os.date("!%a %d %b %Y %H:%M:%S", at)
end

describe("cron", function()
  it("finds the next time", function()
    assert.equal("Wed 15 Nov 2023 04:00:00", next_of "0 4 * * *")
    assert.equal("Tue 14 Nov 2023 22:15:00", next_of "*/15 * * * *")
    assert.equal("Wed 15 Nov 2023 09:00:00", next_of "0 9-17 * * 1-5")
    assert.equal("Thu 29 Feb 2024 00:00:00", next_of "0 0 29 2 *")
    assert.equal("Fri 01 Dec 2023 00:00:00", next_of "0 0 1 12 *")
    assert.equal("Tue 14 Nov 2023 22:14:00", next_of("* * * * *", TUESDAY))
  end)

  it("takes either day when both are limited, and 7 for Sunday", function()
    assert.equal("Sun 19 Nov 2023 00:00:00", next_of "0 0 1 * 7")
    assert.equal("Sun 19 Nov 2023 00:00:00", next_of "0 0 * * 0")
  end)

  it("knows what never comes", function()
    assert.is_nil(next_of "0 0 31 2 *")
  end)

  describe("in a zone", function()
    local zone = require "srv.base.zone"
    local HOUR = 3600
    local SPRING, AUTUMN = 1711846800, 1729990800 -- 2024 in Berlin: 31 March 02:00 to 03:00, 27 October 03:00 to 02:00

    local function runs(expression, after, count)
      local schedule, berlin, found = cron.parse(expression), zone.find "Europe/Berlin", {}
      for i = 1, count do
        after = cron.next(schedule, after, berlin)
        found[i] = after
      end
      return found
    end

    it("means what its clocks show", function()
      assert.same({ TUESDAY - 800 + 5 * HOUR - 2 * HOUR }, runs("0 2 * * *", TUESDAY, 1)) -- 01:00 UTC in winter
      assert.same({ SPRING + 2 * HOUR }, runs("0 5 * * *", SPRING, 1)) -- 03:00 UTC in summer
    end)

    it("comes later when the clocks skip it", function()
      assert.same({ SPRING - 24 * HOUR + 1800, SPRING + 1800, SPRING + 23 * HOUR + 1800 },
        runs("30 2 * * *", SPRING - 26 * HOUR, 3))
    end)

    it("comes once when the clocks show it twice, each time with every hour", function()
      assert.same({ AUTUMN - HOUR + 1800, AUTUMN + 24 * HOUR + 1800 }, runs("30 2 * * *", AUTUMN - 2 * HOUR, 2))
      assert.same({ AUTUMN - 1800, AUTUMN, AUTUMN + 1800, AUTUMN + HOUR }, runs("0,30 * * * *", AUTUMN - HOUR, 4))
      assert.same({ SPRING - 1800, SPRING, SPRING + 1800 }, runs("0,30 * * * *", SPRING - HOUR, 3))
    end)
  end)

  it("says which field is wrong", function()
    for expression, fault in pairs {
      ["60 * * * *"] = '"60" is no minute', ["* * * *"] = "five fields", ["* * * * * *"] = "five fields",
      ["a * * * *"] = '"a" is no minute', ["5-1 * * * *"] = '"5-1" is no minute', ["*/0 * * * *"] = '"*/0" is no minute',
    } do
      local schedule, message = cron.parse(expression)
      assert.is_nil(schedule)
      assert.matches(fault, message, 1, true)
    end
  end)
end)
