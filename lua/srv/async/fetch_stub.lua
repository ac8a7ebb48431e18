--- Answers in the place of other servers: srv.test.upstream (API, section 16).
---
---     srv.test.upstream { ["GET https://api.example/x"] = { json = { a = 1 } }, ["* *"] = fn }
---
--- A key is a method and a URL without its query, in each of which "*" stands for anything. The most
--- exact key that fits answers; what fits none is refused.
local errors = require "srv.base.errors"
local fetch_response = require "srv.async.fetch_response"
local fetch_url = require "srv.async.fetch_url"
local json = require "srv.base.json"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local reader = require "srv.base.reader"

local KNOWN = { status = "number", headers = "table", json = "any", body = "string" }
local WHERE = "srv.test.upstream"

local function pattern_of(text)
  return "^" .. text:gsub("[%p]", "%%%0"):gsub("%%%*", ".*") .. "$"
end

--- Exact ones first: a "*" less, then the longer one.
local function is_before(a, b)
  if a.stars ~= b.stars then return a.stars < b.stars end
  return #a.key > #b.key
end

local function check_answer(key, answer)
  if type(answer) == "function" or type(answer) == "string" then return answer end
  return options.check(('%s: "%s"'):format(WHERE, key), answer, KNOWN)
end

local function read_stubs(answers)
  if type(answers) ~= "table" then misuse(WHERE .. ": a table of requests and their answers was expected") end
  local stubs = {}
  for key, answer in pairs(answers) do
    local method, address = tostring(key):match("^(%S+) (%S+)$")
    if not method then misuse(('%s: "%s" is no request, like "GET https://api.example/x"'):format(WHERE, tostring(key))) end
    local _, stars = key:gsub("%*", "")
    stubs[#stubs + 1] = {
      key = key, stars = stars, method = pattern_of(method), address = pattern_of(address), answer = check_answer(key, answer),
    }
  end
  table.sort(stubs, is_before)
  return stubs
end

local function collect(body)
  if body == nil or type(body) == "string" then return body or "" end
  if reader.is(body) then return body:all() end
  local pieces = {}
  for piece in body do pieces[#pieces + 1] = piece end
  return table.concat(pieces)
end

--- What the app sends, for a function that answers.
local function seen_of(request)
  local headers = {}
  for _, field in ipairs(request.fields) do
    local name = field[1]:lower()
    headers[name] = headers[name] and headers[name] .. ", " .. field[2] or field[2]
  end
  return { method = request.method, url = fetch_url.text(request.target), headers = headers, body = collect(request.body) }
end

local function lower_headers(headers)
  local lower, several = {}, nil
  for name, value in pairs(headers or {}) do
    name = name:lower()
    if type(value) == "table" then
      several = several or {}
      several[name] = value
      value = table.concat(value, ", ")
    end
    lower[name] = tostring(value)
  end
  return lower, several
end

local function response_of(request, answer)
  if type(answer) == "string" then answer = { body = answer } end
  answer = options.check(WHERE, answer, KNOWN)
  local headers, several = lower_headers(answer.headers)
  local body = answer.body or ""
  if answer.json ~= nil then
    body = json.encode(answer.json)
    headers["content-type"] = headers["content-type"] or "application/json"
  end
  local response = fetch_response.new {
    status = answer.status or 200, headers = headers, several = several, url = fetch_url.text(request.target),
    method = request.method, had_credentials = false, body = body,
  }
  if request.opts.stream then
    response:stream()
    response.body, response.length = nil, #body
  end
  return response
end

local function answer_of(stub, request)
  if type(stub.answer) ~= "function" then return stub.answer end
  return stub.answer(seen_of(request))
end

--- What srv.async.fetch_send asks in the place of the network.
---@param answers table<string, string|table|fun(request: table): any, any>
---@return fun(request: srv.FetchRequest): srv.HttpResponse?, srv.Error?
return function(answers)
  local stubs = read_stubs(answers)
  return function(request)
    local address = fetch_url.shown(fetch_url.text(request.target))
    for _, stub in ipairs(stubs) do
      if request.method:find(stub.method) and address:find(stub.address) then
        local answer, err = answer_of(stub, request)
        if answer == nil then return nil, err or errors.coded("refused", WHERE .. ": the function gave no answer"), "sent" end
        return response_of(request, answer)
      end
    end
    return nil, errors.coded("refused", ("%s: nothing answers %s %s"):format(WHERE, request.method, address)), "sent"
  end
end
