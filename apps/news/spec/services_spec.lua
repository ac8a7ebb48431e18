local srv = require "srv"
local news

describe("the articles", function()
  local undo

  setup(function()
    undo = srv.test.env { DATABASE_URL = srv.test.db().url }
    news = require "routes.news.services"
  end)

  teardown(function() if undo then undo() end end)

  local function clear()
    repeat
      local rows = assert(news.list {})
      for _, row in ipairs(rows) do assert(news.remove(row.id)) end
    until #rows == 0
  end

  before_each(clear)

  local function create(fields)
    local row = { title = "A title", url = "https://news.example/" .. (fields.url or "a"), tag = fields.tag }
    for name, value in pairs(fields) do if name ~= "url" then row[name] = value end end
    return assert(news.create(row))
  end

  it("are created with a tag, a guid and a date", function()
    local row = create { title = "Hello" }
    assert.equal("Hello", row.title)
    assert.equal("news", row.tag)
    assert.equal(row.url, row.guid)
    assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%dZ$", row.published_at)
    assert.same(row, news.find(row.id))
  end)

  it("are there once for each URL", function()
    create {}
    local row, err = news.create { title = "Another", url = "https://news.example/a" }
    assert.is_nil(row)
    assert.equal("unique", err.code)
    assert.equal(409, err.status)
  end)

  it("are replaced, updated and removed", function()
    local row = create { summary = "old", published_at = "2021-06-22T19:54:00Z" }
    local new = assert(news.replace(row.id, { title = "New", url = row.url, tag = "space" }))
    assert.same({ "New", "space", nil, "2021-06-22T19:54:00Z" }, { new.title, new.tag, new.summary, new.published_at })
    assert.equal("Newer", assert(news.update(row.id, { title = "Newer" })).title)
    assert.is_true(news.remove(row.id))
    for _, missing in ipairs { { news.find(row.id) }, { news.update(row.id, { title = "x" }) }, { news.replace(row.id, new) }, { news.remove(row.id) } } do
      assert.is_nil(missing[1])
      assert.equal(404, missing[2].status)
      assert.equal("No documents found", missing[2].message)
    end
  end)

  it("come in pages, the newest first", function()
    for i = 1, 25 do create { url = "p" .. i, title = "Article " .. i, published_at = ("2021-06-%02dT00:00:00Z"):format(i) } end
    local rows, total = news.list { page = 1 }
    assert.equal(25, total)
    assert.equal(20, #rows)
    assert.equal("Article 25", rows[1].title)
    rows, total = news.list { page = 2 }
    assert.equal(25, total)
    assert.equal(5, #rows)
    assert.equal("Article 1", rows[5].title)
    assert.same({}, (news.list { page = 3 }))
  end)

  it("are found by tag and by words, accents or none", function()
    create { url = "1", tag = "space", title = "La misión Equity", summary = "políticas de la agencia" }
    create { url = "2", tag = "space", title = "Third Spacewalk" }
    create { url = "3", tag = "earth", title = "Cyclone mission" }
    local function titles(query)
      local rows, total = news.list(query)
      assert.equal(#rows, total)
      local found = {}
      for i, row in ipairs(rows) do found[i] = row.title end
      table.sort(found)
      return table.concat(found, ", ")
    end
    assert.equal("La misión Equity, Third Spacewalk", titles { tag = "space" })
    assert.equal("La misión Equity", titles { q = "mision" })
    assert.equal("Cyclone mission, La misión Equity", titles { q = "mis" })
    assert.equal("La misión Equity", titles { q = "equity POLITICAS" })
    assert.equal("", titles { q = "equity cyclone" })
    assert.equal("Cyclone mission", titles { q = "mis", tag = "earth" })
    for _, odd in ipairs { '"', "'", "*", "a AND", "NEAR(", "title:x", "-", "", "(((", "'; drop table articles; --" } do
      assert(news.list { q = odd })
    end
    local row = assert(news.list { q = "cyclone" })[1]
    assert(news.update(row.id, { title = "Storm" }))
    assert.equal("", titles { q = "cyclone" })
    assert.equal("Storm", titles { q = "storm" })
    assert(news.remove(row.id))
    assert.equal("", titles { q = "storm" })
  end)

  it("are taken in from a feed once, in whatever shape it comes", function()
    assert.same({ added = 8, seen = 8 }, news.import "nasa-news.json")
    assert.same({ added = 0, seen = 8 }, news.import "nasa-news.json")
    assert.same({ added = 0, seen = 8 }, news.import "nasa-news.rss")
    local from_json = assert(news.list {})
    clear()
    assert.same({ added = 8, seen = 8 }, news.import "nasa-news.rss")
    local from_rss = assert(news.list {})
    for i, row in ipairs(from_json) do
      row.id, from_rss[i].id = nil, nil
      assert.same(row, from_rss[i])
    end
    assert.same({ { tag = "nasa-breaking-news", articles = 8 } }, (function(rows) return { { tag = rows[1].tag, articles = rows[1].articles } } end)(assert(news.tags())))
  end)

  it("are not taken in from what is no feed of ours", function()
    for _, source in ipairs { "nothing.json", "../app.lua", "../data/nasa-news.json", "app.lua", "", "/etc/passwd" } do
      local result, err = news.import(source)
      assert.is_nil(result)
      assert.equal(404, err.status)
    end
  end)
end)
