--- What the app does with articles, without HTTP: rows, or nil and an error whose status fits.
local srv = require "srv"
local feeds = require "feeds"
local remote = require "feeds.remote"

-- A statement here takes some microseconds: a burst of readers is better served late than turned away.
local db = srv.db("sqlite:news.db", { queue = 1000 })

local M = {}

M.PAGE_ROWS = 20

local QUERY_WORDS_MAX = 16

local function found(row, err)
  if err and err.code == "no_row" then err = srv.error.new(404, "No documents found", { code = "no_row", cause = err }) end
  return row, err
end

-- The two databases search each in its own way: how a word is quoted (in quotes nothing is an operator), what
-- stands between words that must all be there and behind one that may be only begun, and the SQL.
local SEARCHES = {
  sqlite = {
    word = '"%s"', both = " ", begun = "*", order = "rank",
    sql = [[from articles join articles_search on articles_search.rowid = articles.id
      where articles_search match $2 and (cast($1 as text) is null or tag = $1)]],
  },
  postgres = {
    word = "'%s'", both = " & ", begun = ":*", order = "ts_rank(articles_words(title, summary), search) desc",
    sql = [[from articles, to_tsquery('simple', articles_plain($2)) as search
      where articles_words(title, summary) @@ search and (cast($1 as text) is null or tag = $1)]],
  },
}
local search = SEARCHES[db.dialect]

--- What a person types as a query: every word must be there, the last one may be only begun. nil: there
--- is no word in it.
local function match_of(text)
  local words = {}
  for word in (text or ""):gmatch("[%w\128-\255]+") do
    if #words < QUERY_WORDS_MAX then words[#words + 1] = search.word:format(word) end
  end
  if #words == 0 then return nil end
  return table.concat(words, search.both) .. search.begun
end

local LIST = [[from articles where cast($1 as text) is null or tag = $1]]

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
    total, err = db:value("select count(*) " .. search.sql, q.tag, match)
    if not total then return nil, err end
    rows, err = db:query(COLUMNS .. search.sql .. " order by " .. search.order .. ", articles.id desc limit $3 offset $4",
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

--- Takes in what is new: all of it, or nothing if something goes wrong. An article that is there
--- already, by guid or URL, stays as it is.
local function take_in(items)
  return db:tx(function(tx)
    local added = 0
    for _, item in ipairs(items) do
      local changed, fault = tx:exec([[insert into articles (guid, url, title, summary, image, tag, published_at)
        values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing]],
        item.guid, item.url, item.title, item.summary, item.image, item.tag or "news",
        item.published_at or os.date "!%Y-%m-%dT%H:%M:%SZ")
      if not changed then return nil, fault end
      added = added + changed
    end
    return { added = added, seen = #items }
  end)
end

--- A feed that lies in `data`: "nasa-news.rss".
---@param source string
---@return { added: integer, seen: integer }?
---@return srv.Error?
function M.import(source)
  local items, err = feeds.read(source)
  if not items then return nil, err end
  return take_in(items)
end

--- A feed of the web. Nothing is taken in that has not changed.
---@param url string
---@return { added: integer, seen: integer }?
---@return srv.Error?
function M.refresh(url)
  local items, keep = remote.read(url)
  if items == nil then return nil, keep end
  if not items then return { added = 0, seen = 0 } end
  local result, err = take_in(items)
  if not result then return nil, err end
  keep()
  return result
end

return M
