--- db:rows of PostgreSQL: a cursor on the server, a hundred rows at a time, in the transaction that
--- it stands in or in one of its own.
local core = require "srv.core.pg"

local ROWS = 100

---@class srv.db.PostgresCursor
---@field private db table?      nil: no more rows
---@field private lease table?
---@field private own boolean    the lease is the cursor's
---@field private name string
local Cursor = {}
Cursor.__index = Cursor

-- How many cursors a transaction has seen: names are never used twice in it.
local counts = setmetatable({}, { __mode = "k" })

local function name_in(lease)
  counts[lease] = (counts[lease] or 0) + 1
  return "srv_c" .. counts[lease]
end

--- Whatever comes: no more rows from here on.
local function finish(self, timeout, failed)
  local lease, own = self.lease, self.own
  self.db, self.lease = nil, nil
  if own and failed then
    lease:close()
  elseif own then
    return lease:commit(timeout)
  elseif not failed then
    return lease:command("close " .. self.name, timeout)
  end
  return true
end

function Cursor:fetch(timeout)
  if not self.lease or not self.lease:is_open() then return core.refused, "the transaction has ended" end
  local rows, err = self.db:query(self.lease, timeout, ("fetch %d from %s"):format(ROWS, self.name))
  if not rows then
    finish(self, timeout, true)
    return nil, err
  end
  if #rows == ROWS then return rows, false end
  local ok
  ok, err = finish(self, timeout, false)
  if not ok then return nil, err end
  return rows, true
end

--- What is no query (INSERT ... RETURNING) runs whole: no cursor can be declared for it.
local function run_whole(db, lease, timeout, sql, ...)
  local rows, err = db:query(lease, timeout, sql, ...)
  if not rows or rows == core.refused then return rows, err end
  return rows, true
end

local function take_lease(self, db, lease, timeout)
  self.own = lease == nil
  self.lease = lease or core.lease()
  if lease then return true end
  return self.lease:begin(db, "write", timeout)
end

function Cursor:open(db, lease, timeout, sql, ...)
  if type(sql) ~= "string" or not core.reads(sql) then return run_whole(db, lease, timeout, sql, ...) end
  local ok, err = take_lease(self, db, lease, timeout)
  if not ok or ok == core.refused then return ok, err end
  self.db, self.name = db, name_in(self.lease)
  ok, err = db:exec(self.lease, timeout, ("declare %s no scroll cursor for %s"):format(self.name, sql), ...)
  if not ok or ok == core.refused then
    finish(self, timeout, true)
    return ok, err
  end
  return self:fetch(timeout)
end

function Cursor:close()
  if self.lease then finish(self, 0, true) end
end

return { new = function() return setmetatable({}, Cursor) end }
