--- What is done with items: rows, or nil and an error. No HTTP here.
local srv = require "srv"

-- DATABASE_URL, where it is set, comes before this file of ours: sqlite:... or postgres://...
local db = srv.db "sqlite:@NAME@.db"

local M = {}

local COLUMNS = "id, title, done, created_at"

local function found(row, err)
  if err and err.code == "no_row" then return nil, srv.error.new(404, "there is no such item", { code = "no_item" }) end
  if row then row.done = row.done == true or row.done == 1 end
  return row, err
end

---@param query { limit: integer, done: boolean? }
function M.list(query)
  local rows, err = db:query("select " .. COLUMNS .. [[ from items
    where cast($1 as integer) is null or done = $1 order by id desc limit $2]],
    query.done ~= nil and (query.done and 1 or 0) or nil, query.limit)
  if not rows then return nil, err end
  for _, row in ipairs(rows) do found(row) end
  return rows
end

function M.find(id) return found(db:one("select " .. COLUMNS .. " from items where id = $1", id)) end

---@param item { title: string, done: boolean }
function M.create(item)
  return found(db:insert("items", { title = item.title, done = item.done and 1 or 0 }, COLUMNS))
end

---@param changes { title: string?, done: boolean? }
function M.update(id, changes)
  local done = changes.done ~= nil and (changes.done and 1 or 0) or nil
  return found(db:one([[update items set title = coalesce($2, title), done = coalesce($3, done)
    where id = $1 returning ]] .. COLUMNS, id, changes.title, done))
end

function M.remove(id) return found(db:one("delete from items where id = $1 returning " .. COLUMNS, id)) end

return M
