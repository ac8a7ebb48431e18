--- The API: what each route takes.
local srv = require "srv"
local news = require "routes.news.controllers"

local router = srv.router()

local article = srv.schema({
  title = "string 1..200 trim -- shown as the headline",
  url = "url -- where the whole article stands",
  tag = "slug ..60 = news",
  summary = "string ..2000 trim|null?",
  image = "url|null?",
  published_at = "datetime? /%d+-%d+-%d+T%d+:%d+:%d+Z/ -- UTC; now, if it is not given",
}, { name = "Article", order = { "title", "url", "tag", "summary", "image", "published_at" } })

local changes = srv.schema(article, { partial = true, min = 1 })

local search = {
  page = "integer 1..100000 = 1",
  tag = "slug?",
  q = "string? ..200 trim -- words of title and summary; the last may be only begun",
}

router:get("/", { query = search }, news.list)
router:post("/", { body = article }, news.create)
router:post("/import", { body = { source = "string 1..100 -- a file of data/" } }, news.import)
router:get("/:id<int>", news.show)
router:put("/:id<int>", { body = article }, news.replace)
router:patch("/:id<int>", { body = changes }, news.update)
router:delete("/:id<int>", news.remove)

return router
