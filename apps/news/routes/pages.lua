--- Pages for people: the front page. An article's page has the address of the article (/news/7).
local srv = require "srv"
local news = require "routes.news.services"
local paging = require "routes.news.paging"

-- Every front page shows the tags, and counting them means to read all articles: it need not be done
-- for each.
local TAGS_KEPT = "2s"

local router = srv.router()

local search = {
  page = "integer 1..100000 = 1",
  tag = "slug?",
  q = "string? ..200 trim",
}

router:get("/", { query = search }, function(req, res)
  local query = req.valid.query
  if query.q == "" then query.q = nil end -- the search form was sent empty
  local page = assert(paging.page(query))
  return res:render("index", {
    articles = page.articles, page = page.page, pages = page.pages, total = page.total,
    tag = query.tag or false, q = query.q or false,
    tags = assert(srv.cache:get_or_compute("news:tags", TAGS_KEPT, news.tags)),
    links = paging.neighbours(page, "/", query),
  })
end)

return router
