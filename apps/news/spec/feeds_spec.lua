local item = require "feeds.item"
local rss = require "feeds.rss"
local json = require "feeds.json"

describe("dates of feeds", function()
  local function published_at(text)
    return item.make({ url = "https://news.example", title = "x", published_at = text }).published_at
  end

  it("are read with zone names, offsets and without seconds", function()
    local cases = {
      ["Tue, 22 Jun 2021 15:54 EDT"] = "2021-06-22T19:54:00Z",
      ["22 Jun 21 15:54:07 GMT"] = "2021-06-22T15:54:07Z",
      ["Tue, 22 Jun 2021 15:54:07 +0200"] = "2021-06-22T13:54:07Z",
      ["2021-06-22T15:54:00-04:00"] = "2021-06-22T19:54:00Z",
      ["2021-06-22T15:54:00.123Z"] = "2021-06-22T15:54:00Z",
      ["31 Dec 1999 23:30 PST"] = "2000-01-01T07:30:00Z",
    }
    for text, iso in pairs(cases) do assert.equal(iso, published_at(text)) end
  end)

  it("are none when they are not real", function()
    for _, text in ipairs { "", "yesterday", "Tue, 32 Jun 2021 15:54 EDT", "2021-02-29T00:00:00Z", "Tue, 22 Jun 2021 15:54 XYZ", "22 Foo 2021 15:54 GMT" } do
      assert.is_nil(published_at(text))
    end
  end)
end)

describe("RSS", function()
  local function feed(items) return "<rss version='2.0'><channel><title>A Feed</title>" .. items .. "</channel></rss>" end

  it("gives articles whose texts are tidy", function()
    local items = assert(rss.read(feed [==[<item>
      <title>Tom  &amp;
        <![CDATA[<Jerry>]]></title>
      <link>https://news.example/?a=1&amp;b=2</link>
      <description>&lt;p&gt;Fish &amp;amp; chips&lt;/p&gt;</description>
      <dc:identifier xmlns:dc='x'>471974</dc:identifier>
      <pubDate>Tue, 22 Jun 2021 15:54 EDT</pubDate>
    </item>]==]))
    assert.same({ {
      guid = "https://news.example/?a=1&b=2", url = "https://news.example/?a=1&b=2", title = "Tom & <Jerry>",
      summary = "Fish & chips", tag = "a-feed", published_at = "2021-06-22T19:54:00Z",
    } }, items)
  end)

  it("passes over what has no title or no address for the web", function()
    assert.same({}, rss.read(feed "<item/><item><title>x</title></item><item><title>x</title><link>javascript:alert(1)</link></item>"))
  end)

  it("refuses what is broken, and document types", function()
    assert.matches("no RSS", select(2, rss.read "<rss><channel></rss>"))
    assert.matches("no RSS", select(2, rss.read "not XML"))
    assert.matches("no RSS", select(2, rss.read '<!DOCTYPE rss [<!ENTITY a "aaaa">]><rss><channel><title>&a;</title></channel></rss>'))
  end)
end)

describe("the JSON API", function()
  it("is refused when it says so itself, or is none", function()
    assert.matches("no answer of the news API", select(2, json.read '{"status":"error"}'))
    assert.matches("no JSON", select(2, json.read "<html>"))
  end)
end)
