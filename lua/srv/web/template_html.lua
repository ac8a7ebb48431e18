--- HTML, as far as a template must follow it: in which place does a value stand?
---
--- A context is a table; feed() moves it over static text as the tokenizer of the HTML standard
--- (13.2.5) would move, value() says how a value there is to be escaped. Fields:
---
---   state    text | tag_open name tag attr after_attr before_value value unquoted | raw | comment
---            | declaration
---   ending   the tag is an end tag
---   element  of the tag we are in, or whose raw text we are in
---   name     what has been read of a tag's or an attribute's name
---   delim    the quote of the value
---   glued    a tag's or attribute's name just ended at a template tag: it must not go on
---   closes   the "/" that may close the tag stood last
---   kind, prefix, url, js, ...   what stands in a value or in raw text (template_content)
---   rest     of raw text or a comment: its last bytes, if they may begin what ends it
---   hidden   of a script: after its "<!--"
---   fresh    nothing yet in an element whose first newline browsers drop
---   foreign  how many <svg> and <math> are open;  noscript  is one open
local content = require "srv.web.template_content"
local template_raw = require "srv.web.template_raw"

local template_html = {}

local find, sub, match = string.find, string.sub, string.match

local function fail(offset, message, ...)
  error({ offset = offset, message = select("#", ...) > 0 and message:format(...) or message }, 0)
end

-- ---- what browsers may read in two ways ---------------------------------------------------------

--- Inside <noscript> a browser with scripts reads only on to its end, wherever that stands.
local function check_noscript(context, static, offset)
  local stop = context.noscript and find(static:lower(), "</noscript", 1, true)
  if stop then fail(offset + stop - 1, "</noscript> ends it even here: write it as &lt;/noscript") end
end

--- Inside <svg> and <math>, <style> and <script> are elements like others, with markup and entities.
--- Only what reads the same both ways may stand there.
local function check_foreign(context, static, offset)
  if not context.foreign then return end
  local bare, sections = static:gsub("<!%[CDATA%[", "         ")
  local odd = find(bare, "<", 1, true) or sections == 0 and context.kind ~= "plain" and find(bare, "&", 1, true)
  if odd then
    fail(offset + odd - 1, "inside <svg> or <math> browsers read this <%s> as markup: set it outside", context.element)
  end
end

-- ---- tags ---------------------------------------------------------------------------------------

local FOREIGN = { svg = true, math = true }
local DROPS_NEWLINE = { textarea = true, pre = true, listing = true }

local function count_foreign(context, step)
  local open = math.max(0, (context.foreign or 0) + step)
  context.foreign = open > 0 and open or nil
end

local function leave_tag(context)
  context.element, context.ending, context.glued, context.closes, context.script_type = nil, nil, nil, nil, nil
end

local function finish_end_tag(context)
  if FOREIGN[context.element] then count_foreign(context, -1) end
  if context.element == "noscript" then context.noscript = nil end
  context.state = "text"
  leave_tag(context)
end

local function finish_start_tag(context)
  local element, closed = context.element, context.closes
  if FOREIGN[element] and not closed then count_foreign(context, 1) end
  if element == "noscript" then context.noscript = true end
  context.fresh = DROPS_NEWLINE[element]
  local kind = content.of_element(element, context.script_type)
  leave_tag(context)
  context.state = "text"
  if kind and not (context.foreign and closed) then
    context.state, context.element = "raw", element
    content.begin(context, kind)
  end
end

--- The type that a script says it has: no other is followed.
local function note_script_type(context, text)
  if context.element == "script" and context.attribute == "type" then
    context.script_type = (context.script_type or "") .. text
  end
end

local function feed_content(context, text, offset)
  local message = content.feed(context, text)
  if message then fail(offset, "%s", message) end
end

-- ---- the states ---------------------------------------------------------------------------------

local states = {}

function states.text(context, text, at)
  local open = find(text, "<", at, true)
  context.fresh = nil
  if not open then return #text + 1 end
  context.state = "tag_open"
  return open + 1
end

local function open_declaration(context, text, at)
  if context.foreign and find(text, "^!%[CDATA%[", at) then
    fail(at, "browsers read <![CDATA[ in two ways: write & and < as entities")
  end
  if find(text, "^!%-?$", at) or find(text, "^/$", at) then context.cut = true end
  context.state = "declaration"
  return at
end

function states.tag_open(context, text, at)
  if find(text, "^%a", at) then
    context.state, context.name = "name", ""
  elseif find(text, "^/%a", at) then
    context.state, context.name, context.ending = "name", "", true
    return at + 1
  elseif find(text, "^!%-%-", at) then
    context.state, context.rest = "comment", "--"
    return find(text, "^%-?>", at + 3) and at + 1 or at + 3 -- "<!-->" ends at once
  elseif find(text, "^[!?/]", at) then
    return open_declaration(context, text, at)
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
  if char == ">" then
    if context.ending then finish_end_tag(context) else finish_start_tag(context) end
    return at + 1
  end
  context.closes = char == "/" or nil
  if find(char, "[%s/]") then return at + 1 end
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
  content.begin(context, context.ending and "plain" or content.of_attribute(context.element, context.attribute))
  if char == '"' or char == "'" then
    context.state, context.delim = "value", char
    return after + 1
  end
  context.state = "unquoted"
  return after
end

local function feed_value(context, text, offset)
  check_noscript(context, text, offset)
  local static = content.decode(text)
  note_script_type(context, static)
  feed_content(context, static, offset)
end

local function end_value(context)
  content.finish(context)
  context.state, context.delim, context.attribute = "tag", nil, nil
end

function states.value(context, text, at)
  local close = find(text, context.delim, at, true)
  feed_value(context, sub(text, at, close and close - 1), at)
  if not close then return #text + 1 end
  end_value(context)
  return close + 1
end

function states.unquoted(context, text, at)
  local static, after = match(text, "^([^%s>]*)()", at)
  feed_value(context, static, at)
  if after <= #text then end_value(context) end
  return after
end

-- ---- raw text -----------------------------------------------------------------------------------

function states.raw(context, text, at)
  local rest = context.rest or ""
  local joined = rest .. sub(text, at)
  local close = template_raw.find_end(context.element, joined)
  if close and close <= #rest then fail(at, "the end of <%s> cannot be pieced together", context.element) end
  local static = sub(text, at, close and at + close - 2 - #rest)
  context.fresh = nil
  check_noscript(context, static, at)
  check_foreign(context, static, at)
  local message = context.element == "script" and template_raw.follow_hiding(context, sub(joined, 1, close and close - 1))
  if message then fail(at, message) end
  feed_content(context, static, at)
  if not close then
    context.rest = template_raw.open_rest(context.element, joined)
    return #text + 1
  end
  content.finish(context)
  context.state, context.name, context.ending, context.rest, context.hidden = "name", "", true, nil, nil
  return at + #static + 2
end

function states.declaration(context, text, at)
  local close = find(text, ">", at, true)
  if close then context.state = "text" end
  return (close or #text) + 1
end

function states.comment(context, text, at)
  local rest = context.rest
  local joined = rest .. sub(text, at)
  local open, last = find(joined, "%-%-!?>")
  if open and open <= #rest then fail(at, "the end of a comment cannot be pieced together") end
  check_noscript(context, sub(joined, #rest + 1, open), at)
  if not open then
    context.rest = sub(match(joined, "[!-]*$"), -3)
    return #text + 1
  end
  context.state, context.rest = "text", nil
  return at + last - #rest
end

-- ---- the machine --------------------------------------------------------------------------------

---@return table context
function template_html.start() return { state = "text" } end

--- Moves over static text. Raises { offset, message }.
---@param context table
---@param text string
function template_html.feed(context, text)
  local control = find(text, "[%z\1-\8\11\14-\31]")
  if control then fail(control, "the byte %d cannot stand in a page", text:byte(control)) end
  local at = 1
  while at <= #text do at = states[context.state](context, text, at) end
end

local DECODES = { text = true, value = true, unquoted = true }

--- TEXT, after which a tag of the template stands, as it is to be written: with what the tag
--- prints, an "&" at its end could become an entity.
---@param context table  after TEXT
---@param text string
---@return string
function template_html.settled(context, text)
  local is_rcdata = context.element == "title" or context.element == "textarea"
  if not (DECODES[context.state] or is_rcdata and context.state == "raw") then return text end
  return (text:gsub("&(#?%w*)$", "&amp;%1"))
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
  local message = content.cut(context)
  if message then fail(0, message) end
end

-- ---- values -------------------------------------------------------------------------------------

--- A value in `srcdoc` is text of a page in the page, and of nothing else there.
local function check_inner(context)
  local inner = template_html.start()
  template_html.feed(inner, context.prefix)
  if inner.state ~= "text" then
    fail(0, "a value in srcdoc can stand in the text of its page only, not %s", template_html.describe(inner))
  end
end

--- Together with "<" or "</" a value could become the end of the element.
local function check_rest(context)
  local is_operator = context.rest == "<" and context.js == "code"
  if context.rest and not is_operator then
    fail(0, "a value cannot stand right after %s in <%s>", context.rest, context.element)
  end
  context.rest = nil
end

local function content_value(context, is_raw)
  if context.state == "raw" then check_rest(context) end
  if context.kind == "html" then check_inner(context) end
  local escape, message = content.value(context)
  if not escape then
    if is_raw then return "trusted" end
    fail(0, message)
  end
  if context.fresh and escape == "html" then return "html_first" end
  return escape
end

local NO_VALUE = {
  tag = "a value cannot stand in a tag: only inside the quotes of an attribute",
  before_value = "a value of an attribute needs quotes",
  unquoted = "a value of an attribute needs quotes",
  declaration = "a value cannot stand in a declaration",
}

local function refusal(context)
  if context.ending then return "a value cannot stand in an end tag" end
  if context.state == "tag" and context.glued == "name" then return "a value cannot be part of a name in a tag" end
  return NO_VALUE[context.state]
end

--- Where nothing can be escaped: only raw() may stand.
local function trusted(context)
  if context.state == "before_value" then
    content.begin(context, "plain")
    context.state = "unquoted"
  end
  return "trusted"
end

local function place_value(context, is_raw)
  local refused = refusal(context)
  if refused and is_raw then return trusted(context) end
  if refused then fail(0, refused) end
  if context.state == "value" or context.state == "raw" then return content_value(context, is_raw) end
  if context.state == "comment" then return "comment" end
  return context.fresh and "html_first" or "html"
end

--- How the value here is escaped: a function's name in template_escape. A RAW one may stand
--- anywhere, and is taken on trust.
---@param context table
---@param is_raw boolean
---@return string
function template_html.value(context, is_raw)
  local escape = place_value(context, is_raw)
  context.fresh = nil
  return escape
end

-- ---- branches, loops, blocks --------------------------------------------------------------------

local COMPARED = { "state", "ending", "element", "name", "attribute", "kind", "delim" }

local GLUE = { name = 2, space = 1 }

local function stricter(a, b) return (GLUE[a] or 0) >= (GLUE[b] or 0) and a or b end

local function inner_state(context)
  local inner = template_html.start()
  template_html.feed(inner, context.prefix)
  return inner.state
end

--- Two pages in a page join in their text.
local function join_inner(a, b, joined)
  if a.kind ~= "html" or a.prefix == b.prefix then return true end
  joined.prefix = ""
  return inner_state(a) == "text" and inner_state(b) == "text"
end

--- Beginnings of what may end raw text or a comment. Of dashes the longer row holds for both.
local function join_rest(a, b, joined)
  if a.rest == b.rest then return true end
  if a.state ~= "comment" or find(a.rest .. b.rest, "!", 1, true) then return false end
  joined.rest = #a.rest > #b.rest and a.rest or b.rest
  return true
end

local function same_script_type(a, b)
  return a.script_type == b.script_type
    or content.is_script_type(a.script_type) and content.is_script_type(b.script_type)
end

local function larger(a, b) return math.max(a or 0, b or 0) > 0 and math.max(a or 0, b or 0) or nil end

--- What holds after branches that end in A and in B; nil where they differ too much.
---@param a table
---@param b table
---@return table?
function template_html.join(a, b)
  for _, field in ipairs(COMPARED) do
    if a[field] ~= b[field] then return nil end
  end
  if not same_script_type(a, b) then return nil end
  local joined = {}
  for field, value in pairs(a) do joined[field] = value end
  joined.glued = stricter(a.glued, b.glued)
  joined.closes = a.closes and b.closes
  joined.fresh = a.fresh and b.fresh
  joined.hidden = a.hidden or b.hidden
  joined.noscript = a.noscript or b.noscript
  joined.foreign = larger(a.foreign, b.foreign)
  local fits = join_rest(a, b, joined) and join_inner(a, b, joined) and content.join(a, b, joined)
  return fits and joined or nil
end

--- A loop begins: before its text stands what is there now, or the end of that text.
---@param context table
function template_html.begin_loop(context)
  if context.state == "tag" then context.glued = stricter(context.glued, "space") end
  content.begin_loop(context)
end

--- Can a loop's text stand after itself, if it begins in START and ends in ENDED?
---@param start table
---@param ended table
---@return boolean
function template_html.may_repeat(start, ended)
  return stricter(start.glued, ended.glued) == start.glued and start.foreign == ended.foreign
    and (ended.rest == start.rest or ended.rest == "")
end

--- A block ended that another template may replace: what stands before the next text is unknown.
---@param context table
function template_html.end_block(context)
  if context.state == "tag" then context.glued = "name" end
  content.end_block(context)
end

---@param context table
---@return boolean
function template_html.may_hold_block(context)
  return not context.rest and content.may_hold_block(context)
end

local NAMES = {
  text = "in text", tag = "in a tag", before_value = "before an attribute's value", comment = "in a comment",
  declaration = "in a declaration",
}

--- Where CONTEXT is, said to people.
---@param context table
---@return string
function template_html.describe(context)
  local within = context.js and context.js ~= "code" and "in a string, comment or pattern of a script, " or ""
  if context.ending then return "in an end tag" end
  if context.state == "raw" then return ("%sin <%s>"):format(within, context.element) end
  if context.attribute then return ("%sin the attribute %s"):format(within, context.attribute) end
  return NAMES[context.state] or "in a tag"
end

--- May a template of its own stand here?
---@param context table
---@return boolean
function template_html.is_text(context) return context.state == "text" end

return template_html
