--- Accept, Accept-Language, Accept-Encoding: what is chosen is an offer, and the one that RFC 9110, 12.5
--- ranks first by a reading that is slow and simple.
local negotiate = require "srv.web.negotiate"

local function trim(text) return (text:gsub("^%s+", ""):gsub("%s+$", "")) end

--- The pieces of TEXT between MARKs that stand outside of quotes.
local function pieces(text, mark)
  local found, from, at = {}, 1, 1
  while at <= #text do
    local char = text:sub(at, at)
    if char == '"' then at = text:find('"', at + 1, true) or at end
    if char == mark then
      found[#found + 1] = text:sub(from, at - 1)
      from = at + 1
    end
    at = at + 1
  end
  found[#found + 1] = text:sub(from)
  return found
end

--- Name in lower case and value of "name = value"; nil: it is none.
local function parameter(field)
  local equals = field:find("=", 1, true)
  if not equals then return nil end
  local name, value = trim(field:sub(1, equals - 1)), trim(field:sub(equals + 1))
  if name == "" or name:find("%s") then return nil end
  if #value > 1 and value:byte(1) == 34 and value:byte(#value) == 34 and name:lower() ~= "q" then value = value:sub(2, -2) end
  return name:lower(), value:lower()
end

--- RFC 9110, 12.4.2: "0" or "1", perhaps with decimals.
local function weight_of(text)
  local whole, decimals = text:match("^([01])%.?(%d*)$")
  local weight = whole and tonumber(whole .. "." .. decimals .. "0")
  if not weight or weight > 1 or not text:find(".", 1, true) and decimals ~= "" then return 0 end
  return weight
end

--- "text/html;level=1;q=0.5" as { value, params, q }, or nil.
local function range_of(element)
  local fields = pieces(element, ";")
  local value = fields[1]:match("^%S+") -- what stands behind a blank is no one's
  if not value then return nil end
  local range = { value = value:lower(), params = {}, q = 1 }
  for i = 2, #fields do
    local name, text = parameter(fields[i])
    if name == "q" then
      range.q = weight_of(text)
      break
    end
    if name then range.params[name] = text end
  end
  return range
end

local function ranges_of(header)
  local ranges = {}
  for _, element in ipairs(pieces(header, ",")) do ranges[#ranges + 1] = range_of(trim(element)) end
  return ranges
end

local function split(value, mark)
  local at = value:find(mark, 1, true)
  if at then return value:sub(1, at - 1), value:sub(at + 1) end
  return value
end

--- How exactly RANGE names OFFER: 0 not at all.
local RANKS = {}

function RANKS.media(range, offer)
  local type, subtype = split(range.value, "/")
  if range.value == offer.value then
    local shared = 3
    for name, value in pairs(range.params) do
      local own = offer.params[name]
      if own ~= value and (own or name ~= "charset") then return 0.5 end
      shared = shared + 1
    end
    return shared
  end
  if subtype ~= "*" then return 0 end
  if type == "*" then return 1 end
  return type == split(offer.value, "/") and 2 or 0
end

local function begins_with(text, start) return text:sub(1, #start) == start end

function RANKS.language(range, offer)
  if range.value == offer.value then return 4 end
  if begins_with(offer.value, range.value .. "-") then return 3 end
  if begins_with(range.value, offer.value .. "-") then return 2 end
  return range.value == "*" and 1 or 0
end

function RANKS.encoding(range, offer)
  if range.value == offer.value then return 2 end
  return range.value == "*" and 1 or 0
end

--- { q, rank, order } of the range that speaks for OFFER.
local function liking(ranges, offer, rank)
  local best = { q = 0, rank = 0, order = 0 }
  for order, range in ipairs(ranges) do
    local exactness = rank(range, offer)
    if exactness > best.rank then best = { q = range.q, rank = exactness, order = order } end
  end
  return best
end

--- What an offer stands for besides its name.
local WHOLE = { ["text/html"] = "text/html;charset=utf-8" }

--- All offers that a client takes, best first; ours stand in the order that we have them in.
local function sorted(ranges, offers, rank)
  local likings = {}
  for i, offer in ipairs(offers) do
    local found = liking(ranges, range_of(WHOLE[offer] or offer), rank)
    found.i = i
    if found.q > 0 then likings[#likings + 1] = found end
  end
  table.sort(likings, function(a, b)
    if a.q ~= b.q then return a.q > b.q end
    if a.rank ~= b.rank then return a.rank > b.rank end
    if a.order ~= b.order then return a.order < b.order end
    return a.i < b.i
  end)
  return likings
end

local OFFERS = {
  media = { "text/html", "application/json", "text/csv;header=present", "image/png" },
  language = { "en", "de", "de-at", "zh-hant-tw" },
  encoding = { "br", "gzip", "identity" },
}

local function check(what, header)
  local offers = OFFERS[what]
  local ranges = ranges_of(header)
  local likings = sorted(ranges, offers, RANKS[what])
  local wanted = likings[1] and offers[likings[1].i]
  if what == "media" and not header:find("%S") then wanted = offers[1] end
  if not wanted and what == "encoding" then
    local own = liking(ranges, range_of "identity", RANKS.encoding)
    wanted = not (own.rank > 0 and own.q == 0) and "identity" or nil
  end
  local chosen = negotiate[what](header, offers)
  if chosen ~= wanted then
    error(("%s: %q should choose %s, not %s"):format(what, header, tostring(wanted), tostring(chosen)))
  end
end

return function(bytes)
  check("media", bytes)
  check("language", bytes)
  check("encoding", bytes)
  negotiate.is(bytes, { "json", "image/*", "text/csv" })
  negotiate.parameter(bytes, "charset")
end
