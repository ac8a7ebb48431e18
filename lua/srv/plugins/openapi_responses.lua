--- The answers of operations in OpenAPI: what a route declares, and the problem+json (RFC 9457) of errors.
local errors = require "srv.base.errors"
local json = require "srv.core.json"
local schema = require "srv.web.schema"

local openapi_responses = {}

---@class srv.OpenapiResponses
---@field collection srv.OpenapiContext
---@field used table<string, boolean>  names of the error answers that are referred to

local PROBLEM_NAME, REF = "Problem", "#/components/responses/"

--- Names of error answers, by status; 0 is all the others.
local NAMES = {
  [0] = "Error", [400] = "Invalid", [401] = "Unauthorized", [404] = "NotFound", [413] = "TooLarge",
  [415] = "UnsupportedType",
}
local STATUS_OF = {}
for status, name in pairs(NAMES) do STATUS_OF[name] = status end

local SUCCESS = {
  [200] = "OK", [201] = "Created", [202] = "Accepted", [203] = "Non-Authoritative Information", [204] = "No Content",
  [205] = "Reset Content", [206] = "Partial Content", [304] = "Not Modified",
}
local NO_BODY = { [204] = true, [205] = true, [304] = true }

local FAULT = {
  ["in"] = "params|query|headers|cookies|body -- where the fault is",
  path = "string -- a JSON Pointer to the value", code = "string -- a stable word", message = "string",
}
local PROBLEM = {
  type = "string", title = "string -- the reason phrase", status = "integer 400..599",
  detail = "string? -- what was wrong", code = "string? -- a stable word",
  request_id = "string?", errors = schema.new({ FAULT }, { optional = true }), ["*"] = "any",
}

---@param collection srv.OpenapiContext
---@return srv.OpenapiResponses
function openapi_responses.new(collection) return { collection = collection, used = {} } end

local function title_of(status)
  if status == 0 then return "An error" end
  return SUCCESS[status] or status >= 400 and errors.new(status).title or "Status " .. status
end

local function of_schema(responses, status, rule, title)
  local out = { description = title or title_of(status) }
  if not NO_BODY[status] then
    local part = schema.of(rule, 0):openapi_part(responses.collection)
    out.content = json.object { ["application/json"] = json.object { schema = part.schema } }
  end
  return json.object(out)
end

--- `response = { [201] = rule }` as opposed to a rule (validate.lua reads it likewise).
local function is_by_status(given)
  return type(given) == "table" and getmetatable(given) == nil and type(next(given)) == "number" and given[1] == nil
end

local function add_declared(responses, list, given)
  if given == nil then
    list["2XX"] = json.object { description = "Success" }
  elseif is_by_status(given) then
    local statuses = {}
    for status in pairs(given) do statuses[#statuses + 1] = status end
    table.sort(statuses)
    for _, status in ipairs(statuses) do
      list[tostring(status)] = of_schema(responses, status, given[status])
    end
  else
    list["2XX"] = of_schema(responses, 200, given, "Success")
  end
end

--- An app:error makes answers of a form that only it knows: there the status is all that is told.
local function add_error(responses, list, status, is_own_form)
  local key = status == 0 and "default" or tostring(status)
  if list[key] then return end
  local name = NAMES[status]
  if is_own_form then
    list[key] = json.object { description = title_of(status) }
  else
    responses.used[name] = true
    list[key] = json.object { ["$ref"] = REF .. name }
  end
end

--- The responses object of an operation.
---@param responses srv.OpenapiResponses
---@param given any           the route's `response`
---@param statuses integer[]  of errors to expect
---@param is_own_form boolean
---@return table
function openapi_responses.of_route(responses, given, statuses, is_own_form)
  local list = {}
  add_declared(responses, list, given)
  for _, status in ipairs(statuses) do add_error(responses, list, status, is_own_form) end
  add_error(responses, list, 0, is_own_form)
  return json.object(list)
end

--- The shared answers, once all operations are there; nil without any. An app's own schema "Problem" keeps its name.
---@param responses srv.OpenapiResponses
---@return table?
function openapi_responses.finish(responses)
  if not next(responses.used) then return nil end
  local problem = schema.new(PROBLEM, {
    name = PROBLEM_NAME, order = { "type", "title", "status", "detail", "code", "request_id", "errors" },
  }):openapi_part(responses.collection).schema
  local list = {}
  for name in pairs(responses.used) do
    list[name] = json.object {
      description = title_of(STATUS_OF[name]),
      content = json.object { ["application/problem+json"] = json.object { schema = problem } },
    }
  end
  return json.object(list)
end

return openapi_responses
