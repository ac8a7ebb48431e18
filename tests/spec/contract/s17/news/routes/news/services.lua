local srv = require "srv"
local db = srv.db "sqlite:news.db"
local api_url = srv.env("API_URL", "url = http://127.0.0.1:9000")
local api = srv.http.client { base = api_url, timeout = "800ms", expect = "2xx" }
local M = {}
local function found(row, err)
  if err and err.code == "no_row" then err = srv.error.new(404, "No documents found", { cause = err }) end
  return row, err
end
function M.list(q)
  return db:query([[select id, title, url, tag from articles where cast($1 as text) is null or tag = $1
    order by id desc limit 20 offset $2]], q.tag, (q.page - 1) * 20)
end
function M.find(id) return found(db:one("select * from articles where id = $1", id)) end
function M.create(article) return db:insert("articles", article, "*") end      -- the same URL again: unique, 409
function M.update(id, changes) return found(db:update("articles", { id = id }, changes, "*")) end
function M.related(id)                                                         -- without it the article is still shown
  local r, err = api.get("/related", { query = { id = id } })
  if not r then srv.log.warn("no related articles", { id = id, err = err }) end
  return r and r:json() or {}
end
return M
