--- How long a shared cache may keep a response (RFC 9111, 3 and 4.2).
local parse_time = require "srv.base.time_parse"

--- Cache-Control as directive -> value or true; of repeats the first (RFC 9111, 4.2.1).
local function directives_of(line)
  local directives = {}
  for name, value in (line .. ","):gmatch("%s*([%w_-]+)%s*(=?[^,]*),") do
    local word = value:match('^=%s*"?([^"]*)"?')
    name = name:lower()
    if directives[name] == nil then directives[name] = word or true end
  end
  return directives
end

--- Seconds of a delta; what is no number is stale at once.
local function seconds(value)
  return type(value) == "string" and not value:find("%D") and tonumber(value) or 0
end

-- RFC 9110, 15.1: statuses that may be kept without being told so are the same that have a freshness
-- here; without an explicit lifetime we do not guess one.
local KEPT = {
  [200] = true, [203] = true, [204] = true, [300] = true, [301] = true, [308] = true, [404] = true, [405] = true,
  [410] = true, [414] = true, [501] = true, [302] = true, [307] = true,
}

local function lifetime(headers, directives)
  if directives["s-maxage"] then return seconds(directives["s-maxage"]) end
  if directives["max-age"] then return seconds(directives["max-age"]) end
  local expires, date = headers.expires, headers.date
  if not expires then return 0 end
  local expires_at, sent_at = parse_time(expires), date and parse_time(date)
  return expires_at and sent_at and expires_at - sent_at or 0
end

--- Whoever asked with credentials gets what is meant for them alone, unless the response says that it
--- is for all (RFC 9111, 3.5).
local function is_private(headers, directives, had_credentials)
  if directives.private or headers["set-cookie"] or headers.vary and headers.vary:find("*", 1, true) then return true end
  return had_credentials and not (directives.public or directives["s-maxage"] or directives["must-revalidate"])
end

---@param method string
---@param status integer
---@param headers table<string, string>  lower-case names
---@param had_credentials boolean        the request had an Authorization
---@return number  0: not at all
return function(method, status, headers, had_credentials)
  local directives = directives_of(headers["cache-control"] or "")
  if method ~= "GET" and method ~= "HEAD" or not KEPT[status] then return 0 end
  if directives["no-store"] or directives["no-cache"] or is_private(headers, directives, had_credentials) then return 0 end
  return math.max(0, lifetime(headers, directives) - seconds(headers.age))
end
