--- The API's answers. What the database says of a fault (404, 409, 503) is passed on as it is.
local news = require "routes.news.services"
local paging = require "routes.news.paging"

local M = {}

function M.list(req, res)
  local query = req.valid.query
  local page = assert(paging.page(query))
  if page.pages > 1 then res:links(paging.neighbours(page, "/news", query)) end
  return page
end

--- JSON for programs, a page for browsers, under one URL.
function M.show(req, res)
  local article = assert(news.find(req.params.id))
  if res:negotiate("json", "html") == "html" then return res:render("article", { article = article }) end
  return article
end

function M.create(req)
  local article = assert(news.create(req.valid.body))
  return article, 201, { Location = "/news/" .. article.id }
end

function M.replace(req) return news.replace(req.params.id, req.valid.body) end

function M.update(req) return news.update(req.params.id, req.valid.body) end

function M.remove(req)
  assert(news.remove(req.params.id))
  return nil, 204
end

function M.import(req) return news.import(req.valid.body.source) end

return M
