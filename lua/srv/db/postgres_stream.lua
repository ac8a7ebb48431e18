--- What only PostgreSQL has: messages between its clients (LISTEN, NOTIFY), and COPY both ways.
local core = require "srv.core.pg"
local errors = require "srv.base.errors"
local json = require "srv.base.json"
local null = require "srv.core.json".null
local reader = require "srv.base.reader"
local task = require "srv.async.task"

local stream = {}

local NAME_BYTES_MAX = 63
local PIECE_BYTES = 64 * 1024
local FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5 -- seconds

-- error() for the app: it called a method of the handle, which called a function here.
local APP = 3

local function check_name(where, name)
  if type(name) ~= "string" or name == "" or #name > NAME_BYTES_MAX or name:find("%z") then
    error(("%s: the channel must be a name of at most %d bytes"):format(where, NAME_BYTES_MAX), APP + 1)
  end
end

-- LISTEN ------------------------------------------------------------------------------------------

--- What db:listen gives: called, the next message.
---@class srv.DbListener
---@overload fun(): string?
local Listener = { __name = "srv.DbListener" }
Listener.__index = Listener

local function subscribe(self)
  local lease = core.lease()
  local ok, err = lease:begin(self.db, "none", self.timeout_ms)
  if not ok or ok == core.refused then return ok, err end
  lease:listen()
  ok, err = lease:command('listen "' .. self.channel:gsub('"', '""') .. '"', self.timeout_ms)
  if not ok then
    lease:close(true)
    return nil, err
  end
  self.lease = lease
  return true
end

--- Until it listens again. What was sent meanwhile is not told: PostgreSQL does not keep it.
local function subscribe_again(self)
  local pause = FIRST_PAUSE
  while not self.closed do
    local ok, err = subscribe(self)
    if ok == core.refused then error(errors.new(503, err, { code = "closed" }), 0) end
    if ok then return end
    if not errors.is(err, "unavailable") and not errors.is(err, "timeout") then error(err, 0) end
    task.sleep(pause)
    pause = math.min(pause * 2, LONGEST_PAUSE)
  end
end

function Listener:__call()
  while not self.closed do
    if not self.lease then subscribe_again(self) end
    local text, err = self.lease:note()
    if text then return text end
    if self.lease then self.lease:close(true) end
    self.lease = nil
    if self.closed then return nil end
    if not errors.is(err, "unavailable") then error(err, 0) end
  end
end

--- Ends the loop, also one that waits in another task.
function Listener:close()
  self.closed = true
  if self.lease then self.lease:close(true) end
  self.lease = nil
end

--- A loop over the messages of CHANNEL, on a connection of its own. When that breaks it connects again
--- by itself. Raises what goes wrong at the beginning.
---@param channel string
---@return srv.DbListener
function stream.listen(db, channel)
  check_name("db:listen", channel)
  if db.lease then error("db:listen: not inside a transaction", APP) end
  local listener = setmetatable({ db = db.core, channel = channel, timeout_ms = db.timeout_ms, closed = false }, Listener)
  local ok, err = subscribe(listener)
  if ok == core.refused then error("db:listen: " .. err, APP) end
  if not ok then error(err, 0) end
  return listener
end

--- Sends TEXT to all who listen; in a transaction, when it commits.
---@param channel string
---@param text string?
---@return true?
---@return srv.Error?
function stream.notify(db, channel, text)
  check_name("db:notify", channel)
  if text ~= nil and type(text) ~= "string" then error("db:notify: the message must be a string", APP) end
  local rows, err = db:query("select pg_notify($1, $2)", channel, text or "")
  if not rows then return nil, err end
  return true
end

-- COPY --------------------------------------------------------------------------------------------

local ESCAPES = {
  ["\\"] = "\\\\", ["\t"] = "\\t", ["\n"] = "\\n", ["\r"] = "\\r", ["\b"] = "\\b", ["\f"] = "\\f", ["\v"] = "\\v",
}
local BLOB = getmetatable(core.blob "")

local function hex(bytes)
  return (bytes:gsub(".", function(byte) return ("%02x"):format(byte:byte()) end))
end

local function digits(number)
  return number % 1 == 0 and math.abs(number) < 1e15 and ("%d"):format(number) or ("%.17g"):format(number)
end

--- A value as COPY's text format has it.
local function field(value)
  local kind = type(value)
  if value == nil or value == null then return "\\N" end
  if kind == "string" then return (value:gsub("[\\\t\n\r\b\f\v]", ESCAPES)) end
  if kind == "boolean" then return value and "t" or "f" end
  if kind == "number" then return digits(value) end
  if kind == "cdata" then return (tostring(value):gsub("U?LL$", "")) end
  if kind ~= "table" then error("db:copy_in: a " .. kind .. " is no value for a database", 0) end
  if getmetatable(value) == BLOB then return "\\\\x" .. hex(value[1]) end
  return (json.encode(value):gsub("\\", "\\\\"))
end

local function line_of(row)
  if type(row) == "string" then return row:sub(-1) == "\n" and row or row .. "\n" end
  if type(row) ~= "table" then error("db:copy_in: a row must be an array or a string, not a " .. type(row), 0) end
  local fields = {}
  for i = 1, row.n or #row do fields[i] = field(row[i]) end
  return table.concat(fields, "\t") .. "\n"
end

--- A function that gives the next row.
local function iterator_of(rows)
  if type(rows) ~= "table" or getmetatable(rows) and getmetatable(rows).__call then return rows end
  local i = 0
  return function()
    i = i + 1
    return rows[i]
  end
end

local function check_copy(where, sql, direction)
  if type(sql) ~= "string" or not sql:lower():find("^%s*copy%s.*%s" .. direction) then
    error(("%s: the statement must be a COPY ... %s"):format(where, direction:gsub("%%s%+", " "):upper()), APP + 1)
  end
end

--- The transaction's connection, or one of its own, whose transaction takes the time it takes.
local function begin_copy(db, sql)
  local lease, own = db.lease, not db.lease
  local ok, err = true, nil
  if own then
    lease = core.lease()
    ok, err = lease:begin(db.core, "write", db.timeout_ms)
    if ok == core.refused then error("srv.db: " .. err, APP + 1) end
    if ok then ok, err = lease:command("set local statement_timeout = 0", db.timeout_ms) end
  end
  if ok then ok, err = lease:copy(sql, 0) end
  if ok == core.refused then error("srv.db: " .. err, APP + 1) end
  if ok then return lease, own end
  if own then lease:close() end
  return nil, err
end

--- Writes all rows in pieces. True: to the end; false: the server takes no more | nil, err.
local function write_rows(lease, rows)
  local lines, size = {}, 0
  for row in iterator_of(rows) do
    local line = line_of(row)
    lines[#lines + 1], size = line, size + #line
    if size >= PIECE_BYTES then
      local ok, err = lease:copy_write(table.concat(lines))
      if not ok then return ok, err end
      lines, size = {}, 0
    end
  end
  if size == 0 then return true end
  return lease:copy_write(table.concat(lines))
end

--- Ends a COPY: number of rows | nil, err.
local function conclude(db, lease, own)
  local count, err = lease:copy_end()
  if count and own then
    local ok
    ok, err = lease:commit(db.timeout_ms)
    if not ok then return nil, err end
  elseif own then
    lease:close()
  end
  return count, err
end

--- Sends rows as fast as the server takes them: all of them, or none. ROWS gives arrays of values
--- (srv.null is NULL) or lines as the statement's format wants them.
---@param sql string       "copy articles (guid, title) from stdin"
---@param rows (any[]|string)[]|fun(): (any[]|string)?
---@return integer? count
---@return srv.Error?
function stream.copy_in(db, sql, rows)
  check_copy("db:copy_in", sql, "from%s+stdin")
  if type(rows) ~= "table" and type(rows) ~= "function" then
    error("db:copy_in: the rows must be an array or an iterator", APP)
  end
  local lease, own = begin_copy(db, sql)
  if not lease then return nil, own end
  local fine, ok, err = pcall(write_rows, lease, rows)
  if not fine then
    if lease:is_open() then lease:copy_end("the app broke it off") end
    if own then lease:close() end
    error(ok, 0)
  end
  if ok == nil then
    if own then lease:close() end
    return nil, err
  end
  return conclude(db, lease, own)
end

--- A reader over what the server sends, in the statement's format; it sends as fast as it is read.
---@param sql string  "copy articles to stdout with (format csv, header)"
---@return srv.Reader?
---@return srv.Error?
function stream.copy_out(db, sql)
  check_copy("db:copy_out", sql, "to%s+stdout")
  local lease, own = begin_copy(db, sql)
  if not lease then return nil, own end
  local ended = false
  local function pull()
    if ended then return nil end
    local piece, err, again
    repeat piece, err, again = lease:copy_read() until not again
    if piece then return piece end
    ended = true
    if err then
      if own then lease:close() end
      return nil, err
    end
    local _
    _, err = conclude(db, lease, own)
    return nil, err
  end
  return reader.new(pull, function()
    if not ended then lease:close(true) end
    ended = true
  end)
end

return stream
