--- News: articles as a JSON API under /news, and as pages to read at /.
local srv = require "srv"
local news = require "routes.news.services"

-- What the app shows until it is given more. Importing it again changes nothing.
local SEED = "nasa-news.rss"

-- A feed of the web to be followed: FEED_URL=https://... srv apps/news
local feed = srv.env("FEED_URL", "url?")
local every = srv.env("FEED_EVERY", "duration 1s.. = 10m")

local app = srv.app { timeout = "10s" }

app:mount("/news", require "routes.news")
app:mount("/", require "routes.pages")
app:static("/", "public")

app:hook("start", function()
  local result, err = news.import(SEED)
  if not result then return srv.log.error("seed not imported", { source = SEED, err = err }) end
  if result.added > 0 then srv.log.info("seed imported", { source = SEED, added = result.added }) end
end, { once = true })

-- While the feed is down, what was taken in before is served as ever.
if feed then
  app:every(every, { at_start = true, jitter = every / 10, timeout = "1m" }, function()
    local result, err = news.refresh(feed)
    if not result then return srv.log.warn("feed not refreshed", { feed = feed, err = err }) end
    if result.added > 0 then srv.log.info("feed refreshed", { feed = feed, added = result.added }) end
  end)
end

return app
