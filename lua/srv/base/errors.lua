--- Error objects (API, section 5): what `nil, err` carries and what srv.error raises.
---
--- The metatable is shared with C (bind/lerror.c), so an error made there is one of these. Members
--- that follow from the status (code, title, expose) are computed when asked for.
local core = require "srv.core.error"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local text = require "srv.base.text"

---@class srv.Error
---@field status integer      400-599
---@field code string         stable word to compare: "not_found"
---@field message string
---@field title string        reason phrase of the status
---@field expose boolean      may the client read `message`?
---@field cause any           the error beneath
---@field headers table<string, any>?
---@field data table?         more members for the client
---@field errors table[]?     list of faults
---@field trace string?
---@field request_id string?
local Error = core.metatable
Error.__name = "srv.Error"

local errors = {}

local FIELDS = {
  status = true, code = true, message = true, title = true, cause = true, expose = true,
  headers = true, data = true, errors = true, trace = true, request_id = true,
}

local derived = {
  title = function(self) return core.reason(self.status) end,
  code = function(self) return text.snake_case(self.title) end,
  message = function(self) return self.title end,
  expose = function(self) return self.status < 500 end,
}

function Error:__index(key)
  local derive = derived[key]
  if derive then return derive(self) end
end

function Error:__tostring()
  local line = self.code .. ": " .. self.message
  local cause = rawget(self, "cause")
  return cause == nil and line or line .. "; caused by " .. tostring(cause)
end

--- As part of an answer: no more than the client may read.
function Error:__tojson()
  return {
    status = self.status, code = self.code, title = self.title, errors = self.errors,
    detail = self.expose and rawget(self, "message") or nil,
  }
end

local function check_fields(fields)
  if type(fields) ~= "table" then misuse("srv.error: fields are a table, not a " .. type(fields)) end
  if fields.status ~= nil then misuse("srv.error: the status is the first argument") end
  for name in pairs(fields) do
    if not FIELDS[name] then misuse("srv.error: " .. options.unknown("field", name, FIELDS)) end
  end
end

local function make(status, message, fields)
  if type(status) ~= "number" or status % 1 ~= 0 or status < 400 or status > 599 then
    misuse("srv.error: the status must be a whole number from 400 to 599, not " .. tostring(status))
  end
  local err = { status = status, message = message }
  if fields then
    check_fields(fields)
    for name, value in pairs(fields) do err[name] = value end
  end
  return setmetatable(err, Error)
end

--- One to return.
---@param status integer
---@param message string?
---@param fields table?
---@return srv.Error
function errors.new(status, message, fields)
  return make(status, message, fields)
end

--- Raises one.
---@param status integer
---@param message string?
---@param fields table?
function errors.raise(status, message, fields)
  error(make(status, message, fields), 0)
end

--- An error by one of srv's own codes, which gives its status: errors.coded("deadline", "...").
---@param code string
---@param message string?
---@param fields table?
---@return srv.Error
function errors.coded(code, message, fields)
  local err = make(core.status_of(code), message, fields)
  err.code = code
  return err
end

--- Whether E is an error object (with this code).
---@param e any
---@param code string?
---@return boolean
function errors.is(e, code)
  return type(e) == "table" and getmetatable(e) == Error and (code == nil or e.code == code)
end

--- A copy of ERR with one more field. An app may keep an error and raise it for many requests, so
--- what belongs to one of them is never written into it.
---@param err srv.Error
---@param name string
---@param value any
---@return srv.Error
function errors.with(err, name, value)
  local copy = {}
  for key, own in pairs(err) do copy[key] = own end
  copy[name] = value
  return setmetatable(copy, Error)
end

--- `statusCode` is what Node's libraries call it.
local function status_in(raised)
  local status = raised.status or raised.statusCode
  return type(status) == "number" and status or nil
end

local function adopt_table(raised, status)
  local err = {}
  for name in pairs(FIELDS) do err[name] = raised[name] end
  err.status = (status < 400 or status > 599 or status % 1 ~= 0) and 500 or status
  return setmetatable(err, Error)
end

--- What a raised table says of itself. Its fields are named and not shown: they may be secrets.
local function words_of(raised)
  if type(raised.message) == "string" then return raised.message end
  local meta, names = getmetatable(raised), {}
  if type(meta) == "table" and meta.__tostring then return tostring(raised) end
  for name in pairs(raised) do names[#names + 1] = tostring(name) end
  table.sort(names)
  return ("a table without a message was raised; its fields: %s"):format(table.concat(names, ", ", 1, math.min(#names, 20)))
end

local function message_of(raised)
  if raised == nil then return "error(nil)" end
  if type(raised) == "table" then return words_of(raised) end
  return tostring(raised)
end

--- Whatever was raised as an error object: one stays as it is, a table with a status is adopted,
--- all else is 500 `lua`.
---@param raised any
---@param trace string?  kept unless the error has one
---@return srv.Error
function errors.adopt(raised, trace)
  local err
  local status = type(raised) == "table" and not errors.is(raised) and status_in(raised)
  if errors.is(raised) then
    err = raised
  elseif status then
    err = adopt_table(raised, status)
  else
    err = errors.coded("lua", message_of(raised))
  end
  if trace and not rawget(err, "trace") then return errors.with(err, "trace", trace) end
  return err
end

return setmetatable(errors, { __call = function(_, ...) return errors.raise(...) end })
