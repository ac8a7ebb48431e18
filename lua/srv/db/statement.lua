--- Texts of insert, update and delete. Names are quoted and values are placeholders: nothing of a row
--- gets into the text, whoever sent it.
local json = require "srv.core.json"
local misuse = require "srv.core.task".misuse

local statement = {}

local NULL = json.null
local NAME_BYTES_MAX = 128

local function check_name(where, what, name)
  if type(name) ~= "string" or name == "" or #name > NAME_BYTES_MAX or name:find("%z") then
    misuse(("%s: %s must be a name, not %s"):format(where, what, tostring(name)))
  end
end

local function quote(name) return '"' .. name:gsub('"', '""') .. '"' end

--- "main.articles" is a name in a schema.
local function quote_table(where, name)
  check_name(where, "the table", name)
  local parts = {}
  for part in (name .. "."):gmatch("(.-)%.") do parts[#parts + 1] = quote(part) end
  return table.concat(parts, ".")
end

--- The columns in byte order: equal rows give equal texts, which are prepared once.
local function columns_of(where, what, row)
  if type(row) ~= "table" then
    misuse(("%s: %s must be a table of columns, not %s"):format(where, what, tostring(row)))
  end
  local columns = {}
  for name in pairs(row) do
    check_name(where, "a column", name)
    columns[#columns + 1] = name
  end
  table.sort(columns)
  return columns
end

local function returning_clause(where, returning)
  if returning == nil then return "" end
  if returning == "*" then return " returning *" end
  local names = {}
  for name in tostring(returning):gmatch("[^,]+") do
    local bare = name:match("^%s*([%a_][%w_]*)%s*$")
    if not bare then
      misuse(('%s: "returning" must be "*" or names of columns, not %q'):format(where, returning))
    end
    names[#names + 1] = quote(bare)
  end
  if #names == 0 then misuse(where .. ': "returning" names no column') end
  return " returning " .. table.concat(names, ", ")
end

---@param t string
---@param row table<string, any>  missing columns take their default
---@param returning string?
---@return string sql
---@return any[] values
---@return integer count
function statement.insert(t, row, returning)
  local where = "db:insert"
  local into, columns = quote_table(where, t), columns_of(where, "the row", row)
  local tail = returning_clause(where, returning)
  if #columns == 0 then return ("insert into %s default values%s"):format(into, tail), {}, 0 end
  local names, places, values = {}, {}, {}
  for i, name in ipairs(columns) do
    names[i], places[i], values[i] = quote(name), "$" .. i, row[name]
  end
  return ("insert into %s (%s) values (%s)%s"):format(into, table.concat(names, ", "),
    table.concat(places, ", "), tail), values, #columns
end

--- `"id" = $3 and "deleted_at" is null`; its values follow those that are there.
local function where_clause(where, match, columns, values, count)
  if #columns == 0 then misuse(where .. ": an empty match would take every row; write that as SQL") end
  local tests = {}
  for i, name in ipairs(columns) do
    if match[name] == NULL then
      tests[i] = quote(name) .. " is null"
    else
      count = count + 1
      values[count] = match[name]
      tests[i] = ("%s = $%d"):format(quote(name), count)
    end
  end
  return table.concat(tests, " and "), count
end

---@param t string
---@param match table<string, any>
---@param row table<string, any>  columns to set
---@param returning string?
---@return string sql
---@return any[] values
---@return integer count
function statement.update(t, match, row, returning)
  local where = "db:update"
  local target, columns = quote_table(where, t), columns_of(where, "the values", row)
  if #columns == 0 then misuse(where .. ": no column to set") end
  local sets, values = {}, {}
  for i, name in ipairs(columns) do
    sets[i], values[i] = ("%s = $%d"):format(quote(name), i), row[name]
  end
  local tests, count = where_clause(where, match, columns_of(where, "the match", match), values, #columns)
  return ("update %s set %s where %s%s"):format(target, table.concat(sets, ", "), tests,
    returning_clause(where, returning)), values, count
end

---@param t string
---@param match table<string, any>
---@param returning string?
---@return string sql
---@return any[] values
---@return integer count
function statement.delete(t, match, returning)
  local where, values = "db:delete", {}
  local target = quote_table(where, t)
  local tests, count = where_clause(where, match, columns_of(where, "the match", match), values, 0)
  return ("delete from %s where %s%s"):format(target, tests, returning_clause(where, returning)), values, count
end

return statement
