local calendar = require "srv.base.calendar"

describe("the calendar", function()
  it("knows leap years and the days of months", function()
    assert.is_true(calendar.is_leap(2000))
    assert.is_true(calendar.is_leap(2024))
    assert.is_false(calendar.is_leap(1900))
    assert.is_false(calendar.is_leap(2023))
    assert.equal(29, calendar.month_days(2024, 2))
    assert.equal(28, calendar.month_days(2100, 2))
    assert.equal(30, calendar.month_days(2024, 11))
  end)

  it("counts days from 1970", function()
    assert.equal(0, calendar.days(1970, 1, 1))
    assert.equal(-1, calendar.days(1969, 12, 31))
    assert.equal(11016, calendar.days(2000, 2, 29))
    assert.equal(-719528, calendar.days(0, 1, 1))
    assert.equal(2932896, calendar.days(9999, 12, 31))
  end)

  it("goes through 800 years day by day without a gap", function()
    local days = calendar.days(1600, 1, 1)
    for year = 1600, 2399 do
      for month = 1, 12 do
        for day = 1, calendar.month_days(year, month) do
          if calendar.days(year, month, day) ~= days then error(("%d-%d-%d"):format(year, month, day)) end
          local y, m, d = calendar.date(days)
          if y ~= year or m ~= month or d ~= day then error(("day %d is %d-%d-%d"):format(days, y, m, d)) end
          days = days + 1
        end
      end
    end
    assert.equal(calendar.days(2400, 1, 1), days)
  end)

  it("agrees with the C library on every field", function()
    local random = 7
    for _ = 1, 2000 do
      random = (random * 16807) % 2147483647
      local t = random * 100 - 62e9 -- years 5 to 6800
      local ours, theirs = calendar.fields(t), os.date("!*t", t)
      assert.same({ theirs.year, theirs.month, theirs.day, theirs.hour, theirs.min, theirs.sec, theirs.wday, theirs.yday },
        { ours.year, ours.month, ours.day, ours.hour, ours.minute, ours.second, ours.weekday + 1, ours.year_day + 1 })
    end
  end)

  it("leaves fractions out, downwards before 1970 too", function()
    assert.equal(59, calendar.fields(-0.5).second)
    assert.equal(1969, calendar.fields(-0.5).year)
    assert.equal(0, calendar.fields(0.999).second)
  end)
end)
