--- One article of a feed, made fit for the table: what every format has in common.
local srv = require "srv"

local item = {}

local TITLE_CHARS_MAX = 200
local SUMMARY_CHARS_MAX = 2000

--- Doubled spaces, line breaks and the like become one space.
local function tidy(text)
  if type(text) ~= "string" then return nil end
  text = text:gsub("%s+", " "):gsub("^ ", ""):gsub(" $", "")
  return text ~= "" and text or nil
end

--- Not in the middle of a character: a byte 0x80-0xBF goes on with the one before.
local function cut(text, chars_max)
  local chars, at = 0, 1
  while at <= #text do
    if chars == chars_max then return text:sub(1, at - 1) end
    chars = chars + 1
    at = text:find("[%z\1-\127\192-\255]", at + 1) or #text + 1
  end
  return text
end

local function web_url(url)
  url = tidy(url)
  return url and url:find("^https?://[^%s/]") and url or nil
end

--- "NASA Breaking News" -> "nasa-breaking-news"
local function slug(text)
  text = tidy(text)
  if not text then return nil end
  local word = text:lower():gsub("[^%w]+", "-"):gsub("^%-", ""):gsub("%-$", "")
  return word ~= "" and word:sub(1, 60) or nil
end

--- "Tue, 22 Jun 2021 15:54 EDT" -> "2021-06-22T19:54:00Z"
local function iso(date)
  local moment = type(date) == "string" and srv.time.parse(date)
  return moment and srv.time.iso(moment) or nil
end

---@class news.Item
---@field guid string
---@field url string
---@field title string
---@field summary string?
---@field image string?
---@field tag string?
---@field published_at string?

--- nil for what is no article: without a title or an address.
---@param raw table  guid url title summary image tag published_at, each a string or nil
---@return news.Item?
function item.make(raw)
  local url, title = web_url(raw.url), tidy(raw.title)
  if not url or not title then return nil end
  local summary = tidy(raw.summary)
  return {
    guid = tidy(raw.guid) or url,
    url = url,
    title = cut(title, TITLE_CHARS_MAX),
    summary = summary and cut(summary, SUMMARY_CHARS_MAX),
    image = web_url(raw.image),
    tag = slug(raw.tag),
    published_at = iso(raw.published_at),
  }
end

return item
