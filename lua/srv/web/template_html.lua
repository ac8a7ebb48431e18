--- HTML, as far as a template must follow it: in which place does a value stand?
---
--- A context is a table; feed() moves it over static text as the tokenizer of the HTML standard
--- (13.2.5) would move, value() says how a value there is to be escaped. Fields:
---
---   state    text | tag_open name tag attr after_attr before_value value unquoted | raw | end_tag
---            | comment declaration
---   element  of the tag we are in, or whose raw text we are in
---   name     what has been read of a tag's or an attribute's name
---   kind     of the attribute's value or raw text: plain url srcset js css html meta inert
---   delim    the quote of the value
---   glued    a tag's or attribute's name just ended at a template tag: it must not go on
---   url, prefix, dynamic   where in a URL we are (url_feed)
---   js, slash, nest        where in a script (template_js)
local template_js = require "srv.web.template_js"

local template_html = {}

local find, sub, match = string.find, string.sub, string.match

local function fail(offset, message) error({ offset = offset, message = message }, 0) end

-- ---- attributes ---------------------------------------------------------------------------------

-- HTML, "Attributes": those whose value is a URL.
local URL_ATTRIBUTES = {
  action = true, archive = true, background = true, cite = true, classid = true, codebase = true, formaction = true,
  href = true, icon = true, longdesc = true, manifest = true, ping = true, poster = true, profile = true, src = true,
  usemap = true, ["xlink:href"] = true,
}
-- SVG's animations can set a link's target.
local ANIMATIONS = { animate = true, set = true, animatemotion = true, animatetransform = true }
local ANIMATED = { to = true, from = true, by = true, values = true }

local KINDS = { style = "css", srcset = "srcset", imagesrcset = "srcset", srcdoc = "html" }

local function attribute_kind(element, name)
  if KINDS[name] then return KINDS[name] end
  if URL_ATTRIBUTES[name] or (element == "object" and name == "data") then return "url" end
  if ANIMATIONS[element] and ANIMATED[name] then return "url" end
  if element == "meta" and name == "content" then return "meta" end
  if find(name, "^on") or find(name, "^@") then return "js" end
  return "plain"
end

local ENTITIES = {
  quot = '"', apos = "'", lt = "<", gt = ">", amp = "&", colon = ":", sol = "/", quest = "?", num = "#",
  Tab = "\t", NewLine = "\n", grave = "`",
}

local function numeric_entity(text, base)
  local code = tonumber(text, base)
  return code and code < 128 and string.char(code) or "?"
end

--- An attribute's static text as the browser reads it, as far as it matters here: ASCII.
local function decode(text)
  text = text:gsub("&#[xX](%x+);?", function(hex) return numeric_entity(hex, 16) end)
  text = text:gsub("&#(%d+);?", function(digits) return numeric_entity(digits, 10) end)
  return (text:gsub("&(%a+);?", ENTITIES))
end

-- ---- URLs ---------------------------------------------------------------------------------------

local SCRIPT_SCHEMES = { javascript = true, vbscript = true }

--- Follows static text of a URL: "start", then "scheme" (what may yet turn out one), then "path",
--- "query" (after ? or #), or "script" (javascript:).
local function url_feed(context, text, offset)
  if context.url == "start" or context.url == "scheme" then
    context.prefix = context.prefix .. text
    local mark = match(text, "[:/?#]")
    if not mark then
      if find(context.prefix, "%S") then context.url = "scheme" end
      return
    end
    if mark == ":" and context.dynamic then
      fail(offset, "the scheme of a URL cannot come from a value: give the whole URL as one value")
    end
    local scheme = match(context.prefix, "^%s*([^:]*):")
    local is_script = mark == ":" and scheme and SCRIPT_SCHEMES[scheme:gsub("%s", ""):lower()]
    context.url = is_script and "script" or "path"
  end
  if context.url ~= "script" and find(text, "[?#]") then context.url = "query" end
end

local URL_ESCAPES = { start = "url_start", scheme = "url_more", path = "url_path", query = "url_query" }

local function url_value(context, offset)
  local escape = URL_ESCAPES[context.url]
  if context.url == "script" then fail(offset, "a value cannot stand in a javascript: URL") end
  if not escape then fail(offset, "the branches before this value end in different parts of the URL") end
  if context.url == "start" then context.url = "scheme" end
  context.dynamic = true
  return escape
end

-- ---- values of attributes and raw text ----------------------------------------------------------

local function begin_content(context, kind)
  context.kind, context.url, context.prefix, context.dynamic = kind, nil, "", nil
  if kind == "url" then context.url = "start" end
  if kind == "js" then template_js.begin(context) end
end

local function end_content(context)
  context.kind, context.url, context.prefix, context.dynamic = nil, nil, nil, nil
  context.js, context.slash, context.nest = nil, nil, nil
end

local function feed_content(context, text, offset)
  if context.kind == "url" then
    url_feed(context, text, offset)
  elseif context.kind == "js" then
    local message, at = template_js.feed(context, text)
    if message then fail(offset + at - 1, message) end
  elseif context.kind == "meta" then
    context.prefix = context.prefix .. text
  end
end

--- The type that a script says it has: no other is followed.
local function note_script_type(context, text)
  if context.element == "script" and context.attribute == "type" then
    context.script_type = (context.script_type or "") .. text
  end
end

-- ---- the states ---------------------------------------------------------------------------------

-- Elements whose content is no markup. Entities count in the first two only, but what the escape
-- for text leaves cannot end any of them.
local RAW = {
  textarea = "plain", title = "plain", iframe = "plain", noembed = "plain", noframes = "plain", xmp = "plain",
  plaintext = "plain", script = "js", style = "css",
}

local function is_script_type(text)
  if not text then return true end
  text = text:lower():match("^%s*([^;]*)"):gsub("%s+$", "")
  return text == "" or text == "module" or find(text, "json", 1, true) ~= nil or find(text, "^%a+/%a*script") ~= nil
    or find(text, "^%a+/x%-%a*script") ~= nil or text == "importmap" or text == "speculationrules"
end

local function end_start_tag(context)
  local kind = RAW[context.element]
  context.glued = nil
  if not kind then
    context.state, context.element, context.script_type = "text", nil, nil
    return
  end
  if context.element == "script" and not is_script_type(context.script_type) then kind = "inert" end
  context.state, context.script_type = "raw", nil
  begin_content(context, kind)
end

local states = {}

function states.text(context, text, at)
  local open = find(text, "<", at, true)
  if not open then return #text + 1 end
  context.state = "tag_open"
  return open + 1
end

function states.tag_open(context, text, at)
  if find(text, "^%a", at) then
    context.state, context.name = "name", ""
  elseif find(text, "^/%a", at) then
    context.state = "end_tag"
  elseif find(text, "^!%-%-", at) then
    context.state = "comment"
    return find(text, "^%-?>", at + 3) and at + 1 or at + 3 -- "<!-->" ends at once
  elseif find(text, "^[!?/]", at) then
    if at == #text and sub(text, at, at) ~= "?" then context.cut = true end
    context.state = "declaration"
  else
    context.state = "text"
  end
  return at
end

function states.name(context, text, at)
  local name, after = match(text, "^([^%s/>]*)()", at)
  context.name = context.name .. name
  if after <= #text then
    context.state, context.element, context.name = "tag", context.name:lower(), nil
  end
  return after
end

local function check_glue(context, text, at)
  local char = sub(text, at, at)
  if context.glued == "name" and not find(char, "[%s/>]") then
    fail(at, "a name in a tag cannot be pieced together from branches")
  end
  if char == "=" then fail(at, "an attribute's name cannot be pieced together from branches") end
  context.glued = find(char, "%s") and "space" or nil
end

function states.tag(context, text, at)
  if context.glued then check_glue(context, text, at) end
  local char = sub(text, at, at)
  if find(char, "[%s/]") then return at + 1 end
  if char == ">" then
    end_start_tag(context)
    return at + 1
  end
  context.state, context.name = "attr", char
  return at + 1
end

function states.attr(context, text, at)
  local name, after = match(text, "^([^%s/>=]*)()", at)
  context.name = context.name .. name
  if after > #text then return after end
  context.attribute, context.name = context.name:lower(), nil
  context.state = "after_attr"
  return after
end

function states.after_attr(context, text, at)
  local after = match(text, "^%s*()", at)
  if after > #text then return after end
  if sub(text, after, after) == "=" then
    context.state = "before_value"
    return after + 1
  end
  context.state, context.attribute = "tag", nil
  return after
end

function states.before_value(context, text, at)
  local after = match(text, "^%s*()", at)
  if after > #text then return after end
  local char = sub(text, after, after)
  if char == ">" then
    context.state, context.attribute = "tag", nil
    return after
  end
  begin_content(context, attribute_kind(context.element, context.attribute))
  if char == '"' or char == "'" then
    context.state, context.delim = "value", char
    return after + 1
  end
  context.state = "unquoted"
  return after
end

local function end_value(context)
  end_content(context)
  context.state, context.delim, context.attribute = "tag", nil, nil
end

function states.value(context, text, at)
  local close = find(text, context.delim, at, true)
  local static = decode(sub(text, at, close and close - 1))
  note_script_type(context, static)
  feed_content(context, static, at)
  if not close then return #text + 1 end
  end_value(context)
  return close + 1
end

function states.unquoted(context, text, at)
  local static, after = match(text, "^([^%s>]*)()", at)
  note_script_type(context, decode(static))
  feed_content(context, decode(static), at)
  if after <= #text then end_value(context) end
  return after
end

--- The "</script" that ends the raw text, from AT on.
local function find_raw_end(element, text, at)
  while true do
    local open = find(text, "</", at, true)
    if not open then return nil end
    local name = match(text, "^%a+", open + 2)
    if name and name:lower() == element and find(text, "^[%s/>]", open + 2 + #name) then return open end
    at = open + 2
  end
end

function states.raw(context, text, at)
  local close = find_raw_end(context.element, text, at)
  feed_content(context, sub(text, at, close and close - 1), at)
  if not close then return #text + 1 end
  end_content(context)
  context.state, context.element = "end_tag", nil
  return close + 2
end

--- To the next CLOSE, which ends a tag, comment or declaration.
local function until_close(close, plain)
  return function(context, text, at)
    local _, last = find(text, close, at, plain)
    if not last then return #text + 1 end
    context.state = "text"
    return last + 1
  end
end

states.end_tag = until_close(">", true)
states.declaration = until_close(">", true)
states.comment = until_close("%-%-!?>", false)

-- ---- the machine --------------------------------------------------------------------------------

---@return table context
function template_html.start() return { state = "text" } end

--- Moves over static text. Raises { offset, message }.
---@param context table
---@param text string
function template_html.feed(context, text)
  local at = 1
  while at <= #text do at = states[context.state](context, text, at) end
end

--- A template tag (of code or a value) stands here: names that were being read end, or cannot.
---@param context table
function template_html.cut(context)
  if context.state == "tag_open" or context.cut then
    fail(0, "a template tag cannot stand right after <: it would be a tag's name (text is written &lt;)")
  elseif context.state == "name" then
    context.state, context.element, context.name, context.glued = "tag", context.name:lower(), nil, "name"
  elseif context.state == "attr" then
    context.state, context.name, context.glued = "tag", nil, "name"
  elseif context.state == "after_attr" then
    context.state, context.attribute, context.glued = "tag", nil, "space"
  end
end

local function content_value(context, offset)
  local kind = context.kind
  if kind == "url" then return url_value(context, offset) end
  if kind == "srcset" or kind == "css" then return kind end
  if kind == "html" then return "html_twice" end
  if kind == "inert" then fail(offset, "a value cannot stand in a script of this type") end
  if kind == "meta" and find(context.prefix:lower(), "url%s*=%s*['\"]?%s*$") then return "url_start" end
  if kind ~= "js" then return "html" end
  local escape, message = template_js.value(context)
  if not escape then fail(offset, message) end
  return escape == "json" and context.state ~= "raw" and "json_attr" or escape
end

local NO_VALUE = {
  tag = "a value cannot stand in a tag: only inside the quotes of an attribute",
  before_value = "a value of an attribute needs quotes",
  unquoted = "a value of an attribute needs quotes",
  end_tag = "a value cannot stand in an end tag",
  declaration = "a value cannot stand in a declaration",
}

--- How the value here is escaped: a function's name in template_escape. A RAW one may stand
--- anywhere, and is taken on trust.
---@param context table
---@param is_raw boolean
---@return string
function template_html.value(context, is_raw)
  if is_raw and NO_VALUE[context.state] then
    if context.state == "before_value" then
      begin_content(context, "plain")
      context.state = "unquoted"
    end
    return "trusted"
  end
  local refused = NO_VALUE[context.state]
  if refused then
    local name_went_on = context.state == "tag" and context.glued == "name"
    fail(0, name_went_on and "a value cannot be part of a name in a tag" or refused)
  end
  if context.state == "value" or context.state == "raw" then return content_value(context, 0) end
  return "html"
end

-- ---- branches -----------------------------------------------------------------------------------

local COMPARED = {
  "state", "element", "name", "attribute", "kind", "delim", "js", "nest", "script_type",
}

local GLUE = { name = 2, space = 1 }

local function stricter(a, b) return (GLUE[a] or 0) >= (GLUE[b] or 0) and a or b end

local BEFORE_QUERY = { start = true, scheme = true, path = true }

--- The part of a URL after branches that end in A and in B: if one of them may still be before the
--- end of a scheme, so may what follows.
local function join_url(a, b)
  if a == b then return a end
  return BEFORE_QUERY[a] and BEFORE_QUERY[b] and "scheme" or "unclear"
end

--- What holds after branches that end in A and in B; nil where they differ too much.
---@param a table
---@param b table
---@return table?
function template_html.join(a, b)
  for _, field in ipairs(COMPARED) do
    if a[field] ~= b[field] then return nil end
  end
  if (a.url == "script") ~= (b.url == "script") then return nil end
  local joined = {}
  for field, value in pairs(a) do joined[field] = value end
  joined.glued = stricter(a.glued, b.glued)
  joined.url = join_url(a.url, b.url)
  -- Two beginnings of a scheme: what comes next must not complete either.
  joined.dynamic = a.dynamic or b.dynamic or a.prefix ~= b.prefix
  if a.slash ~= b.slash then joined.slash = "unclear" end
  return joined
end

local NAMES = {
  text = "in text", tag = "in a tag", before_value = "before an attribute's value", comment = "in a comment",
  end_tag = "in an end tag", declaration = "in a declaration",
}

--- Where CONTEXT is, said to people.
---@param context table
---@return string
function template_html.describe(context)
  local within = context.js and context.js ~= "code" and "in a string, comment or pattern of a script, " or ""
  if context.state == "raw" then return ("%sin <%s>"):format(within, context.element) end
  if context.attribute then return ("%sin the attribute %s"):format(within, context.attribute) end
  return NAMES[context.state] or "in a tag"
end

--- May a template of its own, or a block that ends here, stand here?
---@param context table
---@return boolean
function template_html.is_text(context) return context.state == "text" end

return template_html
