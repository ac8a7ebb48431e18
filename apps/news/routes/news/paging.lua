--- A page of a list: where it stands, and the way to its neighbours.
local news = require "routes.news.services"

local M = {}

---@class news.Page
---@field articles table[]
---@field page integer   from 1
---@field pages integer  at least 1
---@field total integer  articles on all pages

--- The page that QUERY asks for.
---@param query { page: integer, tag: string?, q: string? }
---@return news.Page?
---@return srv.Error?
function M.page(query)
  local rows, total = news.list(query)
  if not rows then return nil, total end
  return {
    articles = rows,
    page = query.page,
    pages = math.max(1, math.ceil(total / news.PAGE_ROWS)),
    total = total,
  }
end

local function encode(text)
  return (text:gsub("[^%w_.~-]", function(char) return ("%%%02X"):format(char:byte()) end))
end

local function address(path, query, page)
  local parts = { "page=" .. page }
  if query.tag then parts[#parts + 1] = "tag=" .. encode(query.tag) end
  if query.q then parts[#parts + 1] = "q=" .. encode(query.q) end
  return path .. "?" .. table.concat(parts, "&")
end

--- The addresses of the pages before and after, where there are any.
---@param page news.Page
---@param path string
---@param query table
---@return { prev?: string, next?: string }
function M.neighbours(page, path, query)
  return {
    prev = page.page > 1 and address(path, query, math.min(page.page - 1, page.pages)) or nil,
    next = page.page < page.pages and address(path, query, page.page + 1) or nil,
  }
end

return M
