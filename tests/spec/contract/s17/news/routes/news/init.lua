local srv = require "srv"
local news = require "routes.news.controllers"
local router = srv.router()
local article = srv.schema({ title = "string 1..200 trim", url = "url", tag = "slug = news" }, { name = "Article" })
router:get("/", { query = { page = "integer>=1 = 1", tag = "slug?" } }, news.list)
router:get("/:id<int>", news.show)
router:post("/", { body = article }, news.create)
router:patch("/:id<int>", { body = srv.schema(article, { partial = true, min = 1 }) }, news.update)
return router
