--- From a template's text to its pieces: text, `{{ e }}`, `{% code %}`; comments fall out and
--- `{% verbatim %}` becomes text.
local template_lua = require "srv.web.template_lua"

local template_lexer = {}

local find, sub, match = string.find, string.sub, string.match

---@class srv.TemplatePiece
---@field kind "text"|"value"|"code"
---@field text string             the text; or the Lua inside the tag
---@field at integer              where it begins in the template
---@field tokens? srv.LuaToken[]  of the Lua

---@class srv.TemplateLexer
---@field text string
---@field at integer
---@field pieces srv.TemplatePiece[]
---@field trim boolean  did the tag before end with `-%}`

local function fail(at, message) error({ at = at, message = message }, 0) end

--- Adds text; neighbours become one piece, so that a comment does not part a tag of HTML.
local function add_text(lexer, text, at)
  if lexer.trim then
    local blanks = match(text, "^%s*()") - 1
    text, at = sub(text, blanks + 1), at + blanks
  end
  if text == "" then return end
  lexer.trim = false
  local last = lexer.pieces[#lexer.pieces]
  if last and last.kind == "text" then
    last.text = last.text .. text
    table.insert(last.breaks, { from = #last.text - #text + 1, at = at })
  else
    table.insert(lexer.pieces, { kind = "text", text = text, at = at, breaks = { { from = 1, at = at } } })
  end
end

--- `{%-`: takes the blanks at the end of the text before.
local function trim_before(lexer)
  local last = lexer.pieces[#lexer.pieces]
  if not last or last.kind ~= "text" then return end
  local length = #last.text
  while length > 0 and find(last.text, "^%s", length) do length = length - 1 end
  last.text = sub(last.text, 1, length)
  if length == 0 then table.remove(lexer.pieces) end
end

local function value(lexer, at)
  local tokens, close = template_lua.scan(lexer.text, at + 2, "}}")
  if not tokens then fail(at, close) end
  if #tokens == 0 then fail(at, "{{ }} has nothing to print") end
  table.insert(lexer.pieces, { kind = "value", text = sub(lexer.text, at + 2, close - 1), at = at + 2, tokens = tokens })
  lexer.trim = false
  return close + 2
end

local function comment(lexer, at)
  local _, last = find(lexer.text, "#}", at + 2, true)
  if not last then fail(at, "{# has no #}") end
  return last + 1
end

--- All up to the next `{% end %}`, as it is.
local function verbatim(lexer, at, from)
  local close, last, trim_left, trim_right = find(lexer.text, "{%%(%-?)%s*end%s*(%-?)%%}", from)
  if not close then fail(at, "verbatim has no {% end %}") end
  add_text(lexer, sub(lexer.text, from, close - 1), from)
  if trim_left == "-" then trim_before(lexer) end
  lexer.trim = trim_right == "-"
  return last + 1
end

local function code(lexer, at)
  local from = at + 2
  if sub(lexer.text, from, from) == "-" then
    trim_before(lexer)
    from = from + 1
  end
  local tokens, close = template_lua.scan(lexer.text, from, "%}")
  if not tokens then fail(at, close) end
  local last = tokens[#tokens]
  lexer.trim = last ~= nil and last.text == "-" and last.at == close - 1
  if lexer.trim then table.remove(tokens) end
  if #tokens == 1 and tokens[1].text == "verbatim" then return verbatim(lexer, at, close + 2) end
  local text = sub(lexer.text, from, close - (lexer.trim and 2 or 1))
  table.insert(lexer.pieces, { kind = "code", text = text, at = from, tokens = tokens })
  return close + 2
end

local TAGS = { ["{"] = value, ["%"] = code, ["#"] = comment }

--- The pieces of TEXT. Raises { at, message } where a tag is broken.
---@param text string
---@return srv.TemplatePiece[]
function template_lexer.pieces(text)
  local lexer = { text = text, at = 1, pieces = {}, trim = false }
  while true do
    local open = find(text, "{[{%%#]", lexer.at)
    add_text(lexer, sub(text, lexer.at, open and open - 1), lexer.at)
    if not open then return lexer.pieces end
    lexer.at = TAGS[sub(text, open + 1, open + 1)](lexer, open)
  end
end

--- Line and column (in bytes, from 1) of the byte AT in TEXT.
---@param text string
---@param at integer
---@return integer line
---@return integer column
function template_lexer.place(text, at)
  local line, from = 1, 1
  while true do
    local newline = find(text, "\n", from, true)
    if not newline or newline >= at then return line, at - from + 1 end
    line, from = line + 1, newline + 1
  end
end

--- Where in the template the byte OFFSET of a text piece stands.
---@param piece srv.TemplatePiece
---@param offset integer
---@return integer
function template_lexer.origin(piece, offset)
  local found = piece.breaks[1]
  for _, part in ipairs(piece.breaks) do
    if part.from <= offset then found = part end
  end
  return found.at + offset - found.from
end

return template_lexer
