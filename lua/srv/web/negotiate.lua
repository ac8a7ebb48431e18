--- Content negotiation (RFC 9110, 12): which of the offers a client likes best.
---
--- Among those of one weight the range that names the offer more exactly wins, then the client's
--- order, then ours.
local http = require "srv.core.http"
local misuse = require "srv.core.task".misuse

local negotiate = {}

--- "a;q=0.5, b" as { { value, q, order }, ... }; broken weights count as 0.
local function parse(header)
  local ranges = {}
  for element in header:gmatch("[^,]+") do
    local value, parameters = element:match("^%s*([^;%s]+)%s*(.*)$")
    if value then
      local weight = parameters:match(";%s*[qQ]%s*=%s*([^;%s]*)")
      local q = weight and (tonumber(weight) or 0) or 1
      ranges[#ranges + 1] = { value = value:lower(), q = q >= 0 and q <= 1 and q or 0, order = #ranges + 1 }
    end
  end
  return ranges
end

--- How exactly a media range names a type: 0 not at all, 1 "*/*", 2 "text/*", 3 itself.
local function media_rank(range, offer)
  if range == offer then return 3 end
  if range == "*/*" then return 1 end
  local family = range:match("^([^/]+)/%*$")
  return family and family == offer:match("^[^/]+") and 2 or 0
end

local function language_rank(range, offer)
  if range == offer then return 4 end
  if offer:sub(1, #range + 1) == range .. "-" then return 3 end
  if range:sub(1, #offer + 1) == offer .. "-" then return 2 end
  return range == "*" and 1 or 0
end

local function coding_rank(range, offer)
  return range == offer and 2 or range == "*" and 1 or 0
end

--- The range that speaks for OFFER, most exact first.
local function range_for(ranges, offer, rank)
  local best, best_rank = nil, 0
  for _, range in ipairs(ranges) do
    local r = rank(range.value, offer)
    if r > best_rank then best, best_rank = range, r end
  end
  return best, best_rank
end

local function better(a, b)
  if not b then return true end
  if a.q ~= b.q then return a.q > b.q end
  if a.rank ~= b.rank then return a.rank > b.rank end
  return a.order < b.order
end

--- Index of the offer that is liked best, or nil. NAMES: what the ranges are compared with.
local function choose(header, names, rank)
  local ranges = parse(header)
  local best
  for i, name in ipairs(names) do
    local range, exactness = range_for(ranges, name:lower(), rank)
    local candidate = range and { i = i, q = range.q, rank = exactness, order = range.order }
    if candidate and candidate.q > 0 and better(candidate, best) then best = candidate end
  end
  return best and best.i
end

local function bare(media_type) return (media_type:match("^[^;%s]+")) end

--- "json", ".html", "text/csv; charset=utf-8" -> "application/json", ...
---@param name string
---@return string
function negotiate.media_type(name)
  return bare(http.media_type(name) or misuse(("unknown media type %q"):format(name)))
end

--- The offer that fits Accept best; without the header the first one.
---@param header string?
---@param offers string[]  "json", "html", media types
---@return string?
function negotiate.media(header, offers)
  if not header then return offers[1] end
  local names = {}
  for i, offer in ipairs(offers) do names[i] = negotiate.media_type(offer) end
  return offers[choose(header, names, media_rank)]
end

---@param header string?
---@param offers string[]
---@return string?
function negotiate.language(header, offers)
  if not header then return offers[1] end
  return offers[choose(header, offers, language_rank)]
end

--- "identity" is fine unless it is forbidden.
---@param header string?
---@param offers string[]
---@return string?
function negotiate.encoding(header, offers)
  if not header then return offers[1] end
  local chosen = offers[choose(header, offers, coding_rank)]
  if chosen then return chosen end
  local range = range_for(parse(header), "identity", coding_rank)
  for _, offer in ipairs(offers) do
    if offer == "identity" and not (range and range.q == 0) then return offer end
  end
end

--- The one of TYPES that a Content-Type fits: "json" (also "+json"), "image/*", "text/csv".
---@param content_type string?
---@param types string[]
---@return string?
function negotiate.is(content_type, types)
  local sent = content_type and bare(content_type:lower())
  if not sent then return nil end
  for _, name in ipairs(types) do
    local wanted = name:find("/", 1, true) and name:lower() or negotiate.media_type(name)
    local suffix = wanted:match("^application/(%w+)$")
    if media_rank(wanted, sent) > 0 or suffix and sent:sub(-#suffix - 1) == "+" .. suffix then return name end
  end
end

--- The value of a parameter of a media type, unquoted and in lower case.
---@param content_type string
---@param name string
---@return string?
function negotiate.parameter(content_type, name)
  for key, value in content_type:gmatch(";%s*([%w-]+)%s*=%s*([^;]*)") do
    if key:lower() == name then return (value:gsub('^"', ""):gsub('"?%s*$', ""):lower()) end
  end
end

return negotiate
