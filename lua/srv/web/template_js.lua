--- JavaScript, as far as a template must follow it: is a value code, or inside a string?
---
--- The state is four fields of the context: `js` ("code", "dq", "sq", "backtick", "regex", "class",
--- "line", "block"), `slash` (would a "/" begin a "regex", or divide: "div"; "unclear" after
--- branches that differ), and `nest`, the open braces of template literals ("`" "$" "{").
local template_js = {}

local find, sub, match = string.find, string.sub, string.match

-- After these words an expression begins (ECMA-262, 12.7), so "/" opens a regular expression.
local BEFORE_REGEX = {
  ["break"] = true, ["case"] = true, ["continue"] = true, ["delete"] = true, ["do"] = true, ["else"] = true,
  ["finally"] = true, ["in"] = true, ["instanceof"] = true, ["return"] = true, ["throw"] = true, ["try"] = true,
  ["typeof"] = true, ["void"] = true, ["of"] = true, ["yield"] = true, ["await"] = true,
}

local function push(context, mark) context.nest = context.nest .. mark end

local function pop(context)
  local top = sub(context.nest, -1)
  context.nest = sub(context.nest, 1, -2)
  return top
end

--- What "/" means after the mark CHAR, which stands at AT.
local function slash_after(context, text, at, char)
  if char == ")" or char == "]" then return "div" end
  if char == "." and find(sub(text, at - 1, at - 1), "%d") then return "div" end -- "42."
  if (char == "+" or char == "-") and sub(text, at - 1, at - 1) == char and context.slash == "regex" then
    return "div" -- x++
  end
  return "regex"
end

local OPENS = { ['"'] = "dq", ["'"] = "sq", ["`"] = "backtick" }

local function open_slash(context, text, at)
  local next_char = sub(text, at + 1, at + 1)
  if next_char == "/" or next_char == "*" then
    context.js = next_char == "/" and "line" or "block"
    return at + 2
  end
  if context.slash == "unclear" then
    return nil, "a / here may divide or begin a regular expression, for the branches before it end differently"
  end
  if context.slash == "regex" then context.js = "regex" else context.slash = "regex" end
  return at + 1
end

local function brace(context, char)
  context.slash = "regex"
  if context.nest == "" then return end
  if char == "{" then return push(context, "{") end
  if pop(context) == "$" then context.js = "backtick" end
end

local function in_code(context, text, at)
  local char = sub(text, at, at)
  if find(char, "%s") then return match(text, "^%s+()", at) end
  local word = match(text, "^[%w_$\128-\255]+", at)
  if word then
    context.slash = BEFORE_REGEX[word] and "regex" or "div"
    return at + #word
  end
  if OPENS[char] then
    context.js = OPENS[char]
    if char == "`" then push(context, "`") end
  elseif char == "/" then
    return open_slash(context, text, at)
  elseif char == "{" or char == "}" then
    brace(context, char)
  elseif find(text, "^<!%-%-", at) then
    context.js = "line" -- an HTML-like comment, ECMA-262, B.1.1
  else
    context.slash = slash_after(context, text, at, char)
  end
  return at + 1
end

--- Inside a string: on to its end. A line's end closes a broken one, so that the rest is not lost.
local function in_string(quote)
  return function(context, text, at)
    local stop = find(text, "[\\\n" .. quote .. "]", at)
    if not stop then return #text + 1 end
    if sub(text, stop, stop) == "\\" then return stop + 2 end
    context.js, context.slash = "code", "div"
    return stop + 1
  end
end

local function in_backtick(context, text, at)
  local stop = find(text, "[\\`$]", at)
  if not stop then return #text + 1 end
  local char = sub(text, stop, stop)
  if char == "\\" then return stop + 2 end
  if char == "`" then
    pop(context)
    context.js, context.slash = "code", "div"
  elseif sub(text, stop + 1, stop + 1) == "{" then
    push(context, "$")
    context.js, context.slash = "code", "regex"
    return stop + 2
  end
  return stop + 1
end

local function in_regex(context, text, at)
  local stop = find(text, "[\\/%[\n]", at)
  if not stop then return #text + 1 end
  local char = sub(text, stop, stop)
  if char == "\\" then return stop + 2 end
  if char == "[" then
    context.js = "class"
  else
    context.js, context.slash = "code", "div"
  end
  return stop + 1
end

local function in_class(context, text, at)
  local stop = find(text, "[\\%]\n]", at)
  if not stop then return #text + 1 end
  if sub(text, stop, stop) == "\\" then return stop + 2 end
  context.js = "regex"
  return stop + 1
end

local function in_line(context, text, at)
  local stop = find(text, "\n", at, true)
  if stop then context.js = "code" end
  return (stop or #text) + 1
end

local function in_block(context, text, at)
  local _, stop = find(text, "*/", at, true)
  if stop then context.js = "code" end
  return (stop or #text) + 1
end

local STATES = {
  code = in_code, dq = in_string('"'), sq = in_string("'"), backtick = in_backtick,
  regex = in_regex, class = in_class, line = in_line, block = in_block,
}

---@param context table
function template_js.begin(context) context.js, context.slash, context.nest = "code", "regex", "" end

--- Follows the static TEXT. Returns nil, or what is wrong and where.
---@param context table
---@param text string
---@return string? message
---@return integer? at
function template_js.feed(context, text)
  local at = 1
  while at <= #text do
    local after, message = STATES[context.js](context, text, at)
    if not after then return message, at end
    at = after
  end
end

local REFUSED = {
  backtick = "a template literal", regex = "a regular expression", class = "a regular expression",
  line = "a comment of a script", block = "a comment of a script",
}

--- How a value that stands here is written; nil and a message where it cannot stand.
---@param context table
---@return "json"|"js_string"|nil
---@return string? message
function template_js.value(context)
  if REFUSED[context.js] then return nil, "a value cannot stand in " .. REFUSED[context.js] end
  if context.js ~= "code" then return "js_string" end
  context.slash = "div"
  return "json"
end

return template_js
