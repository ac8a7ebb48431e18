--- URLs in attributes, as far as a template must follow them: could a value make a scheme of it?
---
---   url      "start", "scheme" (what may yet turn out one), "path", "query" (after ? or #), "script"
---            (javascript:), "unclear" after branches that differ
---   prefix   the static text so far
---   dynamic  has a value, or one of several texts, gone before
local template_url = {}

local find, match = string.find, string.match

local SCRIPT_SCHEMES = { javascript = true, vbscript = true }

---@param context table
function template_url.begin(context) context.url, context.prefix, context.dynamic = "start", "", nil end

--- Follows static TEXT. Returns what is wrong with it.
---@param context table
---@param text string
---@return string? message
function template_url.feed(context, text)
  if context.url == "start" or context.url == "scheme" then
    context.prefix = context.prefix .. text
    local mark = match(text, "[:/?#]")
    if not mark then
      if find(context.prefix, "%S") then context.url = "scheme" end
      return nil
    end
    if mark == ":" and context.dynamic then
      return "the scheme of a URL cannot come from a value: give the whole URL as one value"
    end
    local scheme = match(context.prefix, "^[%z\1-\32]*([^:]*):")
    local is_script = mark == ":" and scheme and SCRIPT_SCHEMES[scheme:gsub("%s", ""):lower()]
    context.url = is_script and "script" or "path"
  end
  if context.url ~= "script" and find(text, "[?#]") then context.url = "query" end
end

local ESCAPES = { start = "url_start", scheme = "url_more", path = "url_path", query = "url_query" }

--- How a value that stands here is written; nil and a message where it cannot stand.
---@param context table
---@return string?
---@return string? message
function template_url.value(context)
  local escape = ESCAPES[context.url]
  if context.url == "script" then return nil, "a value cannot stand in a javascript: URL" end
  if not escape then return nil, "the branches before this value end in different parts of the URL" end
  if context.url == "start" then context.url = "scheme" end
  context.dynamic = true
  return escape
end

local BEFORE_QUERY = { start = true, scheme = true, path = true }

--- If one of two branches may still be before the end of a scheme, so may what follows.
local function join_parts(a, b)
  if a == b then return a end
  return BEFORE_QUERY[a] and BEFORE_QUERY[b] and "scheme" or "unclear"
end

--- Joins branches that end in A and in B into JOINED; false if they cannot be.
---@param a table
---@param b table
---@param joined table
---@return boolean
function template_url.join(a, b, joined)
  if (a.url == "script") ~= (b.url == "script") then return false end
  joined.url = join_parts(a.url, b.url)
  -- Two beginnings of a scheme: what comes next must not complete either.
  joined.dynamic = a.dynamic or b.dynamic or a.prefix ~= b.prefix
  return true
end

return template_url
