--- Escapes for places: HTML, URLs, identifiers.
local text = {}

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

--- S without the blanks at both ends. Not "^%s*(.-)%s*$": that is quadratic in inner blanks, and a client
--- could hold a worker for seconds with the 30 KiB of one header.
---@param s string
---@return string
function text.trim(s)
  local from = s:find "%S"
  return from and s:match(".*%S", from) or ""
end

--- What HTTP takes for the name of a field or a cookie (RFC 9110, 5.6.2).
---@param s string
---@return boolean
function text.is_token(s)
  return s:find("^[%w!#$%%&'*+%-.^_`|~]+$") ~= nil
end

--- Whether the value of a field may be S: one line.
---@param s string
---@return boolean
function text.is_field_value(s)
  return not s:find("[%z\1-\8\10-\31\127]")
end

--- "Not Found" -> "not_found"
---@param phrase string
---@return string
function text.snake_case(phrase)
  return (phrase:lower():gsub("[^%w]+", "_"):gsub("^_", ""):gsub("_$", ""))
end

return text
