local calendar = require "srv.base.calendar"
local env = require "srv.core.env"
local time = require "srv".time

local T = calendar.seconds(2024, 5, 31, 13, 45, 7)

--- The message of the error that FN raises, which must be blamed on this file.
local function misuse(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok)
  return message
end

--- COUNT moments from all over the years 0 to 9999, always the same.
local function moments(count)
  local random, i = 11, 0
  return function()
    i = i + 1
    random = (random * 16807) % 2147483647
    if i <= count then return math.floor(-62167219200 + random / 2147483647 * 315569520000) end
  end
end

describe("time", function()
  it("writes the forms that machines read", function()
    assert.equal("2024-05-31T13:45:07Z", time.iso(T))
    assert.equal("Fri, 31 May 2024 13:45:07 GMT", time.http(T))
    assert.equal("Fri, 31 May 2024 13:45:07 +0000", time.rfc2822(T))
    assert.equal("2024-05-31T13:45:07Z", time.iso(T + 0.999))
    assert.equal("1969-12-31T23:59:59Z", time.iso(-0.001))
    assert.equal("0000-01-01T00:00:00Z", time.iso(-62167219200))
    assert.equal("9999-12-31T23:59:59Z", time.iso(253402300799.5))
  end)

  it("takes now where no moment is given", function()
    local before = math.floor(env.now())
    for _, form in ipairs { "iso", "http", "rfc2822" } do
      local t = time.parse(time[form]())
      assert.is_true(t >= before and t <= env.now(), form)
    end
  end)

  it("reads what it has written", function()
    for t in moments(2000) do
      assert.equal(t, time.parse(time.iso(t)))
      assert.equal(t, time.parse(time.http(t)))
      assert.equal(t, time.parse(time.rfc2822(t)))
      assert.equal(t, time.parse(time.date(t, "%A, %-d %B %Y %R:%S %z", "-09:30")))
      assert.equal(t, time.parse(time.date(t, "%a %b %e %T %Y")))
    end
  end)

  it("keeps the milliseconds that it reads", function()
    for ms = 0, 999 do
      local text = ("2024-05-31T13:45:07.%03dZ"):format(ms)
      assert.equal(text, time.date(time.parse(text), "%FT%T.%LZ"))
    end
  end)

  it("agrees with the C library on all that both know", function()
    local FORMAT = "%a %A %b %B %C %d %D %e %F %g %G %h %H %I %j %m %M %n %p %r %R %S %t %T %u %U %V %w %W %y %Y %%"
    for t in moments(2000) do
      if t > -30610224000 then -- the library writes years before 1000 without their zeros
        assert.equal(os.date("!" .. FORMAT, t), time.date(t, FORMAT))
        assert.equal(env.http_date(t), time.http(t))
      end
    end
  end)

  it("leaves out what pads a number", function()
    local t = calendar.seconds(2024, 3, 5, 0, 7, 0)
    assert.equal("5.3. 0:7 12 5 65 AM", time.date(t, "%-d.%-m. %-H:%-M %-I %-e %-j %-p"))
    assert.equal("2000", time.date(calendar.seconds(2000, 1, 1, 0, 0, 0), "%-Y"))
  end)

  it("shows the clock of a zone", function()
    assert.equal("2024-05-31 15:45 CEST +0200 +02:00", time.date(T, "%F %R %Z %z %:z", "Europe/Berlin"))
    assert.equal("2024-05-31 09:15 -04:30 -0430", time.date(T, "%F %R %:z %z", "-04:30"))
    assert.equal("2024-05-31 13:45 UTC +0000", time.date(T, "%F %R %Z %z", "UTC"))
    assert.equal("2024-06-01 03:45", time.date(T, "%F %R", "+14:00"))
    assert.equal(tostring(T), time.date(T, "%s", "Asia/Tokyo"))
    assert.equal(os.date("%F %T %z", T), time.date(T, "%F %T %z", "local"))
    assert.equal("-001-12-31|10000-01-01", time.date(-62167219200, "%F", "-01:00") .. "|" .. time.date(253402300799, "%F", "+01:00"))
  end)

  it("goes on without a zone that is not there", function()
    local text, err = time.date(T, "%F", "Mars/Olympus")
    assert.is_nil(text)
    assert.equal("invalid", err.code)
    assert.equal('there is no time zone "Mars/Olympus"', err.message)
  end)

  it("says what is no date", function()
    local t, err = time.parse "soon"
    assert.is_nil(t)
    assert.equal(400, err.status)
    assert.equal('"soon" is no date', err.message)
    assert.is_true(#select(2, time.parse(("x"):rep(10000))).message < 100)
    assert.is_nil(time.parse "0000-01-01T00:00:00+01:00")
    assert.is_nil(time.parse "9999-12-31T23:59:59-01:00")
  end)

  it("blames misuse on its caller", function()
    local cases = {
      ["srv.time.iso: a moment is seconds since 1970, not a string (srv.time.parse reads a text)"] = { time.iso, "2024-05-31" },
      ["srv.time.http: a moment is seconds since 1970, not a table"] = { time.http, {} },
      ["srv.time.rfc2822: inf lies outside of the years 0 to 9999"] = { time.rfc2822, math.huge },
      ["srv.time.iso: 253402300800 lies outside of the years 0 to 9999"] = { time.iso, 253402300800 },
      ["srv.time.date: a moment is seconds since 1970, not a nil"] = { time.date, nil, "%F" },
      ["srv.time.date: the format must be a string, not a nil"] = { time.date, 0 },
      ["srv.time.date: the format is longer than 1,024 bytes"] = { time.date, 0, ("x"):rep(1025) },
      ["srv.time.date: the zone must be a string, not a number"] = { time.date, 0, "%F", 2 },
      ['srv.time.date: the format has no letter "%c"'] = { time.date, 0, "%c" },
      ['srv.time.date: the format has no letter "%-:q"'] = { time.date, 0, "%-:q" },
      ['srv.time.date: the format has no letter "%" (a percent sign is "%%")'] = { time.date, 0, "100%" },
      ["srv.time.parse: expected a string, not a number"] = { time.parse, 5 },
    }
    for message, call in pairs(cases) do
      assert.equal(message, (misuse(call[1], unpack(call, 2, 4)):gsub("^[%w_/]*time_spec.lua:%d+: ", "")))
    end
    assert.is_false(pcall(time.iso, 0 / 0))
    assert.matches("^[%w_/]*time_spec.lua:%d+: ", misuse(function() time.iso "x" end))
  end)
end)
