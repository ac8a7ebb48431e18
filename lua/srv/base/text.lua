--- Words for messages and escapes for places: what several modules need of plain text.
local text = {}

--- Edit distance, with a swap of neighbours as one step ("tiem_out" is one from "time_out").
---@param a string
---@param b string
---@return integer
local function distance(a, b)
  local before, row = {}, {}
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    local above = row
    row = { [0] = i }
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      local best = math.min(above[j] + 1, row[j - 1] + 1, above[j - 1] + cost)
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        best = math.min(best, before[j - 2] + 1)
      end
      row[j] = best
    end
    before = above
  end
  return row[#b]
end

--- The candidate that NAME was probably meant to be, or nil when none is near.
---@param name string
---@param candidates table<string, any>  its keys are the names
---@return string?
function text.nearest(name, candidates)
  local best, best_distance = nil, math.max(2, math.floor(#name / 3)) + 1
  for candidate in pairs(candidates) do
    local d = type(candidate) == "string" and distance(name, candidate) or best_distance
    if d < best_distance or d == best_distance and best and candidate < best then
      best, best_distance = candidate, d
    end
  end
  return best
end

--- `unknown option "time_out", did you mean "timeout"?`
---@param what string
---@param name any
---@param candidates table<string, any>
---@return string
function text.unknown(what, name, candidates)
  local message = ("unknown %s %q"):format(what, tostring(name))
  local near = type(name) == "string" and text.nearest(name, candidates)
  return near and ("%s, did you mean %q?"):format(message, near) or message
end

local ENTITIES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

--- For text and quoted attributes of HTML.
---@param s string
---@return string
function text.escape_html(s)
  return (s:gsub("[&<>\"']", ENTITIES))
end

local function percent(byte) return ("%%%02X"):format(byte:byte()) end

--- All but the unreserved characters of RFC 3986, 2.3.
---@param s string
---@return string
function text.percent_encode(s)
  return (s:gsub("[^%w%-._~]", percent))
end

local function unpercent(hex) return string.char(tonumber(hex, 16)) end

--- Broken escapes stay as they are.
---@param s string
---@return string
function text.percent_decode(s)
  return (s:gsub("%%(%x%x)", unpercent))
end

--- A URL as it may stand in a header: what RFC 3986 forbids is percent-encoded, escapes that are
--- there stay ("a b" -> "a%20b", "a%20b" -> "a%20b").
---@param url string
---@return string
function text.encode_url(url)
  url = url:gsub("[^%w%-._~:/?#%[%]@!$&'()*+,;=%%]", percent)
  return (url:gsub("%%(%x?%x?)", function(hex) return #hex == 2 and "%" .. hex or "%25" .. hex end))
end

--- "Not Found" -> "not_found"
---@param phrase string
---@return string
function text.snake_case(phrase)
  return (phrase:lower():gsub("[^%w]+", "_"):gsub("^_", ""):gsub("_$", ""))
end

return text
