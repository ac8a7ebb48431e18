local srv = require "srv"
local news = require "routes.news.services"
local M = {}
function M.list(req) return news.list(req.valid.query) end
function M.update(req) return news.update(req.params.id, req.valid.body) end   -- a row, or nil, err: 404, 409, 503
function M.show(req)
  local item, related = assert(srv.all({ news.find, req.params.id }, { news.related, req.params.id }))
  return { item = item, related = related }
end
function M.create(req)
  local item = assert(news.create(req.valid.body))
  return item, 201, { Location = "/news/" .. item.id }
end
return M
