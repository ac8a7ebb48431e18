local srv = require "srv"

describe("the news API", function()
  local t, undo

  setup(function()
    undo = srv.test.env { DATABASE_URL = srv.test.db().url }
    t = srv.test(require "app")
  end)

  teardown(function() if undo then undo() end end)

  local function create(fields)
    local article = { title = "A title", url = "https://news.example/" .. tostring(fields.url or math.random(1e9)) }
    for name, value in pairs(fields) do if name ~= "url" then article[name] = value end end
    return t:post("/news", { json = article }):expect(201):json()
  end

  it("lists the seed, the newest first", function()
    local page = t:get("/news"):expect(200):expect("content-type", "^application/json"):json()
    assert.equal(8, page.total)
    assert.equal(1, page.page)
    assert.equal(1, page.pages)
    assert.equal("NASA Extends Cyclone Global Navigation Satellite System Mission", page.articles[1].title)
    for i = 2, #page.articles do
      assert.is_true(page.articles[i - 1].published_at >= page.articles[i].published_at)
    end
  end)

  it("searches words of title and summary, the last one only begun", function()
    assert.equal(2, t:get("/news", { query = { q = "equity" } }):json().total)
    assert.equal(1, t:get("/news", { query = { q = "northrop cygn" } }):json().total)
    t:get("/news", { query = { q = '"; drop table articles' } }):expect(200):expect { total = 0 }
  end)

  it("filters by tag", function()
    create { title = "Tagged", tag = "moon" }
    t:get("/news", { query = { tag = "moon" } }):expect(200):expect { total = 1, articles = { { title = "Tagged" } } }
    t:get("/news", { query = { tag = "none" } }):expect(200):expect { total = 0 }
  end)

  it("goes from page to page by links", function()
    for i = 1, 41 do create { title = "Page " .. i, tag = "paging" } end
    local first = t:get("/news?tag=paging"):expect { page = 1, pages = 3, total = 41 }
    assert.matches('</news?page=2&tag=paging>; rel="next"', first.headers.link, 1, true)
    assert.is_nil(first.headers.link:find("prev", 1, true))
    local last = t:get("/news?tag=paging&page=3")
    assert.equal(1, #last:json().articles)
    assert.matches('</news?page=2&tag=paging>; rel="prev"', last.headers.link, 1, true)
    assert.equal("[]", t:get("/news?tag=paging&page=9").body:match('"articles":(%[%])'))
  end)

  it("refuses a query that it cannot mean", function()
    t:get("/news?page=0"):expect(400):expect { code = "invalid", errors = { { ["in"] = "query", path = "/page", code = "too_small" } } }
    t:get("/news?page=x&tag=A%20B"):expect(400):expect { errors = { { path = "/page", code = "type" }, { path = "/tag", code = "format" } } }
  end)

  it("creates an article and says where it is", function()
    local answer = t:post("/news", { json = { title = "  Hello ", url = "https://news.example/hello" } }):expect(201)
    local article = answer:json()
    assert.equal("Hello", article.title)
    assert.equal("news", article.tag)
    assert.equal("/news/" .. article.id, answer.headers.location)
    t:get(answer.headers.location):expect(200):expect { id = article.id, title = "Hello" }
  end)

  it("tells all that is wrong with an article at once, each with its path", function()
    t:post("/news", { json = { title = "", url = "x", tag = "A", titel = "y" } }):expect(400):expect {
      status = 400, code = "invalid",
      errors = {
        { ["in"] = "body", path = "/title", code = "too_short", message = "must have at least 1 character" },
        { ["in"] = "body", path = "/url", code = "format", message = "must be an http or https URL" },
        { ["in"] = "body", path = "/tag", code = "format" },
        { ["in"] = "body", path = "/titel", code = "unknown" },
      },
    }
    t:post("/news", { json = srv.json.object {} }):expect(400):expect { errors = { { path = "/title", code = "required" }, { path = "/url", code = "required" } } }
    t:post("/news"):expect(400):expect { errors = { { path = "", code = "required" } } }
    t:post("/news", { json = {} }):expect(400):expect { errors = { { path = "", code = "type", message = "must be an object" } } }
    t:post("/news", { body = "{", headers = { ["Content-Type"] = "application/json" } }):expect(400):expect { code = "bad_json" }
    t:post("/news", { body = "<a/>", headers = { ["Content-Type"] = "application/xml" } }):expect(415)
  end)

  it("refuses the same address twice", function()
    create { url = "twice" }
    t:post("/news", { json = { title = "x", url = "https://news.example/twice" } }):expect(409)
  end)

  it("replaces an article: what is not sent is cleared", function()
    local article = create { url = "put", summary = "old", tag = "old" }
    t:put("/news/" .. article.id, { json = { title = "New", url = article.url } }):expect(200)
      :expect(function(r) return r:json().title == "New" and r:json().summary == nil and r:json().tag == "news" end)
  end)

  it("changes an article: what is not sent stays, null clears", function()
    local article = create { summary = "old", tag = "kept" }
    t:patch("/news/" .. article.id, { json = { title = "New" } }):expect(200):expect { title = "New", summary = "old", tag = "kept" }
    t:patch("/news/" .. article.id, { json = { summary = srv.null } }):expect(200)
      :expect(function(r) return r:json().summary == nil end)
    t:patch("/news/" .. article.id, { json = srv.json.object {} }):expect(400):expect { errors = { { path = "", code = "too_short" } } }
    t:patch("/news/" .. article.id, { json = { title = srv.null } }):expect(400)
  end)

  it("removes an article", function()
    local article = create {}
    t:delete("/news/" .. article.id):expect(204):expect("")
    t:get("/news/" .. article.id):expect(404)
  end)

  it("says which article is not there", function()
    for _, method in ipairs { "GET", "DELETE" } do
      t:request(method, "/news/999999"):expect(404):expect { detail = "No documents found" }
    end
    t:put("/news/999999", { json = { title = "x", url = "https://news.example/none" } }):expect(404)
    t:patch("/news/999999", { json = { title = "x" } }):expect(404)
    t:get("/news/abc"):expect(404)
  end)

  it("takes in a feed once, in either shape", function()
    t:post("/news/import", { json = { source = "nasa-news.rss" } }):expect(200):expect { added = 0, seen = 8 }
    t:post("/news/import", { json = { source = "nasa-news.json" } }):expect(200):expect { seen = 8 }
    t:post("/news/import", { json = { source = "../app.lua" } }):expect(404)
    t:post("/news/import", { json = { source = "none.rss" } }):expect(404)
  end)

  it("names the methods of a path", function()
    t:request("POST", "/news/1"):expect(405):expect("allow", "^.*PATCH")
    t:request("OPTIONS", "/news"):expect(204):expect("allow", "^.*POST")
  end)
end)
