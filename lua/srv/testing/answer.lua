--- What srv.test's requests come back with, and what may be expected of it.
local json = require "srv.base.json"

local answer = {}

---@class srv.TestAnswer
---@field status integer
---@field headers table<string, string>   any case reads; several lines joined by ", "
---@field body string
---@field cookies table<string, string>   set by this answer
---@field log table[]                     lines logged meanwhile: { level, message, fields }
---@field interim integer[]               1xx before it
---@field cut boolean                     it breaks off
local Answer = { __name = "srv.TestAnswer" }
Answer.__index = Answer

local Headers = {}
function Headers.__index(headers, name) return rawget(headers, tostring(name):lower()) end

local function headers_of(fields)
  local headers = {}
  for _, field in ipairs(fields) do
    local name = field[1]:lower()
    headers[name] = headers[name] and headers[name] .. ", " .. field[2] or field[2]
  end
  return setmetatable(headers, Headers)
end

--- The body as JSON; raises when it is none.
---@return any
function Answer:json()
  local value, err = json.decode(self.body)
  if err then error("the answer is no JSON: " .. tostring(err), 2) end
  return value
end

--- The pieces in which the body was handed over.
---@return string[]
function Answer:chunks() return self.pieces end

local EVENT_FIELDS = { id = true, event = true, retry = true }

--- What the lines of one block say; nil when there is no data in it (a comment, a heartbeat).
local function event_of(block)
  local event, data = {}, {}
  for line in (block .. "\n"):gmatch "([^\n]*)\n" do
    local name, value = line:match "^([^:]+):? ?(.*)$"
    if name == "data" then data[#data + 1] = value
    elseif EVENT_FIELDS[name] then event[name] = value end
  end
  if #data == 0 then return nil end
  event.data = table.concat(data, "\n")
  return event
end

--- Lines may end in three ways. A CR at the end of what has come may be half of one.
local function plain_lines(text)
  local cr = text:match "\r$" or ""
  return text:sub(1, -1 - #cr):gsub("\r\n?", "\n") .. cr
end

--- Server-sent events: { { id, event, data, retry }, ... }. One that breaks off is none, as for browsers.
---@return table[]
function Answer:events()
  local events = {}
  for block in plain_lines(self.body):gmatch "(.-)\n\n" do events[#events + 1] = event_of(block) end
  return events
end

local function show(value)
  if type(value) == "string" then return ("%q"):format(value) end
  if type(value) ~= "table" then return tostring(value) end
  local ok, encoded = pcall(json.encode, value)
  return ok and encoded or tostring(value)
end

--- Why GOT does not hold all of WANT, or nil.
local function difference(got, want, path)
  if type(want) ~= "table" then
    if got ~= want then return ("%s is %s, not %s"):format(path, show(got), show(want)) end
    return nil
  end
  if type(got) ~= "table" then return ("%s is %s, not %s"):format(path, show(got), show(want)) end
  for key, value in pairs(want) do
    local fault = difference(got[key], value, path .. "." .. tostring(key))
    if fault then return fault end
  end
end

local function expect_header(self, name, want)
  local got = self.headers[name]
  local fits = got ~= nil and (got == want or want:sub(1, 1) == "^" and got:find(want) ~= nil)
  if want == false then fits = got == nil end
  if not fits then return ("header %s is %s, not %s"):format(name, show(got), show(want)) end
end

local function expect_any(self, want, header_value)
  if type(want) == "number" then
    return self.status ~= want and ("status is %d, not %d; body: %s"):format(self.status, want, self.body:sub(1, 500))
  elseif type(want) == "string" and header_value ~= nil then
    return expect_header(self, want, header_value)
  elseif type(want) == "string" then
    return self.body ~= want and ("body is %s, not %s"):format(show(self.body:sub(1, 500)), show(want))
  elseif type(want) == "table" then
    return difference(self:json(), want, "body")
  elseif type(want) == "function" then
    local ok, message = want(self)
    return not ok and (message or "the check says no; body: " .. self.body:sub(1, 500))
  end
  return "expect takes a status, a header and its value, a body, a part of the JSON, or a function"
end

--- A status; a header and its value (a pattern if it begins with "^", false: absent); a body; a part
--- of the JSON; or a function that says whether all is well.
---@return srv.TestAnswer
function Answer:expect(want, header_value)
  local fault = expect_any(self, want, header_value)
  if fault then error(("%s %s: %s"):format(self.request.method, self.request.target, fault), 2) end
  return self
end

answer.event_of, answer.plain_lines = event_of, plain_lines
answer.headers_of, answer.expect_header = headers_of, expect_header

---@param values table  { status, fields, body, pieces, interim, cut, log, cookies }
---@param request table
---@return srv.TestAnswer
function answer.new(values, request)
  values.request, values.headers = request, headers_of(values.fields)
  return setmetatable(values, Answer)
end

return answer
