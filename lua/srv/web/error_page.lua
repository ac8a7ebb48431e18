--- What a client sees of an error where no app:error answers: RFC 9457's problem+json, or a page for
--- browsers. Production tells of a 5xx its title and the request's id, no more; --dev shows
--- message, trace and the lines of code around.
local env = require "srv.core.env"
local json = require "srv.base.json"
local negotiate = require "srv.web.negotiate"
local text = require "srv.base.text"

local error_page = {}

local EXCERPT_LINES = 4 -- before and after

--- Whether the client may read the message.
local function tells(err) return env.dev or err.expose end

--- What srv's own errors tell the app, and nobody outside: names in the database, an upstream's response.
local FOR_THE_APP = {
  unique = "constraint", foreign_key = "constraint", check = "constraint", not_null = "constraint",
  unexpected_status = "response",
}

local function problem(err, place)
  local members = json.object {}
  for name, value in pairs(tells(err) and err.data or {}) do
    if name ~= FOR_THE_APP[err.code] then members[name] = value end
  end
  members.type, members.title, members.status = "about:blank", err.title, err.status
  members.code = tells(err) and err.code or nil
  members.detail = tells(err) and err.message ~= err.title and err.message or nil
  members.errors = tells(err) and err.errors or nil
  members.request_id = err.request_id
  if env.dev then
    members.trace, members.cause = rawget(err, "trace"), err.cause ~= nil and tostring(err.cause) or nil
    members.handler = err.status >= 500 and place or nil
  end
  return members
end

-- The page ----------------------------------------------------------------------------------------

local STYLE = [[
body{font:16px/1.5 system-ui,sans-serif;margin:0;color:#222;background:#fff}
main{max-width:60rem;margin:15vh auto 0;padding:0 1.5rem}
h1{font-size:1.6rem;margin:0 0 .5rem}p{margin:.3rem 0}small{color:#767676}
pre{overflow:auto;background:#f6f6f4;padding:1rem;border-radius:.4rem;font-size:.85rem}
mark{background:#ffe3e0;display:block}
@media(prefers-color-scheme:dark){
body{color:#ddd;background:#1b1b1b}pre{background:#262626}mark{background:#5a2b27;color:inherit}}]]

local function read_lines(path, from, to)
  local file = io.open(path, "r")
  if not file then return nil end
  local lines, number = {}, 0
  for line in file:lines() do
    number = number + 1
    if number >= from then lines[#lines + 1] = { number = number, text = line } end
    if number >= to then break end
  end
  file:close()
  return lines
end

local function lines_around(path, line)
  local absolute = path:sub(1, 1) == "/" and path or env.root .. "/" .. path
  local lines = read_lines(absolute, line - EXCERPT_LINES, line + EXCERPT_LINES)
  return lines and #lines > 0 and lines or nil
end

--- The first "file.lua:12" of a message and its trace that can be read, with the code around it. A
--- handler that ends in a call has no frame of its own any more, nor has one that returned the error:
--- then its runner comes first, and stands for the route's place.
local function excerpt(told, route_place)
  for told_line in (told .. "\n" .. route_place):gmatch("[^\n]+") do
    if told_line:find("srv/(runner of", 1, true) then told_line = route_place end
    for path, at in told_line:gmatch("([^%s:]+%.%a+):(%d+)") do
      local lines = lines_around(path, tonumber(at))
      if lines then return path, tonumber(at), lines end
    end
  end
end

local function excerpt_html(told, route_place)
  local path, at, lines = excerpt(told, route_place)
  if not path then return "" end
  local out = {}
  for i, line in ipairs(lines) do
    local code = ("%4d  %s"):format(line.number, text.escape_html(line.text))
    out[i] = line.number == at and "<mark>" .. code .. "</mark>" or code .. "\n"
  end
  return ("<p><small>%s:%d</small></p><pre>%s</pre>"):format(text.escape_html(path), at, table.concat(out))
end

local function faults_html(faults)
  local out = {}
  for i, fault in ipairs(faults) do
    local line = tostring(fault.path or "") .. " " .. tostring(fault.message or fault.code)
    out[i] = "<li>" .. text.escape_html(line)
  end
  return "<ul>" .. table.concat(out, "\n") .. "</ul>"
end

local function details_html(err, place)
  local parts = {}
  if tells(err) and err.message ~= err.title then parts[1] = "<p>" .. text.escape_html(tostring(err.message)) end
  if tells(err) and err.errors then parts[#parts + 1] = faults_html(err.errors) end
  if env.dev and err.cause ~= nil then parts[#parts + 1] = "<p>" .. text.escape_html(tostring(err.cause)) .. "</p>" end
  if env.dev and err.status >= 500 then
    local trace = rawget(err, "trace")
    parts[#parts + 1] = excerpt_html(tostring(err.message) .. "\n" .. (trace or ""), place or "")
    parts[#parts + 1] = trace and "<pre>" .. text.escape_html(trace) .. "</pre>"
  end
  return table.concat(parts, "\n")
end

local PAGE = [[
<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>%d %s</title><style>%s</style>
<main><h1>%s</h1>
%s
<p><small>%d%s</small></p></main></html>
]]

local function page(err, place)
  local title = text.escape_html(err.title)
  local id = err.request_id and " &middot; request " .. text.escape_html(err.request_id) or ""
  return PAGE:format(err.status, title, STYLE, title, details_html(err, place), err.status, id)
end

-- ---------------------------------------------------------------------------------------------------

local PROBLEM, HTML = "application/problem+json", "text/html"

--- A browser asks for HTML by name; whatever else is asked for gets the problem.
local function wants_page(accept)
  return accept ~= nil and negotiate.media(accept, { PROBLEM, "application/json", HTML }) == HTML
end

---@param err srv.Error
---@param req srv.Request
---@param res srv.Response
---@param place string?  where the route's handler begins
---@return string body, integer status, table headers
function error_page.make(err, req, res, place)
  local headers = { ["Content-Type"] = PROBLEM, ["X-Content-Type-Options"] = "nosniff" }
  res:vary("Accept")
  if not wants_page(req:header("accept")) then return json.encode(problem(err, place)), err.status, headers end
  headers["Content-Type"] = "text/html; charset=utf-8"
  headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'"
  return page(err, place), err.status, headers
end

return error_page
