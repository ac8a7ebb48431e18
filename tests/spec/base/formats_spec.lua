local formats = require "srv.base.formats"

local label63 = ("a"):rep(63)

local CASES = {
  email = {
    yes = { "ann@example.com", "a.b+c@x-y.example", "o'brien@example.org", ("a"):rep(64) .. "@example.com" },
    no = {
      "", "ann", "@example.com", "ann@", "ann@localhost", "a b@example.com", ".a@example.com", "a.@example.com",
      "a..b@example.com", "a@example..com", "a@-x.com", "a@x-.com", "a@exam_ple.com", "a@b@example.com",
      ("a"):rep(65) .. "@example.com", "a@" .. ("b."):rep(126) .. "c", "\195\169@example.com", "a@example.com\n",
      '"a b"@example.com', "a@[127.0.0.1]",
    },
  },
  url = {
    yes = {
      "http://example.com", "https://example.com/", "HTTPS://Example.COM:8080/a/b;c?d=e&f=%20#g", "http://127.0.0.1:9000",
      "http://[::1]:80/", "http://user:pw@example.com/", "http://example.com?x", "http://example.com#x", "http://example.com:",
      "http://xn--bcher-kva.example/", "http://a/" .. ("x"):rep(8000),
    },
    no = {
      "", "example.com", "/path", "//example.com", "ftp://example.com", "javascript:alert(1)", "http:/example.com",
      "http://", "http:///x", "http://:80/", "http://a b/", "http://example.com/a b", "http://example.com/%2", "http://example.com/%zz",
      "http://example.com:65536/", "http://example.com:8a/", "http://[::1/", "http://[::g]/", "http://b\195\188cher.example/",
      "http://example.com/<x>", 'http://example.com/"', "http://a@b@c/", "http://example.com/\n", "http://example.com/#a#b",
      "http://a/" .. ("x"):rep(9000),
    },
  },
  uuid = {
    yes = { "00000000-0000-0000-0000-000000000000", "018F4D7E-9c3a-7bbb-8000-0123456789ab" },
    no = { "", "018f4d7e9c3a7bbb80000123456789ab", "018f4d7e-9c3a-7bbb-8000-0123456789ag", "{018f4d7e-9c3a-7bbb-8000-0123456789ab}", "018f4d7e-9c3a-7bbb-80000-123456789ab" },
  },
  date = {
    yes = { "2024-02-29", "2000-02-29", "0000-01-01", "9999-12-31" },
    no = { "", "2023-02-29", "1900-02-29", "2024-13-01", "2024-00-01", "2024-04-31", "2024-01-00", "2024-1-1", "24-01-01", "2024-01-01T", "2024/01/01" },
  },
  time = {
    yes = { "13:45:00Z", "00:00:00.5+23:59", "23:59:60Z", "18:59:60-05:00", "01:29:60.25+01:30", "13:45:00z" },
    no = { "", "13:45", "13:45:00", "24:00:00Z", "13:60:00Z", "13:45:61Z", "13:45:60Z", "13:45:00.Z", "13:45:00+24:00", "13:45:00+01:60", "13:45:00+0100", "23:59:60+01:00", "13:45:00." .. ("1"):rep(100) .. "Z" },
  },
  datetime = {
    yes = { "2021-06-22T19:54:00Z", "2024-02-29t00:00:00.123456-08:00", "1990-12-31T23:59:60Z" },
    no = { "", "2021-06-22", "2021-06-22 19:54:00Z", "2021-06-22T19:54:00", "2021-02-30T19:54:00Z", "2021-06-22TT9:54:00Z" },
  },
  ipv4 = {
    yes = { "0.0.0.0", "127.0.0.1", "255.255.255.255" },
    no = { "", "127.0.0", "127.0.0.1.1", "256.0.0.1", "01.0.0.1", "1.2.3.", ".1.2.3", "1..2.3", "1.2.3.4 ", "0x7f.0.0.1", "::1" },
  },
  ipv6 = {
    yes = { "::", "::1", "1::", "2001:db8::1", "1:2:3:4:5:6:7:8", "::ffff:192.0.2.1", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "ABCD::" },
    no = { "", ":", ":::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::", "g::", "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "::1.2.3.4:5", "1.2.3.4::", "fe80::1%eth0", "1:2:3:4:5:6:7:1.2.3.4", ":1::2", "1::2:", "[::1]" },
  },
  ip = { yes = { "127.0.0.1", "::1" }, no = { "", "localhost", "1.2.3" } },
  cidr = {
    yes = { "10.0.0.0/8", "0.0.0.0/0", "192.0.2.1/32", "2001:db8::/32", "::/0", "::1/128" },
    no = { "", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "::/129", "10.0.0.0/8/8", "/8", "10.0.0/8", "10.0.0.0/-1" },
  },
  host = {
    yes = { "localhost", "example.com", "a-b.c", "x1", "1.2.3.4", label63 .. ".example" },
    no = { "", ".", "a.", ".a", "a..b", "-a", "a-", "a_b", "a b", label63 .. "a", ("abcdefg."):rep(32) .. "x", "ex\195\164mple", "::1", "example.com:80" },
  },
  slug = { yes = { "a", "news-2024", "0" }, no = { "", "A", "a_b", "a b", "\195\164", "a\n" } },
  hex = { yes = { "0", "deadBEEF" }, no = { "", "0x1", "g", "a b" } },
  base64 = {
    yes = { "", "aGk=", "aA==", "aGVsbG8h", "+/+/" },
    no = { "aGk", "aGk==", "a===", "====", "aG k", "aGk-", "aA=a", "=aGk", "aGk=aGk=" },
  },
}

describe("formats", function()
  for name, cases in pairs(CASES) do
    it("knows " .. name, function()
      for _, text in ipairs(cases.yes) do assert.is_true(formats[name](text), ("%q is one"):format(text)) end
      for _, text in ipairs(cases.no) do assert.is_false(formats[name](text), ("%q is none"):format(text)) end
    end)
  end

  it("answer at once on a hostile text of 100,000 bytes", function()
    local HOSTILE = { "a", ".", "a.", ":", "%41", "@", "-", "=", "0" }
    for name in pairs(CASES) do
      for _, piece in ipairs(HOSTILE) do
        local before = os.clock()
        formats[name](piece:rep(100000))
        assert.is_true(os.clock() - before < 0.5, name .. " on many " .. piece)
      end
    end
  end)
end)
