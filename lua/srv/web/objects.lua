--- req and res are views: tables with a number in them that C takes for a request in flight.
---
--- Everything about a request lives in C, so any view of it is as good as another, and the JIT may
--- do without the tables. What code hangs on one (`req.user = ...`) makes it *the* view: it is kept
--- here until the request ends, and hooks and formatters that run later see the same table.
local http = require "srv.core.http"

local objects = {}

--- Slot of the request -> its kept view. C fills and clears them.
local requests, responses = http.kept_requests, http.kept_responses

local SLOTS = http.slots

local class_of_request, class_of_response

--- Called once, by the modules that define the classes.
function objects.set_request_class(class) class_of_request = class end
function objects.set_response_class(class) class_of_response = class end

--- Makes OBJECT the view of its request.
---@param object table
function objects.keep(object)
  http.keep(object[1], object, getmetatable(object) == class_of_response)
end

---@param p number
---@return srv.Request
function objects.request(p)
  local object = requests[p % SLOTS + 1]
  if object and object[1] == p then return object end
  return setmetatable({ p }, class_of_request)
end

---@param p number
---@return srv.Response
function objects.response(p)
  local object = responses[p % SLOTS + 1]
  if object and object[1] == p then return object end
  return setmetatable({ p }, class_of_response)
end

--- The request that this code runs for, or nil.
---@return srv.Request?
function objects.current()
  local p = http.current()
  return p and objects.request(p)
end

---@param v any
---@return boolean
function objects.is_response(v)
  return type(v) == "table" and getmetatable(v) == class_of_response
end

--- __newindex of both classes.
function objects.assign(object, key, value)
  rawset(object, key, value)
  objects.keep(object)
end

return objects
