--- What the app does with articles, without HTTP: rows, or nil and an error whose status fits.
local srv = require "srv"
local feeds = require "feeds"

-- A statement here takes some microseconds: a burst of readers is better served late than turned away.
local db = srv.db("sqlite:news.db", { queue = 1000 })

local M = {}

M.PAGE_ROWS = 20

local QUERY_WORDS_MAX = 16

local function found(row, err)
  if err and err.code == "no_row" then err = srv.error.new(404, "No documents found", { code = "no_row", cause = err }) end
  return row, err
end

--- What a person types as a query of FTS5: every word must be there, the last one may be only begun. In
--- quotes nothing is an operator. nil: there is no word in it.
local function match_of(text)
  local words = {}
  for word in (text or ""):gmatch("[%w\128-\255]+") do
    if #words < QUERY_WORDS_MAX then words[#words + 1] = '"' .. word .. '"' end
  end
  if #words == 0 then return nil end
  return table.concat(words, " ") .. "*"
end

local LIST = [[from articles where cast($1 as text) is null or tag = $1]]
local SEARCH = [[from articles join articles_search on articles_search.rowid = articles.id
  where articles_search match $2 and (cast($1 as text) is null or tag = $1)]]

local COLUMNS = "select id, url, articles.title, articles.summary, image, tag, published_at "

--- A page of articles, the newest first, or the best match of `q`.
---@param q { page: integer?, tag: string?, q: string? }
---@return table[]? rows
---@return integer|srv.Error total
function M.list(q)
  local first = ((q.page or 1) - 1) * M.PAGE_ROWS
  local match = match_of(q.q)
  if q.q and not match then return {}, 0 end
  local total, rows, err
  if match then
    total, err = db:value("select count(*) " .. SEARCH, q.tag, match)
    if not total then return nil, err end
    rows, err = db:query(COLUMNS .. SEARCH .. " order by rank, articles.id desc limit $3 offset $4",
      q.tag, match, M.PAGE_ROWS, first)
  else
    total, err = db:value("select count(*) " .. LIST, q.tag)
    if not total then return nil, err end
    rows, err = db:query(COLUMNS .. LIST .. " order by published_at desc, id desc limit $2 offset $3",
      q.tag, M.PAGE_ROWS, first)
  end
  if not rows then return nil, err end
  return rows, total
end

--- Tags with the number of their articles, the most used first.
function M.tags()
  return db:query "select tag, count(*) as articles from articles group by tag order by articles desc, tag limit 50"
end

function M.find(id) return found(db:one("select * from articles where id = $1", id)) end

--- The same URL again: `unique`, 409. An article of our own has its URL for a guid.
function M.create(article)
  local row = {}
  for name, value in pairs(article) do row[name] = value end
  row.guid = row.guid or row.url
  return db:insert("articles", row, "*")
end

--- PUT: what is not sent is cleared, but for the date of its publication.
function M.replace(id, article)
  return found(db:update("articles", { id = id }, {
    url = article.url, title = article.title, tag = article.tag or "news",
    summary = article.summary or srv.null, image = article.image or srv.null,
    published_at = article.published_at,
  }, "*"))
end

--- PATCH: what is not sent stays.
function M.update(id, changes) return found(db:update("articles", { id = id }, changes, "*")) end

---@return true?
---@return srv.Error?
function M.remove(id)
  local row, err = found(db:delete("articles", { id = id }, "id"))
  if not row then return nil, err end
  return true
end

--- Takes in what is new in a feed: all of it, or nothing if something goes wrong. An article that is
--- there already, by guid or URL, stays as it is.
---@param source string  file in `data`: "nasa-news.rss"
---@return { added: integer, seen: integer }?
---@return srv.Error?
function M.import(source)
  local items, err = feeds.read(source)
  if not items then return nil, err end
  return db:tx(function(tx)
    local added = 0
    for _, item in ipairs(items) do
      local changed, fault = tx:exec([[insert into articles (guid, url, title, summary, image, tag, published_at)
        select $1, $2, $3, $4, $5, coalesce($6, 'news'), coalesce($7, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
        where not exists (select 1 from articles where guid = $1 or url = $2)]],
        item.guid, item.url, item.title, item.summary, item.image, item.tag, item.published_at)
      if not changed then return nil, fault end
      added = added + changed
    end
    return { added = added, seen = #items }
  end)
end

return M
