--- Answers that specs read as they come (t:open): streams and server-sent events without an end.
local answer = require "srv.testing.answer"
local async = require "srv.async.task"
local clock = require "srv.core.clock"
local errors = require "srv.base.errors"

local stream = {}

local PATIENCE = 5 -- seconds

---@class srv.TestStream
---@field status integer
---@field headers table<string, string>  any case reads
---@field cookies table<string, string>  set by this answer
---@field private core userdata
---@field private rest string            of the events: what has come and is no whole block
local Stream = { __name = "srv.TestStream" }
Stream.__index = Stream

--- How long to wait, in seconds. While the clock stands no limit would ever pass: then all that is ready
--- runs, and what has not come by then does not come.
local function patience(where, t)
  if not clock.is_held() then return async.seconds(where, t) or PATIENCE end
  clock.advance(0)
  return 0
end

stream.patience = patience

local function next_chunk(self, seconds)
  local piece, err
  repeat piece, err = self.core:piece(seconds) until piece ~= ""
  return piece, err
end

--- The next piece of the body as the app wrote it; nil at the end.
---@param t (number|string)?  at most so long: 5 s; while srv.test.clock() stands, what is there
---@return string?
---@return srv.Error?  timeout; closed: the answer breaks off, or this end was closed
function Stream:chunk(t) return next_chunk(self, patience("stream:chunk", t)) end

--- Takes the first whole block off what has come.
local function take_block(self)
  local from, to = self.rest:find("\n\n", 1, true)
  if not from then return nil end
  local block = self.rest:sub(1, from - 1)
  self.rest = self.rest:sub(to + 1)
  return block
end

local function take_event(self)
  local block, event
  repeat
    block = take_block(self)
    event = block and answer.event_of(block)
  until event or not block
  return event
end

--- The next server-sent event, { id, event, data, retry }; comments are passed over. nil at the end.
---@param t (number|string)?  at most so long: 5 s; while srv.test.clock() stands, what is there
---@return table?
---@return srv.Error?  timeout; closed: the answer breaks off, or this end was closed
function Stream:event(t)
  local seconds = patience("stream:event", t)
  local event = take_event(self)
  while not event do
    local chunk, err = next_chunk(self, seconds)
    if not chunk then return nil, err end
    self.rest = answer.plain_lines(self.rest .. chunk)
    event = take_event(self)
  end
  return event
end

--- A status; or a header and its value (a pattern if it begins with "^", false: absent).
---@return srv.TestStream
function Stream:expect(want, header_value)
  local fault
  if type(want) == "number" then
    fault = self.status ~= want and ("status is %d, not %d"):format(self.status, want)
  elseif type(want) == "string" and header_value ~= nil then
    fault = answer.expect_header(self, want, header_value)
  else
    fault = "expect of an open answer takes a status, or a header and its value"
  end
  if fault then error(("%s %s: %s"):format(self.request.method, self.request.target, fault), 2) end
  return self
end

--- To the app, the client leaves. Idempotent.
function Stream:close() self.core:close() end

--- Waits for the head of what CORE reads.
---@param core userdata
---@param request table
---@return srv.TestStream
function stream.open(core, request)
  local status, fields = core:head(patience("t:open", nil))
  if not status then
    core:close()
    error(errors.coded("timeout", ("%s %s: no head of an answer has come"):format(request.method, request.target)), 3)
  end
  return setmetatable({
    core = core, request = request, rest = "", status = status, fields = fields, headers = answer.headers_of(fields),
  }, Stream)
end

return stream
