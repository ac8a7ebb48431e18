--- JavaScript, as far as a template must follow it: is a value code, or inside a string?
---
--- The state are fields of the context:
---
---   js      "code", "dq", "sq", "backtick", "regex", "class", "line", "block"; "lost" after a "/"
---           that may have been either of its meanings: nothing is known until the script's end
---   slash   what a "/" would be: "regex" (its beginning), "div", "unclear"; "head" after `if`
---   parens  the open "(": "k" those of `if (...)`, after which an expression begins
---   nest    the open braces of template literals: "`" "$" "{"
---   tail    the last bytes before a tag of the template: what follows must not make a token of both
local template_js = {}

local find, sub, match, gsub = string.find, string.sub, string.match, string.gsub

-- After these words an expression begins (ECMA-262, 12.7), so "/" opens a regular expression.
local BEFORE_REGEX = {
  ["break"] = "regex", ["case"] = "regex", ["continue"] = "regex", ["delete"] = "regex", ["do"] = "regex",
  ["else"] = "regex", ["finally"] = "regex", ["in"] = "regex", ["instanceof"] = "regex", ["return"] = "regex",
  ["throw"] = "regex", ["try"] = "regex", ["typeof"] = "regex", ["void"] = "regex",
  -- These are names too, where they are no keywords.
  ["of"] = "unclear", ["yield"] = "unclear", ["await"] = "unclear",
  ["if"] = "head", ["while"] = "head", ["for"] = "head", ["with"] = "head",
}

local PARENS_MAX = 200 -- deeper ones are lost
local TAIL_BYTES = 3   -- "<!-" is the longest beginning of a mark

local function push(context, mark) context.nest = context.nest .. mark end

local function pop(context)
  local top = sub(context.nest, -1)
  context.nest = sub(context.nest, 1, -2)
  return top
end

-- ---- code ---------------------------------------------------------------------------------------

local function open_paren(context)
  context.parens = context.parens .. (context.slash == "head" and "k" or "(")
  context.slash = "regex"
  if #context.parens > PARENS_MAX then context.js = "lost" end
end

local AFTER_PAREN = { k = "regex", ["("] = "div" }

--- One that was opened elsewhere, in another block or branch, says nothing.
local function close_paren(context)
  context.slash = AFTER_PAREN[sub(context.parens, -1)] or "unclear"
  context.parens = sub(context.parens, 1, -2)
end

--- What "/" means after the mark CHAR, which stands at AT.
local function slash_after(context, text, at, char)
  if char == "]" then return "div" end
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
    context.js = "lost"
  elseif context.slash == "div" then
    context.slash = "regex"
  else
    context.js = "regex"
  end
  return at + 1
end

--- After "}" comes a statement, or it ended an object that may be divided.
local function brace(context, char)
  if char == "{" then
    context.slash = "regex"
    if context.nest ~= "" then push(context, "{") end
    return
  end
  context.slash = "unclear"
  if context.nest ~= "" and pop(context) == "$" then context.js = "backtick" end
end

local function word(context, text, at)
  local found = match(text, "^[%w_$\128-\255]+", at)
  local before = sub(text, at - 1, at - 1)
  if find(before, "[%w_$\128-\255]") then
    context.slash = "unclear" -- a tag of the template stands within the word
  elseif before == "." then
    context.slash = "div" -- a property, whatever its name
  elseif not (found == "await" and context.slash == "head") then
    context.slash = BEFORE_REGEX[found] or "div"
  end
  return at + #found
end

--- Blanks; a "-->" at a line's beginning is a comment (ECMA-262, B.1.1).
local function blanks(context, text, at)
  local after = match(text, "^%s+()", at)
  if find(text, "^%-%->", after) and find(sub(text, at, after - 1), "\n", 1, true) then context.js = "line" end
  return after
end

local function in_code(context, text, at)
  local char = sub(text, at, at)
  if find(char, "%s") then return blanks(context, text, at) end
  if find(char, "[%w_$\128-\255]") then return word(context, text, at) end
  if OPENS[char] then
    context.js = OPENS[char]
    if char == "`" then push(context, "`") end
  elseif char == "/" then
    return open_slash(context, text, at)
  elseif char == "{" or char == "}" then
    brace(context, char)
  elseif char == "(" then
    open_paren(context)
  elseif char == ")" then
    close_paren(context)
  elseif find(text, "^<!%-%-", at) then
    context.js = "line"
  else
    context.slash = slash_after(context, text, at, char)
  end
  return at + 1
end

-- ---- strings, patterns, comments ----------------------------------------------------------------

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
  local _, stop = find(text, "\n", at, true)
  local _, separator = find(text, "\226\128[\168\169]", at) -- U+2028 and U+2029 end lines too
  if separator and separator < (stop or separator + 1) then stop = separator end
  if stop then context.js = "code" end
  return (stop or #text) + 1
end

local function in_block(context, text, at)
  local _, stop = find(text, "*/", at, true)
  if stop then context.js = "code" end
  return (stop or #text) + 1
end

local function to_the_end(_, text) return #text + 1 end

local STATES = {
  code = in_code, dq = in_string('"'), sq = in_string("'"), backtick = in_backtick,
  regex = in_regex, class = in_class, line = in_line, block = in_block, lost = to_the_end,
}

-- ---- the machine --------------------------------------------------------------------------------

---@param context table
function template_js.begin(context)
  context.js, context.slash, context.nest, context.parens, context.tail = "code", "regex", "", "", nil
end

---@param context table
function template_js.finish(context)
  context.js, context.slash, context.nest, context.parens, context.tail = nil, nil, nil, nil, nil
end

-- Marks that static text must not make together with what stands before a tag of the template.
local MARKS = { code = { "//", "/*", "<!--" }, block = { "*/" }, backtick = { "${" } }

-- What is not known to be before a text: anything.
local UNKNOWN = "?"

local function pieced_mark(state, tail, text)
  if tail == UNKNOWN then return match(text, "^[/*!-]") end
  local joint = tail .. sub(text, 1, TAIL_BYTES)
  for _, mark in ipairs(MARKS[state] or {}) do
    local first, last = find(joint, mark, 1, true)
    if first and first <= #tail and last > #tail then return mark end
  end
end

--- Follows the static TEXT. Returns nil, or what is wrong where it begins.
---@param context table
---@param text string
---@return string? message
function template_js.feed(context, text)
  if text == "" then return nil end
  text = gsub(text, "\r\n?", "\n") -- as browsers do
  local tail = context.tail or ""
  local mark = pieced_mark(context.js, tail, text)
  if mark then return ("%q cannot be pieced together in a script"):format(mark) end
  local joined = tail .. text
  local at = #tail + 1
  while at <= #joined do
    at = STATES[context.js](context, joined, at)
  end
  context.escaped = at > #joined + 1 or nil -- a backslash takes the byte after it
  context.tail = sub(joined, -TAIL_BYTES)
end

--- May a tag of the template stand here? Returns what is wrong.
---@param context table
---@return string? message
function template_js.cut(context)
  return context.escaped and "a template tag cannot stand right after a backslash" or nil
end

local REFUSED = {
  backtick = "in a template literal", regex = "in a regular expression", class = "in a regular expression",
  line = "in a comment of a script", block = "in a comment of a script",
  lost = "after a / of which it is unclear whether it divides or begins a regular expression: set ( ) around that",
}

--- How a value that stands here is written; nil and a message where it cannot stand.
---@param context table
---@return "json"|"json_apart"|"js_string"|nil
---@return string? message
function template_js.value(context)
  if REFUSED[context.js] then return nil, "a value cannot stand " .. REFUSED[context.js] end
  local tail = context.tail or ""
  if context.js ~= "code" then
    context.tail = nil
    return "js_string"
  end
  context.slash, context.tail = "div", "0"
  -- -1 after a minus would be a decrement, a word after a word another word.
  return find(tail, "[%w_$\128-\255-]$") and "json_apart" or "json"
end

local OPEN_MARK = "[/<!*$-]$" -- the beginnings of MARKS

local function join_tails(a, b)
  if a == b then return a, true end
  if a == UNKNOWN or b == UNKNOWN then return UNKNOWN, true end
  local a_opens, b_opens = find(a or "", OPEN_MARK), find(b or "", OPEN_MARK)
  if a_opens and b_opens then return nil, false end
  if a_opens or b_opens then return a_opens and a or b, true end
  -- The word that may go on is the one that matters.
  return find(a or "", "[%w_$\128-\255]$") and a or b, true
end

--- Joins branches that end in A and in B, as far as JavaScript goes, into JOINED; false if they
--- cannot be.
---@param a table
---@param b table
---@param joined table
---@return boolean
function template_js.join(a, b, joined)
  if not a.js then return true end
  if a.js == "lost" or b.js == "lost" then
    joined.js = "lost"
    return true
  end
  if a.js ~= b.js or a.nest ~= b.nest then return false end
  if a.slash ~= b.slash then joined.slash = "unclear" end
  if a.parens ~= b.parens then joined.parens = "" end
  local fits
  joined.tail, fits = join_tails(a.tail, b.tail)
  return fits
end

--- Here a loop begins: what stands before its text is also the end of that text.
---@param context table
function template_js.begin_loop(context)
  if context.js == "code" then context.slash, context.tail = "unclear", UNKNOWN end
end

--- Here a block ended that another template may replace: nobody knows what it leaves.
---@param context table
function template_js.end_block(context)
  if context.js then context.slash, context.parens, context.tail = "unclear", "", UNKNOWN end
end

return template_js
