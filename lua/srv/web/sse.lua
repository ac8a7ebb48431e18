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

local SEND_OPTIONS = { event = "string", id = "any", retry = "duration" }

--- A line break in a name or an id would begin a field of its own.
local function check_line(what, value)
  value = tostring(value)
  if value:find("[\r\n%z]") then misuse("sse:send: " .. what .. " holds a line break") end
  return value
end

local function data_lines(data)
  local text = type(data) == "string" and data or json.encode(data)
  return "data: " .. text:gsub("\r\n?", "\n"):gsub("\n", "\ndata: ") .. "\n\n"
end

local function write(stream, text)
  local sent, err = stream.turn:with(stream.res.write, stream.res, text)
  return sent and true, err
end

--- A table is JSON.
---@param data any
---@param opts { event?: string, id?: string|number, retry?: number|string }?
---@return true?
---@return srv.Error?
function EventStream:send(data, opts)
  opts = options.check("sse:send", opts, SEND_OPTIONS)
  local event = {
    opts.id ~= nil and "id: " .. check_line("id", opts.id) .. "\n" or "",
    opts.event and "event: " .. check_line("event", opts.event) .. "\n" or "",
    opts.retry and ("retry: %d\n"):format(opts.retry * 1000) or "",
    data_lines(data),
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

--- The head goes out at once.
---@param res srv.Response
---@param opts { heartbeat?: number|string }?
---@return srv.EventStream
function sse.open(res, opts)
  opts = options.check("res:sse", opts, { heartbeat = "duration" })
  res:type("text/event-stream"):header("Cache-Control", "no-cache")
  res:write("")
  http.events(res)
  local last_id = http.header(objects.request(res[1]), "last-event-id")
  local stream = setmetatable({ res = res, last_id = last_id, turn = sync.mutex() }, EventStream)
  async.spawn(beat, stream, opts.heartbeat or 15)
  return stream
end

return sse
