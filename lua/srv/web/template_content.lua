--- What stands in an attribute's value, or in an element that holds no markup: text, a URL, a script,
--- a style, a page. For template_html, which knows where it begins and ends.
---
---   kind     plain url steps srcset js css html meta inert
---   prefix   the static text so far, where it matters
---   url, dynamic               template_url
---   js, slash, parens, ...     template_js
local template_js = require "srv.web.template_js"
local template_url = require "srv.web.template_url"

local template_content = {}

local find, match = string.find, string.match

-- ---- kinds --------------------------------------------------------------------------------------

-- HTML, "Attributes": those whose value is a URL.
local URL_ATTRIBUTES = {
  action = true, archive = true, background = true, cite = true, classid = true, codebase = true, formaction = true,
  href = true, icon = true, longdesc = true, manifest = true, ping = true, poster = true, profile = true, src = true,
  usemap = true, ["xlink:href"] = true,
}
-- SVG's animations can set a link's target.
local ANIMATIONS = { animate = true, set = true, animatemotion = true, animatetransform = true, animatecolor = true }
local ANIMATED = { to = true, from = true, by = true, values = true }

local KINDS = { style = "css", srcset = "srcset", imagesrcset = "srcset", srcdoc = "html" }

--- `onclick`, and what libraries make of `@click`, `x-on:click`, `hx-on:click`.
local function is_handler(name) return find(name, "^on") or find(name, "^@") or find(name, "^%a+%-on[:-]") end

--- What the attribute NAME of ELEMENT holds.
---@param element string
---@param name string
---@return string kind
function template_content.of_attribute(element, name)
  if KINDS[name] then return KINDS[name] end
  if URL_ATTRIBUTES[name] or (element == "object" and name == "data") then return "url" end
  if ANIMATIONS[element] and ANIMATED[name] then return "steps" end
  if element == "meta" and name == "content" then return "meta" end
  return is_handler(name) and "js" or "plain"
end

-- Elements whose content is no markup. Entities count in the first two only, but what the escape
-- for text leaves cannot end any of them.
local RAW = {
  textarea = "plain", title = "plain", iframe = "plain", noembed = "plain", noframes = "plain", xmp = "plain",
  plaintext = "plain", script = "js", style = "css",
}

--- Would a browser run it, or is it JSON?
---@param type string?
---@return boolean
function template_content.is_script_type(type)
  if not type then return true end
  type = type:lower():match("^%s*([^;]*)"):gsub("%s+$", "")
  return type == "" or type == "module" or find(type, "json", 1, true) ~= nil or find(type, "^%a+/%a*script") ~= nil
    or find(type, "^%a+/x%-%a*script") ~= nil or type == "importmap" or type == "speculationrules"
end

--- What ELEMENT holds if that is no markup.
---@param element string
---@param script_type string?
---@return string? kind
function template_content.of_element(element, script_type)
  if element == "script" and not template_content.is_script_type(script_type) then return "inert" end
  return RAW[element]
end

-- ---- entities -----------------------------------------------------------------------------------

-- Those of ASCII that mean something to a URL or a script. The first four need no semicolon.
local LEGACY = { quot = '"', lt = "<", gt = ">", amp = "&", QUOT = '"', LT = "<", GT = ">", AMP = "&" }
local ENTITIES = {
  apos = "'", colon = ":", sol = "/", quest = "?", num = "#", Tab = "\t", NewLine = "\n", grave = "`",
  DiacriticalGrave = "`", bsol = "\\", lpar = "(", rpar = ")", lbrack = "[", lsqb = "[", rbrack = "]", rsqb = "]",
  lbrace = "{", lcub = "{", rbrace = "}", rcub = "}", dollar = "$", ast = "*", midast = "*", excl = "!", equals = "=",
  semi = ";", comma = ",", period = ".", plus = "+", percnt = "%", commat = "@", lowbar = "_", UnderBar = "_",
  Hat = "^", vert = "|", verbar = "|", VerticalLine = "|",
}

local OTHER = "?" -- what is not ASCII; it is no mark and no letter

local function numeric(digits)
  local hex = match(digits, "^[xX](%x+)$")
  local code = hex and tonumber(hex, 16) or tonumber(digits)
  return code and code > 0 and code < 128 and string.char(code) or OTHER
end

local function decode_one(hash, name, semicolon, equals)
  if hash == "#" then
    local digits, rest = match(name, "^([xX]%x+)(.*)$")
    if not digits then digits, rest = match(name, "^(%d+)(.*)$") end
    return digits and numeric(digits) .. rest .. (rest ~= "" and semicolon or "") .. equals
  end
  if semicolon == "" then return equals == "" and LEGACY[name] or nil end
  local char = LEGACY[name] or ENTITIES[name]
  return char and char .. equals
end

--- An attribute's static text as the browser reads it, as far as it matters here: ASCII.
---@param text string
---@return string
function template_content.decode(text) return (text:gsub("&(#?)(%w+)(;?)(=?)", decode_one)) end

-- ---- from begin to finish -----------------------------------------------------------------------

---@param context table
---@param kind string
function template_content.begin(context, kind)
  context.kind, context.prefix = kind, ""
  if kind == "url" then template_url.begin(context) end
  if kind == "js" then template_js.begin(context) end
end

---@param context table
function template_content.finish(context)
  context.kind, context.url, context.prefix, context.dynamic = nil, nil, nil, nil
  template_js.finish(context)
end

--- `content="5; url=/next"` of a meta element: from the URL on, it is one.
local function feed_meta(context, text)
  if context.url then return template_url.feed(context, text) end
  context.prefix = context.prefix .. text
  local url = match(context.prefix:lower(), "^.*url%s*=%s*['\"]?()") or match(context.prefix, "^%s*[%d.]+%s*[;,]%s*()")
  if not url then return nil end
  local rest = context.prefix:sub(url)
  template_url.begin(context)
  return template_url.feed(context, rest)
end

--- Follows static TEXT. Returns what is wrong with it.
---@param context table
---@param text string
---@return string? message
function template_content.feed(context, text)
  local kind = context.kind
  if kind == "url" then return template_url.feed(context, text) end
  if kind == "js" then return template_js.feed(context, text) end
  if kind == "meta" then return feed_meta(context, text) end
  if kind == "html" or kind == "steps" then context.prefix = context.prefix .. text end
end

--- May a tag of the template stand here? Returns what is wrong.
---@param context table
---@return string? message
function template_content.cut(context) return context.js and template_js.cut(context) or nil end

local VALUE = {}

function VALUE.plain() return "html" end
function VALUE.css() return "css" end
function VALUE.srcset() return "srcset" end
function VALUE.inert() return nil, "a value cannot stand in a script of this type" end
VALUE.url = template_url.value

function VALUE.meta(context)
  if context.url then return template_url.value(context) end
  return "html"
end

--- A list of steps of an animation, ";" between them: each is looked at as a whole.
function VALUE.steps(context)
  if not find(context.prefix, "^%s*$") and not find(context.prefix, ";%s*$") then
    return nil, "a value cannot be part of a step of an animation: give the whole step as one value"
  end
  context.prefix = "?" -- what follows a value must be a ";"
  return "steps"
end

function VALUE.html(context)
  context.prefix = context.prefix .. "?"
  return "html_twice"
end

local IN_ATTRIBUTE = { json = "json_attr", json_apart = "json_attr_apart" }

function VALUE.js(context)
  local escape, message = template_js.value(context)
  return escape and context.state ~= "raw" and IN_ATTRIBUTE[escape] or escape, message
end

--- How a value that stands here is written: the name of a function in template_escape; nil and a
--- message where it cannot stand.
---@param context table
---@return string?
---@return string? message
function template_content.value(context) return VALUE[context.kind](context) end

-- ---- branches, loops, blocks --------------------------------------------------------------------

--- Joins branches that end in A and in B, which are of one kind, into JOINED; false if they cannot be.
---@param a table
---@param b table
---@param joined table
---@return boolean
function template_content.join(a, b, joined)
  if a.kind == "steps" and a.prefix ~= b.prefix then return false end
  if not template_url.join(a, b, joined) then return false end
  return template_js.join(a, b, joined)
end

template_content.begin_loop = template_js.begin_loop
template_content.end_block = template_js.end_block

--- Does the end of what stands here depend on no text before it? Then another template may fill it.
---@param context table
---@return boolean
function template_content.may_hold_block(context)
  local kind = context.kind
  return kind == nil or kind == "plain" or kind == "css" or kind == "js" and context.js == "code"
end

return template_content
