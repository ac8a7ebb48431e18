local srv = require "srv"

describe("the pages", function()
  local t, undo

  setup(function()
    undo = srv.test.env { DATABASE_URL = srv.test.db().url }
    t = srv.test(require "app")
  end)

  teardown(function() if undo then undo() end end)

  local function has(text) return function(r) return r.body:find(text, 1, true) ~= nil, "the page lacks " .. text end end

  it("show the headlines", function()
    t:get("/"):expect(200):expect("content-type", "text/html; charset=utf-8")
      :expect(has "NASA Selects Engineering Services Contractor")
      :expect(has '<time datetime="2021-06-22T13:53:00Z">22 June 2021</time>')
      :expect(has "Northrop Grumman’s uncrewed Cygnus spacecraft")
  end)

  it("show what was looked for, escaped", function()
    t:get("/", { query = { q = '"><script>' } }):expect(200):expect(has "No documents found")
      :expect(has 'value="&quot;&gt;&lt;script&gt;"')
      :expect(function(r) return not r.body:find("<script", 1, true) end)
    t:get("/", { query = { q = "" } }):expect(200):expect(has "NASA Selects")
  end)

  it("show one article to browsers, its JSON to programs, under one address", function()
    local id = t:get("/news"):json().articles[1].id
    local page = t:get("/news/" .. id, { headers = { Accept = "text/html,application/xhtml+xml,*/*;q=0.8" } })
    page:expect(200):expect("content-type", "text/html; charset=utf-8"):expect("vary", "^.*Accept")
      :expect(has "<h1>NASA Extends Cyclone Global Navigation Satellite System Mission</h1>")
    t:get("/news/" .. id, { headers = { Accept = "application/json" } }):expect("content-type", "^application/json")
    t:get("/news/" .. id):expect("content-type", "^application/json")
  end)

  it("keep hostile articles harmless", function()
    local article = t:post("/news", { json = { title = "<b>\"x\"</b>", url = "https://news.example/?a=1&b='\"" } })
    article:expect(400) -- a quote is no part of a URL
    local id = t:post("/news", { json = { title = "<b>\"x\"</b>", url = "https://news.example/?a=1&b=2" } }):expect(201):json().id
    t:get("/news/" .. id, { headers = { Accept = "text/html" } }):expect(has "<h1>&lt;b&gt;&quot;x&quot;&lt;/b&gt;</h1>")
      :expect(has 'href="https://news.example/?a=1&amp;b=2"')
  end)

  it("come with their style", function()
    local href = t:get("/").body:match('href="(/style.css[^"]*)"')
    assert.matches("^/style.css%?v=[%w_-]+$", href)
    t:get(href):expect(200):expect("content-type", "^text/css")
  end)
end)
