--- Answers of /items. assert() passes an error of the services on as the answer that it stands for: 404, 409, 503.
local items = require "routes.items.services"

local M = {}

function M.list(req) return assert(items.list(req.valid.query)) end

function M.show(req) return assert(items.find(req.params.id)) end

function M.create(req)
  local item = assert(items.create(req.valid.body))
  return item, 201, { Location = "/items/" .. item.id }
end

function M.update(req) return assert(items.update(req.params.id, req.valid.body)) end

function M.remove(req)
  assert(items.remove(req.params.id))
  return nil, 204
end

return M
