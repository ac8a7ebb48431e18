--- Content negotiation (RFC 9110, 12): which of the offers a client likes best.
---
--- Among those of one weight the range that names the offer more exactly wins, then the client's
--- order, then ours.
local http = require "srv.core.http"
local misuse = require "srv.core.task".misuse
local text = require "srv.base.text"

local negotiate = {}

local PARTS_IN_QUOTES = { [","] = "\1", [";"] = "\2" }

local function mask(quoted) return (quoted:gsub("[,;]", PARTS_IN_QUOTES)) end

--- LIST with the commas and semicolons in quotes made into what parts nothing.
local function without_quoted_parts(list)
  return list:find('"', 1, true) and list:gsub('"[^"]*"', mask) or list
end

local function each_parameter(list)
  return list:gmatch ";%s*([^=;%s]+)%s*=([^;]*)"
end

local function unquote(value)
  value = text.trim(value)
  return value:match '^"(.*)"$' or value
end

--- A weight as RFC 9110, 12.4.2 writes it; anything else is 0.
local function read_weight(written)
  local q = (written:find "^[01]$" or written:find "^[01]%.%d*$") and tonumber(written) or 0
  return q <= 1 and q or 0
end

--- The weight, and the parameters that stand before it: nil for none.
local function read_parameters(list)
  local params
  for name, value in each_parameter(list) do
    if name:lower() == "q" then return read_weight(text.trim(value)), params end
    params = params or {}
    params[name:lower()] = unquote(value):lower()
  end
  return 1, params
end

--- "a;q=0.5, b" as { { value, params, q, order }, ... }
local function parse(header)
  local ranges = {}
  for element in without_quoted_parts(header):gmatch "[^,]+" do
    local value, parameters = element:match "^%s*([^;%s]+)(.*)$"
    if value then
      local q, params = read_parameters(parameters)
      ranges[#ranges + 1] = { value = value:lower(), params = params, q = q, order = #ranges + 1 }
    end
  end
  return ranges
end

--- How many of a range's parameters the offer has, or nil: one of them is another. Nobody offers a charset
--- by name, and old clients ask for one.
local function shared_parameters(wanted, offered)
  local count = 0
  for name, value in pairs(wanted or {}) do
    if offered[name] ~= value and (name ~= "charset" or offered[name]) then return nil end
    count = count + 1
  end
  return count
end

local FOREIGN_PARAMETERS = 0.5

--- How exactly a media range names a type: 0 not at all, 1 "*/*", 2 "text/*", from 3 on itself. One with
--- parameters that the offer has not speaks for it only where no other does.
local function media_rank(range, offer)
  if range.value == offer.value then
    local shared = shared_parameters(range.params, offer.params or {})
    return shared and 3 + shared or FOREIGN_PARAMETERS
  end
  if range.value == "*/*" then return 1 end
  local family = range.value:match "^([^/]+)/%*$"
  return family and family == offer.value:match "^[^/]+" and 2 or 0
end

local function language_rank(asked, offered)
  local range, offer = asked.value, offered.value
  if range == offer then return 4 end
  if offer:sub(1, #range + 1) == range .. "-" then return 3 end
  if range:sub(1, #offer + 1) == offer .. "-" then return 2 end
  return range == "*" and 1 or 0
end

local function coding_rank(range, offer)
  return range.value == offer.value and 2 or range.value == "*" and 1 or 0
end

--- The range that speaks for OFFER, most exact first.
local function range_for(ranges, offer, rank)
  local best, best_rank = nil, 0
  for _, range in ipairs(ranges) do
    local r = rank(range, offer)
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

--- Index of the offer that is liked best, or nil. OFFERED: what the ranges are compared with.
local function choose(header, offered, rank)
  local ranges = parse(header)
  local best
  for i, offer in ipairs(offered) do
    local range, exactness = range_for(ranges, offer, rank)
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

local function as_offer(name)
  return parse(name)[1] or { value = "" }
end

local function as_offers(names)
  local offers = {}
  for i, name in ipairs(names) do offers[i] = as_offer(name) end
  return offers
end

local function as_media_offer(name)
  return as_offer(http.media_type(name) or misuse(("unknown media type %q"):format(name)))
end

--- The offer that fits Accept best; without the header, or with an empty one, the first one.
---@param header string?
---@param offers string[]  "json", "html", media types
---@return string?
function negotiate.media(header, offers)
  if not header or not header:find "%S" then return offers[1] end
  local offered = {}
  for i, offer in ipairs(offers) do offered[i] = as_media_offer(offer) end
  return offers[choose(header, offered, media_rank)]
end

---@param header string?
---@param offers string[]
---@return string?
function negotiate.language(header, offers)
  if not header then return offers[1] end
  return offers[choose(header, as_offers(offers), language_rank)]
end

--- "identity" is fine unless it is forbidden.
---@param header string?
---@param offers string[]
---@return string?
function negotiate.encoding(header, offers)
  if not header then return offers[1] end
  local chosen = offers[choose(header, as_offers(offers), coding_rank)]
  if chosen then return chosen end
  local range = range_for(parse(header), as_offer "identity", coding_rank)
  for _, offer in ipairs(offers) do
    if offer == "identity" and not (range and range.q == 0) then return offer end
  end
  return nil
end

--- What people call the two types of forms.
local FORMS = {
  form = "application/x-www-form-urlencoded", urlencoded = "application/x-www-form-urlencoded", multipart = "multipart/*",
}

--- The one of TYPES that a Content-Type fits: "json" (also "+json"), "image/*", "text/csv", "form", "multipart".
---@param content_type string?
---@param types string[]
---@return string?
function negotiate.is(content_type, types)
  local sent = content_type and bare(content_type:lower())
  if not sent or not sent:find("/", 1, true) then return nil end
  for _, name in ipairs(types) do
    local wanted = FORMS[name] or name:find("/", 1, true) and name:lower() or negotiate.media_type(name)
    local suffix = wanted:match "^application/(%w+)$"
    local fits = media_rank({ value = wanted }, { value = sent }) > 0
    if fits or suffix and sent:sub(-#suffix - 1) == "+" .. suffix then return name end
  end
end

--- The value of a parameter of a media type, unquoted and in lower case.
---@param content_type string
---@param name string
---@return string?
function negotiate.parameter(content_type, name)
  for key, value in each_parameter(without_quoted_parts(content_type)) do
    if key:lower() == name then return unquote(value):lower() end
  end
end

return negotiate
