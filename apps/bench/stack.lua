--- What bench/run stack asks for: the stack of a typical API. bench/peers/stack_*.js are the same app
--- in Express and in Fastify.
local srv = require "srv"

local app = srv.app()

app:use(srv.helmet())
app:use(srv.cors())
app:use(srv.compress())

local article = {
  title = "string 1..200",
  slug = "slug ..80",
  url = "url",
  email = "email",
  pages = "integer 1..10000",
  draft = "boolean",
  state = "draft|published|archived",
  tags = "slug[] ..8",
  author = { name = "string 1..80", role = "author|editor" },
  published = "date",
}

local stored = {
  title = "What a request costs", slug = "what-a-request-costs", url = "https://news.example/articles/cost",
  email = "ann@example.com", pages = 12, draft = false, state = "published", tags = { "http", "lua", "servers" },
  author = { name = "Ann Example", role = "editor" }, published = "2026-11-30",
}

local function with_id(fields, id)
  return {
    id = id, title = fields.title, slug = fields.slug, url = fields.url, email = fields.email, pages = fields.pages,
    draft = fields.draft, state = fields.state, tags = fields.tags, author = fields.author, published = fields.published,
  }
end

app:get("/", function() return "hello" end)

app:get("/articles/:id<int>", {
  params = { id = "integer 1.." },
  query = { page = "integer 1..1000 = 1", sort = "newest|title = newest" },
}, function(req) return with_id(stored, req.valid.params.id) end)

app:post("/articles", { body = article }, function(req) return with_id(req.valid.body, 1234), 201 end)

return app
