--- Lua inside template tags: where a tag ends, and which keywords open and close blocks in it.
--- Strings, long brackets and comments are stepped over, so that `{{ "}}" }}` is one tag.
local template_lua = {}

local find, sub, match = string.find, string.sub, string.match

--- Past the string that begins at AT with a quote; nil: it has no end.
local function skip_quoted(text, at)
  local quote = sub(text, at, at)
  at = at + 1
  while at <= #text do
    local char = sub(text, at, at)
    if char == quote then return at + 1 end
    if char == "\n" then return nil end
    at = at + (char == "\\" and 2 or 1)
  end
  return nil
end

--- Past the long bracket at AT; nil: none stands there, or it has no end.
local function skip_long(text, at)
  local level = match(text, "^%[(=*)%[", at)
  if not level then return nil end
  local _, last = find(text, "]" .. level .. "]", at, true)
  return last and last + 1
end

--- Past the comment at AT. One of a line ends with the tag too: `{% x() -- why %}`.
local function skip_comment(text, at, closing)
  local long = skip_long(text, at + 2)
  if long then return long end
  local newline = find(text, "\n", at, true) or #text + 1
  local close = find(text, closing, at, true) or #text + 1
  return math.min(newline, close)
end

---@class srv.LuaToken
---@field kind "name"|"string"|"mark"|"number"
---@field text string  a mark's one byte, a string with its quotes
---@field at integer   where it begins

--- Past the number at AT, so that the e of 1e5 is no name.
local function skip_number(text, at)
  local _, last = find(text, "^0[xX]%x+", at)
  if not last then _, last = find(text, "^%d*%.?%d*[eE][+-]?%d+", at) end
  if not last then _, last = find(text, "^%d*%.?%d*", at) end
  return last + 1
end

--- The token at AT (no blank, no comment) and where the next begins; nil: a string has no end.
local function token_at(text, at)
  local char = sub(text, at, at)
  local kind, after = "mark", at + 1
  if find(char, "[%a_]") then
    kind, after = "name", match(text, "^[%w_]+()", at)
  elseif char == '"' or char == "'" then
    kind, after = "string", skip_quoted(text, at)
  elseif find(text, "^%[=*%[", at) then
    kind, after = "string", skip_long(text, at)
  elseif find(text, "^%.?%d", at) then
    kind, after = "number", skip_number(text, at)
  end
  if not after then return nil end
  return { kind = kind, text = sub(text, at, after - 1), at = at }, after
end

local NESTING = { ["{"] = 1, ["("] = 1, ["["] = 1, ["}"] = -1, [")"] = -1, ["]"] = -1 }

--- The tokens from AT up to CLOSING ("}}" or "%}") outside of strings and of braces.
---@param text string
---@param at integer
---@param closing string
---@return srv.LuaToken[]? tokens
---@return integer|string close_or_message  where CLOSING begins; or what is wrong
function template_lua.scan(text, at, closing)
  local tokens, depth = {}, 0
  while true do
    at = match(text, "^%s*()", at)
    if at > #text then return nil, ("a tag has no %s"):format(closing) end
    if depth == 0 and sub(text, at, at + #closing - 1) == closing then return tokens, at end
    if sub(text, at, at + 1) == "--" then
      at = skip_comment(text, at, closing)
    else
      local token, after = token_at(text, at)
      if not token then return nil, "a string has no end" end
      if token.kind == "mark" then depth = math.max(0, depth + (NESTING[token.text] or 0)) end
      tokens[#tokens + 1], at = token, after
    end
  end
end

--- The keywords among TOKENS, in order; names after a dot or colon are fields.
---@param tokens srv.LuaToken[]
---@return string[]
function template_lua.names(tokens)
  local names = {}
  for i, token in ipairs(tokens) do
    local before = tokens[i - 1]
    local is_field = before and before.kind == "mark" and (before.text == "." or before.text == ":")
    -- ".." concatenates: what follows it is a name of its own.
    local concatenates = is_field and tokens[i - 2] and tokens[i - 2].text == "." and tokens[i - 2].at == before.at - 1
    if token.kind == "name" and (not is_field or concatenates) then names[#names + 1] = token.text end
  end
  return names
end

--- The value of a token that is a string literal; nil for another, and for one with escapes that are none.
---@param token srv.LuaToken?
---@return string?
function template_lua.string_value(token)
  if not token or token.kind ~= "string" then return nil end
  local literal = loadstring("return " .. token.text)
  return literal and literal()
end

return template_lua
