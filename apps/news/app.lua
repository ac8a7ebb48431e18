--- News: articles as a JSON API under /news, and as pages to read at /.
local srv = require "srv"
local news = require "routes.news.services"

-- What the app shows until it is given more. Importing it again changes nothing.
local SEED = "nasa-news.rss"

local app = srv.app { timeout = "10s" }

app:mount("/news", require "routes.news")
app:mount("/", require "routes.pages")
app:static("/", "public")

app:hook("start", function()
  local result, err = news.import(SEED)
  if not result then return srv.log.error("seed not imported", { source = SEED, err = err }) end
  if result.added > 0 then srv.log.info("seed imported", { source = SEED, added = result.added }) end
end, { once = true })

return app
