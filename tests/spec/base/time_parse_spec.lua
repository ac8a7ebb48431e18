local calendar = require "srv.base.calendar"
local parse = require "srv.base.time_parse"

local function utc(...) return calendar.seconds(...) end

local T = utc(2024, 5, 31, 13, 45, 7)
local MINUTE = T - 7

describe("dates in texts", function()
  it("of RFC 3339 and ISO 8601 are read", function()
    local cases = {
      ["2024-05-31T13:45:07Z"] = T, ["2024-05-31t13:45:07z"] = T, ["2024-05-31 13:45:07Z"] = T,
      ["2024-05-31T15:45:07+02:00"] = T, ["2024-05-31T09:15:07-04:30"] = T, ["2024-05-31T13:45:07-00:00"] = T,
      ["2024-05-31T15:45:07+0200"] = T, ["2024-05-31 15:45:07+02"] = T, ["2024-05-31 15:45:07 +02:00"] = T,
      ["2024-05-31T13:45Z"] = MINUTE, ["2024-05-31T13:45"] = MINUTE, ["2024-05-31 13:45:07"] = T,
      ["20240531T134507Z"] = T, ["20240531T1345"] = MINUTE, ["20240531T154507+0200"] = T,
      ["2024-05-31"] = utc(2024, 5, 31, 0, 0, 0), ["20240531"] = utc(2024, 5, 31, 0, 0, 0),
      ["2024-05-31T24:00:00Z"] = utc(2024, 6, 1, 0, 0, 0), ["2024-05-31T13:45:07 GMT"] = T,
      ["  2024-05-31T13:45:07Z\n"] = T,
      ["2024-02-29T00:00:00Z"] = utc(2024, 2, 29, 0, 0, 0), ["0000-01-01T00:00:00Z"] = utc(0, 1, 1, 0, 0, 0),
    }
    for text, t in pairs(cases) do assert.equal(t, parse(text), text) end
  end)

  it("keep their fraction", function()
    assert.equal(T + 0.5, parse "2024-05-31T13:45:07.5Z")
    assert.equal(T + 0.25, parse "2024-05-31T13:45:07,25+00:00")
    assert.equal(T + 0.125, parse "2024-05-31 13:45:07.125000000000")
    assert.equal(-0.5, parse "1969-12-31T23:59:59.5Z")
  end)

  it("of mail are read, with names of zones, without seconds, with comments", function()
    local cases = {
      ["Fri, 31 May 2024 13:45:07 +0000"] = T, ["Fri, 31 May 2024 09:45:07 EDT"] = T, ["31 May 2024 13:45:07 UT"] = T,
      ["Fri, 31 May 2024 15:45:07 +0200 (CEST)"] = T,
      ["fri, 31 may 24 13:45 gmt"] = MINUTE, ["Friday, 31 May 2024 13:45 Z"] = MINUTE, ["Mon, 31 May 2024 13:45 Z"] = MINUTE,
      ["Fri,  31  May  2024  06:45:07  PDT"] = T, ["Fri, 31 May 124 13:45:07 -0000"] = T,
      ["1 September 2024 1:02 UTC"] = utc(2024, 9, 1, 1, 2, 0), ["Tues, 3 Sept 2024 1:02 UTC"] = utc(2024, 9, 3, 1, 2, 0),
      ["1 Jan 49 00:00 GMT"] = utc(2049, 1, 1, 0, 0, 0), ["1 Jan 50 00:00 GMT"] = utc(1950, 1, 1, 0, 0, 0),
    }
    for text, t in pairs(cases) do assert.equal(t, parse(text), text) end
  end)

  it("of HTTP are read in all three forms (RFC 9110, 5.6.7)", function()
    local t = utc(1994, 11, 6, 8, 49, 37)
    assert.equal(t, parse "Sun, 06 Nov 1994 08:49:37 GMT")
    assert.equal(t, parse "Sunday, 06-Nov-94 08:49:37 GMT")
    assert.equal(t, parse "Sun Nov  6 08:49:37 1994")
    assert.equal(t, parse "Sun, 06-Nov-1994 08:49:37 GMT")
  end)

  it("with two digits for the year are at most 50 years ahead", function()
    local this_year = calendar.fields(os.time()).year
    for ahead, year in pairs { [50] = this_year + 50, [51] = this_year - 49, [0] = this_year, [99] = this_year - 1 } do
      local text = ("Sunday, 06-Nov-%02d 08:49:37 GMT"):format((this_year + ahead) % 100)
      assert.equal(utc(year, 11, 6, 8, 49, 37), parse(text), text)
    end
  end)

  it("have leap seconds at the end of a day in UTC only", function()
    assert.equal(utc(2017, 1, 1, 0, 0, 0), parse "2016-12-31T23:59:60Z")
    assert.equal(utc(2017, 1, 1, 0, 0, 0), parse "2017-01-01T01:59:60+02:00")
    assert.is_nil(parse "2016-12-31T22:59:60Z")
    assert.is_nil(parse "2016-12-31T23:59:61Z")
  end)

  it("are none when they are not real", function()
    for _, text in ipairs {
      "", " ", "yesterday", "1717163107", "2024", "2024-05", "2024-5-31", "24-05-31", "12024-05-31", "2024-05-31T", "2024-05-31T13",
      "2024-02-30", "2023-02-29", "2024-13-01", "2024-00-10", "2024-01-00", "2024-05-31T24:00:01Z", "2024-05-31T25:00Z",
      "2024-05-31T13:60Z", "2024-05-31T13:45:07.Z", "2024-05-31T13:45.5Z", "2024-05-31T13:45:07+25:00", "2024-05-31T13:45:07+02:60",
      "2024-05-31T13:45:07Zx", "2024-05-31T13:45:07 CEST", "2024-05-31T1345Z", "20240531T13:45Z", "2024-05-31x",
      "2024-05-31  13:45", "Fri, 31 May 2024", "Fri, 31 May 2024 13:45", "Fri, 31 May 2024 13:45 XYZ", "Fri, 31 Foo 2024 13:45 GMT",
      "Foo, 31 May 2024 13:45 GMT", "Fri, 32 May 2024 13:45 GMT", "Fri, 31 May 2024 13:45 +0200 (a (b", "Fri, 31 Mayday 2024 13:45 GMT", "Fri 31 Ma 2024 13:45 GMT",
      "Fri, 31 May 2024 13:4 GMT", "Sun Nov  6 08:49:37 94", "Sun Nov 31 08:49:37 1994", "2024-05-31T13:45:07Z\0",
      "2024-05-31T13:45:07." .. ("1"):rep(200) .. "Z",
    } do
      assert.is_nil(parse(text), text)
    end
  end)

  it("take no time, however they are made", function()
    local started = os.clock()
    for _, piece in ipairs { " ", "1", "a", "(", "1 ", "a ", ":", "-", "\n" } do
      parse(piece:rep(100000))
      for _, start in ipairs { "", "Fri, ", "Fri, 31 May 2024 13:45 ", "2024-05-31T13:45:07" } do
        assert.is_nil(parse(start .. "x" .. piece:rep(100)))
      end
    end
    assert.is_true(os.clock() - started < 0.5)
  end)
end)
