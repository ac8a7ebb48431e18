--- The schemas of a route (API, section 6): what they ask of a request fills `req.valid`, and what
--- they promise of an answer is kept.
local body = require "srv.web.body"
local env = require "srv.core.env"
local errors = require "srv.base.errors"
local http = require "srv.core.http"
local json = require "srv.base.json"
local log = require "srv.core.log"
local negotiate = require "srv.web.negotiate"
local request = require "srv.web.request"
local schema = require "srv.web.schema"

local validate = {}

-- Requests ------------------------------------------------------------------------------------------

local PARTS = {
  params = function(req) return req.params end,
  query = function(req) return req.query end,
  headers = function(req) return http.headers(req) end,
  cookies = function(req) return req.cookies end,
}

local FORM_DEPTH = 32 -- as req:form's

--- `rows[0][name]`: a schema sees what the names mean.
local function read_form(req)
  local flat = req:form()
  return flat and body.nest(flat, FORM_DEPTH)
end

--- Fields and files in one table, as the schema sees them.
local function read_multipart(req)
  local fields, files = req:multipart()
  local all, by_field = json.object {}, {}
  for name, value in pairs(fields or {}) do all[name] = value end
  for _, file in ipairs(files or {}) do
    local there = by_field[file.field]
    if not there then
      by_field[file.field] = file
    elseif there.size then
      by_field[file.field] = json.array { there, file }
    else
      there[#there + 1] = file
    end
  end
  for name, value in pairs(by_field) do
    all[name] = all[name] == nil and value or json.array { all[name], value }
  end
  return body.nest(all, FORM_DEPTH)
end

local CONSUMED = {
  json = { type = "json", read = body.read_json },
  form = { type = "application/x-www-form-urlencoded", read = read_form },
  multipart = { type = "multipart/form-data", read = read_multipart },
}

--- By what a route says, else by what its body needs.
local function consumed_by(opts, body_schema, place)
  local wants_file = body_schema:wants_file()
  local consumes = opts.consumes or (wants_file and { "multipart" } or { "json", "form" })
  for _, name in ipairs(consumes) do
    if not CONSUMED[name] then error(('%s: consumes knows "json", "form" and "multipart", not %q'):format(place, name), 0) end
    if wants_file and name ~= "multipart" then
      error(('%s: only multipart brings the file that the body asks for, not %q'):format(place, name), 0)
    end
  end
  return consumes
end

--- What reads and checks a body: by its type one of the ways that the route consumes.
local function body_reader(body_schema, consumes)
  local of_text = body_schema:checker("form")
  local checkers = { json = body_schema:checker("body"), form = of_text, multipart = of_text }
  local check_json, takes_json = checkers.json, false
  for _, name in ipairs(consumes) do takes_json = takes_json or name == "json" end
  return function(req)
    if not http.has_body(req) then return check_json(nil) end
    local content_type = http.header(req, "content-type")
    if takes_json and body.is_json(content_type) then return check_json(body.read_json(req)) end
    for _, name in ipairs(consumes) do
      if negotiate.is(content_type, { CONSUMED[name].type }) then return checkers[name](CONSUMED[name].read(req)) end
    end
    body.refuse_type(req, consumes)
  end
end

local function part_reader(part, part_schema)
  local read, check = PARTS[part], part_schema:checker(part)
  return function(req) return check(read(req)) end
end

local function of_rule(rule, part, place)
  local ok, made = pcall(schema.of, rule, 0)
  return ok and made or error(("%s: %s: %s"):format(place, part, tostring(made)), 0)
end

--- The readers of all parts that have a schema, the body last: it may have to wait.
local function readers_of(opts, place)
  local readers = {}
  for _, part in ipairs { "params", "query", "headers", "cookies" } do
    if opts[part] then readers[#readers + 1] = { part = part, read = part_reader(part, of_rule(opts[part], part, place)) } end
  end
  if opts.body then
    local body_schema = of_rule(opts.body, "body", place)
    local read = body_reader(body_schema, consumed_by(opts, body_schema, place))
    readers[#readers + 1] = { part = "body", read = read }
  end
  return readers
end

--- Raises the faults of all parts.
local function refuse(...)
  local all = {}
  for i = 1, select("#", ...) do
    for _, fault in ipairs((select(i, ...)) or {}) do all[#all + 1] = fault end
  end
  error(schema.invalid(all), 0)
end

local STEP = [[
local readers, valid_class, refuse, setmetatable = ...
%s
return function(q)
  %s
  if %s then refuse(%s) end
  q.valid = setmetatable({ %s }, valid_class)
end
]]

--- A line for each part instead of a loop over them: a loop that calls something else in every turn is not
--- compiled as one.
local function source_of(readers)
  local head, read, faults, fields = {}, {}, {}, {}
  for i, reader in ipairs(readers) do
    head[i] = ("local read%d = readers[%d].read"):format(i, i)
    read[i] = ("local value%d, faults%d = read%d(q)"):format(i, i, i)
    faults[i] = "faults" .. i
    fields[i] = ("%s = value%d"):format(reader.part, i)
  end
  return STEP:format(table.concat(head, "\n"), table.concat(read, "\n  "), table.concat(faults, " or "),
    table.concat(faults, ", "), table.concat(fields, ", "))
end

--- A step that checks a request by the schemas of OPTS; nil when there are none.
---@param opts table    a route's options
---@param place string  file:line of the route
---@return fun(q: srv.Request, r: srv.Response)?
function validate.step(opts, place)
  local readers = readers_of(opts, place)
  if #readers == 0 then return nil end
  local parts = {}
  for _, reader in ipairs(readers) do parts[reader.part] = true end
  local chunk = assert(loadstring(source_of(readers), "=srv/(schemas of " .. place .. ")"))
  return chunk(readers, request.class.valid_class(parts), refuse, setmetatable)
end

-- Answers -------------------------------------------------------------------------------------------

--- `response = rule`, or `{ [201] = rule, [404] = rule }`: which checker a status has.
local function answerers_of(response, place)
  local function make(rule) return of_rule(rule, "response", place):answerer(env.dev) end
  local by_status = {}
  if type(response) == "table" and getmetatable(response) == nil and type(next(response)) == "number" and response[1] == nil then
    for status, rule in pairs(response) do by_status[status] = make(rule) end
    return function(status) return by_status[status] end
  end
  local check = make(response)
  return function(status) return status < 300 and check or nil end
end

local function split(faults)
  local dropped, wrong = {}, {}
  for _, fault in ipairs(faults) do
    local list = fault.code == "unknown" and dropped or wrong
    list[#list + 1] = fault
  end
  return dropped, wrong
end

--- The first of each kind, with how often it was met: a list has the same fault in each of its rows.
local function kinds_of(faults)
  local kinds, by_key = {}, {}
  for _, fault in ipairs(faults) do
    local key = fault.code .. fault.path:gsub("/%d+", "/*")
    local kind = by_key[key]
    if not kind then
      kind = { path = fault.path, code = fault.code, times = 0 }
      kinds[#kinds + 1], by_key[key] = kind, kind
    end
    kind.times = kind.times + 1
  end
  return kinds
end

local function tell(q, faults)
  local dropped, wrong = split(faults)
  local route = http.label(q)
  for _, kind in ipairs(kinds_of(dropped)) do
    log.warn("undeclared field was dropped", { route = route, path = kind.path, times = kind.times })
  end
  if #wrong == 0 then return end
  if env.dev then
    errors.raise(500, "the answer does not fit the route's response schema", { code = "bad_answer", errors = wrong })
  end
  for _, kind in ipairs(kinds_of(wrong)) do
    log.error("answer does not fit its schema", { route = route, path = kind.path, fault = kind.code, times = kind.times })
  end
end

--- A step that brings the recorded answer into the form of OPTS.response; nil without one.
---@param opts table
---@param place string
---@return fun(q: srv.Request, r: srv.Response)?
function validate.shape(opts, place)
  if not opts.response then return nil end
  local answerer_for = answerers_of(opts.response, place)
  return function(q, r)
    local value, is_json = http.recorded(r)
    local check = is_json and answerer_for(r:status())
    if not check then return end
    local shaped, faults = check(json.resolve(value))
    http.replace_value(r, shaped)
    if faults then tell(q, faults) end
  end
end

return validate
