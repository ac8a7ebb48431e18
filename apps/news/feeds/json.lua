--- The JSON API's answer: { status = "ok", articles = { ... } }.
local srv = require "srv"
local item = require "feeds.item"

local json = {}

local ITEMS_MAX = 1000

--- `id` is the API's own number and not the guid that the RSS feed of the same source gives: there it
--- is the address, and an article must not come twice by coming in two shapes.
local function article(raw)
  if type(raw) ~= "table" then return nil end
  return item.make {
    guid = raw.guid, url = raw.url, title = raw.title, summary = raw.summary,
    image = raw.image, tag = raw.source, published_at = raw.publishedAt,
  }
end

---@param text string
---@return news.Item[]? items  at most 1,000
---@return string? why
function json.read(text)
  local answer, err = srv.json.decode(text)
  if err then return nil, "no JSON: " .. err.message end
  if type(answer) ~= "table" or answer.status ~= "ok" or type(answer.articles) ~= "table" then
    return nil, 'no answer of the news API: "status" is not "ok" or "articles" is missing'
  end
  local items = {}
  for i = 1, math.min(#answer.articles, ITEMS_MAX) do items[#items + 1] = article(answer.articles[i]) end
  return items
end

return json
