--- req:form { nested = true }: whatever the names are, the table is no deeper and holds no more values
--- than was allowed, can be sent on as JSON, and a fault is the client's.
local json = require "srv.base.json"
local srv = require "srv"

local DEPTH, FIELDS = 4, 12

local app = srv.app()
local form

app:post("/", function(req, res)
  form = req:form { nested = true, depth = DEPTH, fields = FIELDS }
  res:text "taken"
end)

local client = srv.test(app)

--- The values below NODE. DEEP: tables that are above it.
local function count(node, deep)
  if type(node) == "string" then return 1 end
  if type(node) ~= "table" then error("a form holds texts, not a " .. type(node)) end
  -- An array of repeats may lie in the deepest place.
  if deep > DEPTH + 1 then error("deeper than is allowed") end
  local values = 0
  for key, value in pairs(node) do
    if type(key) ~= "string" and type(key) ~= "number" then error("a key that is a " .. type(key)) end
    values = values + count(value, deep + 1)
  end
  return values
end

local CODES = { [400] = true, [413] = true }

return function(bytes)
  form = nil
  local answer = client:post("/", { body = bytes, headers = { ["content-type"] = "application/x-www-form-urlencoded" } })
  if answer.status ~= 200 then
    if not CODES[answer.status] or answer:json().code ~= "bad_form" then error(answer.status .. ": " .. answer.body) end
    return
  end
  if form == nil then
    if #bytes > 0 then error "a form that is none" end
    return
  end
  if getmetatable("").__index ~= string then error "a form has reached beyond itself" end
  if count(form, 0) > FIELDS then error "more values than is allowed" end
  local again, err = json.decode(json.encode(form))
  if err or count(again, 0) ~= count(form, 0) then error("as JSON it is another: " .. json.encode(form)) end
end
