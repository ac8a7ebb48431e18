--- How a value is written into a page: a function for each kind of place. template_html tells the
--- place; here a value becomes text that cannot leave it.
local bytes = require "srv.web.template_bytes"
local json = require "srv.base.json"
local text = require "srv.base.text"
local utf8 = require "srv.base.utf8"

local escape = {}

local find, byte, sub, format = string.find, string.byte, string.sub, string.format
local null = json.null

-- ---- values as text -----------------------------------------------------------------------------

-- What raw() gives: text to be taken as it is.
local Raw = { __name = "srv.RawText" }
Raw.__tostring = function(self) return self.text end

-- What json() gives: as JSON in any place, but not twice in a script.
local Json = { __name = "srv.JsonText" }

--- JSON in which nothing can end a script, begin a comment or break a line of JavaScript.
local MASKED = { ["<"] = "\\u003c", [">"] = "\\u003e", ["&"] = "\\u0026" }

local function encode_masked(value)
  local encoded = json.encode(value == nil and null or value)
  encoded = encoded:gsub("[<>&]", MASKED)
  return (encoded:gsub("\226\128[\168\169]", { ["\226\128\168"] = "\\u2028", ["\226\128\169"] = "\\u2029" }))
end

Json.__tostring = function(self) return encode_masked(self.value) end

local WHOLE_MAX = 2 ^ 53

local function number_text(v)
  if v % 1 == 0 and v > -WHOLE_MAX and v < WHOLE_MAX then return format("%d", v) end
  return tostring(v)
end

--- V as plain text; "" for nil and null. Tables need a __tostring: one that has none was not meant
--- to be printed.
local function to_text(v)
  local kind = type(v)
  if kind == "string" then return v end
  if v == nil or v == null then return "" end
  if kind == "number" then return number_text(v) end
  if kind == "boolean" or (getmetatable(v) or {}).__tostring then return tostring(v) end
  if kind == "cdata" then return (tostring(v):gsub("U?LL$", "")) end
  error(("a %s cannot be printed: print a field of it, or json(...)"):format(kind), 0)
end

--- The text of V if raw() made it.
local function raw_text(v) return type(v) == "table" and getmetatable(v) == Raw and v.text or nil end

--- Where no escape would help, only raw() may stand, and not another function of that name.
function escape.trusted(v) return raw_text(v) or error("only raw() may stand here", 0) end

--- Marks text as safe where it is printed.
---@param v any
---@return table
function escape.raw(v) return setmetatable({ text = to_text(v) }, Raw) end

--- Any value as JSON.
---@param v any
---@return table
function escape.as_json(v) return setmetatable({ value = v }, Json) end

-- ---- HTML ---------------------------------------------------------------------------------------

local escape_marks = bytes.replacer { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

--- Text, and attributes in quotes.
---@param v any
---@return string
function escape.html(v)
  if type(v) ~= "string" then
    local raw = raw_text(v)
    if raw then return raw end
    v = to_text(v)
  end
  return escape_marks(v)
end

--- What stands first in a <textarea> or <pre>: browsers drop a newline there.
---@param v any
---@return string
function escape.html_first(v)
  local escaped = escape.html(v)
  return find(escaped, "^[\r\n]") and "\n" .. escaped or escaped
end

--- A comment: with the text that follows, the value must not make its end.
function escape.comment(v)
  local raw = raw_text(v)
  if raw then return raw end
  return (escape.html(v):gsub("[-!]$", { ["-"] = "&#45;", ["!"] = "&#33;" }))
end

--- srcdoc: a page inside an attribute.
function escape.html_twice(v)
  local raw = raw_text(v)
  return text.escape_html(raw or text.escape_html(to_text(v)))
end

-- ---- URLs ---------------------------------------------------------------------------------------

local SCHEMES = { http = true, https = true, mailto = true, tel = true }
local REFUSED_URL = "#"

--- Has V a scheme that a link may have, or none? Before the first of / ? # a colon makes a scheme,
--- whatever blanks and control characters browsers would drop from it.
local function has_safe_scheme(v)
  local mark = find(v, "[:/?#]")
  if not mark or byte(v, mark) ~= 58 then return true end
  return SCHEMES[sub(v, 1, mark - 1):lower()] == true
end

-- What neither a URL nor HTML need escape, "%" left out, for its escape may be broken.
local has_odd_byte = bytes.finder("[^%w%-._~:/?#%[%]@!$()*+,;=]")
local has_reserved_byte = bytes.finder("[^%w%-._~]")
local has_colon = bytes.finder(":")

--- RFC 3986's characters and whole escapes stay, all else is percent-encoded.
local function normalized(v) return has_odd_byte(v) and text.escape_html(text.encode_url(v)) or v end

--- A whole URL, or the beginning of one. Browsers drop blanks before it, so they are dropped here.
function escape.url_start(v)
  local raw = raw_text(v)
  if raw then return raw end
  v = to_text(v)
  if not has_colon(v) and not has_odd_byte(v) then return v end
  v = sub(v, find(v, "[^%z\1-\32]") or 1)
  return has_safe_scheme(v) and normalized(v) or REFUSED_URL
end

--- More of a URL whose scheme may not be over yet: it must not be completed by a value.
function escape.url_more(v)
  local raw = raw_text(v)
  if raw then return raw end
  v = to_text(v)
  local mark = find(v, "[:/?#]")
  return (not mark or byte(v, mark) ~= 58) and normalized(v) or REFUSED_URL
end

--- More of its path.
function escape.url_path(v) return raw_text(v) or normalized(to_text(v)) end

--- A part of its query or fragment: one value, whatever is in it.
function escape.url_query(v)
  local raw = raw_text(v)
  if raw then return raw end
  v = to_text(v)
  return has_reserved_byte(v) and text.percent_encode(v) or v
end

--- A list of images: "a.png 1x, b.png 2x". Every URL in it is looked at.
function escape.srcset(v)
  local raw = raw_text(v)
  if raw then return raw end
  local safe = to_text(v):gsub("[^,]+", function(candidate)
    local lead, url, rest = candidate:match("^(%s*)(%S*)(.*)$")
    return lead .. (has_safe_scheme(url) and text.encode_url(url) or REFUSED_URL) .. rest
  end)
  return text.escape_html(safe)
end

local function step(text_of_step)
  local lead, url = text_of_step:match("^([%z\1-\32]*)(.*)$")
  return lead .. (has_safe_scheme(url) and url or REFUSED_URL)
end

--- Steps of an animation: numbers, or URLs where it is a link's target that it animates.
function escape.steps(v)
  local raw = raw_text(v)
  if raw then return raw end
  return text.escape_html((to_text(v):gsub("[^;]+", step)))
end

-- ---- scripts ------------------------------------------------------------------------------------

--- A value of JavaScript, in a <script>.
function escape.json(v)
  if type(v) == "table" then
    local mark = getmetatable(v)
    if mark == Raw then return v.text end
    if mark == Json then return encode_masked(v.value) end
  end
  return encode_masked(v)
end

--- The same in an attribute.
function escape.json_attr(v)
  return raw_text(v) or text.escape_html(escape.json(v))
end

--- The same after a word or a sign, with which it must not become one.
function escape.json_apart(v) return " " .. escape.json(v) end

function escape.json_attr_apart(v) return " " .. escape.json_attr(v) end

local function unicode_escape(char) return format("\\u%04x", byte(char)) end

local SEPARATORS = { ["\226\128\168"] = "\\u2028", ["\226\128\169"] = "\\u2029" }

--- The inside of a string of JavaScript, in a script or an attribute.
function escape.js_string(v)
  local raw = raw_text(v)
  if raw then return raw end
  local escaped = to_text(v):gsub("[%c\127\"'\\<>&`/=$]", unicode_escape)
  return (escaped:gsub("\226\128[\168\169]", SEPARATORS))
end

-- ---- styles -------------------------------------------------------------------------------------

-- What stands for a value that is no number and no word: CSS drops a declaration with it.
local REFUSED_STYLE = "srv-refused"

--- A value in a style: numbers, units, colours, words; nothing that opens, closes or calls.
function escape.css(v)
  local raw = raw_text(v)
  if raw then return raw end
  v = to_text(v)
  return find(v, "[^%w%%#%., _+-]") and REFUSED_STYLE or v
end

-- ---- other kinds of template --------------------------------------------------------------------

--- .txt
function escape.plain(v) return raw_text(v) or to_text(v) end

local REPLACEMENT = "\239\191\189" -- U+FFFD

local function repair(run) return utf8.length(run) and run or REPLACEMENT end

--- .xml: XML 1.0 has no place for most control characters, escaped or not, nor for U+FFFE and U+FFFF, and
--- readers refuse a document that is not UTF-8.
function escape.xml(v)
  local raw = raw_text(v)
  if raw then return raw end
  v = to_text(v):gsub("[%z\1-\8\11\12\14-\31]", REPLACEMENT):gsub("\239\191[\190\191]", REPLACEMENT)
  if not utf8.length(v) then v = v:gsub("[\128-\255][\128-\191]*", repair) end
  return escape_marks(v)
end

--- .json: a value.
function escape.json_value(v)
  if type(v) == "table" and getmetatable(v) == Json then v = v.value end
  return raw_text(v) or json.encode(v == nil and null or v)
end

--- .json: the inside of a string.
function escape.json_string(v)
  return raw_text(v) or sub(json.encode(to_text(v)), 2, -2)
end

return escape
