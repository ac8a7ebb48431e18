--- Server-sent events (WHATWG HTML, 9.2): res:sse().
local async = require "srv.async.task"
local http = require "srv.core.http"
local json = require "srv.base.json"
local misuse = require "srv.core.task".misuse
local objects = require "srv.web.objects"
local options = require "srv.base.options"
local sync = require "srv.async.sync"

---@class srv.EventStream
---@field last_id string?  Last-Event-ID of a client that comes back
---@field private turn srv.Mutex  the handler and the heartbeat write one at a time
local EventStream = { __name = "srv.EventStream" }
EventStream.__index = EventStream

local sse = {}

--- Unless the app has set its own. nginx and what is like it would gather the answer.
local HEAD = http.field_list { "Cache-Control", "no-cache", "X-Accel-Buffering", "no" }

local SEND_OPTIONS = { event = "string", id = "any", retry = "duration" }
local WHOLE_MAX = 2 ^ 53

--- 7 is "7", and a large one has all its digits.
local function text_of(value)
  local is_whole = type(value) == "number" and value % 1 == 0 and math.abs(value) <= WHOLE_MAX
  return is_whole and ("%.0f"):format(value) or tostring(value)
end

--- "id: 7\n". A line break in a value would begin a field of its own, and clients drop an id with a NUL.
local function field(name, value)
  if value == nil then return "" end
  local kind = type(value)
  if kind ~= "string" and kind ~= "number" then
    misuse(("sse:send: %s must be a string or a number, not a %s"):format(name, kind))
  end
  local text = text_of(value)
  if text:find "[\r\n%z]" then misuse(("sse:send: %s holds a line break or a NUL"):format(name)) end
  return name .. ": " .. text .. "\n"
end

--- What cannot be JSON is the app's mistake.
local function json_of(data)
  local ok, text = pcall(json.encode, data)
  if ok then return text end
  if type(text) ~= "string" then error(text, 0) end
  misuse("sse:send: " .. text)
end

--- Each line of DATA is one of its own: they end as any of the three that clients know.
local function data_lines(data)
  local text = type(data) == "string" and data or json_of(data)
  return "data: " .. text:gsub("\r\n?", "\n"):gsub("\n", "\ndata: ") .. "\n"
end

local function write(stream, text)
  local sent, err = stream.turn:with(stream.res.write, stream.res, text)
  return sent and true, err
end

--- A table is JSON. Without data (nil) clients are told of `id` and `retry` alone, and no event is dispatched.
---@param data any
---@param opts { event?: string, id?: string|number, retry?: number|string }?
---@return true?
---@return srv.Error?
function EventStream:send(data, opts)
  opts = options.check("sse:send", opts, SEND_OPTIONS)
  if data == nil and opts.id == nil and opts.retry == nil then
    misuse "sse:send: data is missing (JSON's null is srv.null)"
  end
  local event = {
    field("id", opts.id), field("event", opts.event),
    opts.retry and ("retry: %d\n"):format(opts.retry * 1000) or "",
    data ~= nil and data_lines(data) or "", "\n",
  }
  return write(self, table.concat(event))
end

--- What clients pass over: keeps a connection from looking dead.
---@param text string
---@return true?
---@return srv.Error?
function EventStream:comment(text)
  return write(self, ": " .. text:gsub("[\r\n]+", " ") .. "\n\n")
end

--- Comments at an interval, until the request's task ends.
local function beat(stream, interval)
  repeat async.sleep(interval) until not stream:comment("")
end

local function interval_of(opts)
  opts = options.check("res:sse", opts, { heartbeat = "duration" })
  local interval = opts.heartbeat or 15
  if interval <= 0 then misuse "res:sse: heartbeat must be longer than 0" end
  return interval
end

--- The head goes out at once, and nobody on the way is to hold back what follows. A client that wants the head
--- alone (HEAD) has got all: the handler ends here, as if that client had left.
---@param res srv.Response
---@param opts { heartbeat?: number|string }?
---@return srv.EventStream
function sse.open(res, opts)
  local interval = interval_of(opts)
  http.must_begin(res)
  res:type "text/event-stream"
  http.set_missing(res, HEAD)
  res:write ""
  http.events(res)
  local last_id = http.header(objects.request(res[1]), "last-event-id")
  local stream = setmetatable({ res = res, last_id = last_id, turn = sync.mutex() }, EventStream)
  async.spawn(beat, stream, interval)
  return stream
end

return sse
