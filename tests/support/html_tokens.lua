--- What a browser sees in a page, as a list of tokens without their text: the judge of what
--- templates make. Written from the HTML standard's tokenizer (13.2.5) and on purpose not from
--- srv.web.template_html, which it checks.
local html_tokens = {}

local RAW = {
  script = true, style = true, textarea = true, title = true, xmp = true, iframe = true, noembed = true, noframes = true,
}
local URLS = { href = true, src = true, action = true, formaction = true, poster = true, cite = true }

local NAMED = { quot = '"', apos = "'", lt = "<", gt = ">", amp = "&", colon = ":", Tab = "\t", NewLine = "\n" }

local function decode(text)
  text = text:gsub("&#[xX](%x+);?", function(hex) return string.char(tonumber(hex, 16) % 256) end)
  text = text:gsub("&#(%d+);?", function(digits) return string.char(tonumber(digits) % 256) end)
  return (text:gsub("&(%a+);?", NAMED))
end

--- "javascript" of a URL that a browser would run, or "" .
local function scheme(url)
  local word = url:gsub("[%z\1-\32]", ""):match("^([%a][%w+.-]*):")
  word = word and word:lower()
  return (word == "javascript" or word == "vbscript" or word == "data") and word or ""
end

-- ---- scripts: kinds of tokens -------------------------------------------------------------------

local function string_end(code, at)
  local quote = code:sub(at, at)
  at = at + 1
  while at <= #code do
    local char = code:sub(at, at)
    if char == quote then return at + 1, "string" end
    if char == "\n" and quote ~= "`" then return at, "broken" end
    at = at + (char == "\\" and 2 or 1)
  end
  return at, "broken"
end

--- Kinds in order: s string, w word or number, else the mark itself. Comments are left out; regular
--- expressions are not told from divisions, so no case has one.
local function script_kinds(code)
  local kinds, at = {}, 1
  while at <= #code do
    local char = code:sub(at, at)
    if char:find("%s") then
      at = at + 1
    elseif code:find("^//", at) then
      at = code:find("\n", at, true) or #code + 1
    elseif code:find("^/%*", at) then
      at = (select(2, code:find("*/", at + 2, true)) or #code) + 1
    elseif char:find("[\"'`]") then
      local after, kind = string_end(code, at)
      kinds[#kinds + 1], at = kind, after
    elseif char:find("[%w_$\128-\255]") then
      kinds[#kinds + 1], at = "w", code:match("^[%w_$\128-\255]+()", at)
    else
      kinds[#kinds + 1], at = char, at + 1
    end
  end
  return table.concat(kinds, " ")
end

-- ---- pages --------------------------------------------------------------------------------------

--- An attribute at AT (its name begins there): what is to be compared of it, and past it.
local function attribute(page, at)
  local name, after = page:match("^(=?[^%s/>=]*)()", at)
  local value
  local from = page:match("^%s*=%s*()", after)
  if from then
    local quote = page:match("^[\"']", from)
    local close
    if quote then
      close = page:find(quote, from + 1, true)
      value, after = page:sub(from + 1, (close or #page + 1) - 1), (close or #page) + 1
    else
      value, after = page:match("^([^%s>]*)()", from)
    end
  end
  name = name:lower()
  local seen = name .. (from and "=" or "")
  if value and name:find("^on") then seen = seen .. script_kinds(decode(value)) end
  if value and URLS[name] then seen = seen .. scheme(decode(value)) end
  return seen, math.max(after, at + 1)
end

local function start_tag(page, at, tokens)
  local name, after = page:match("^([^%s/>]*)()", at)
  local parts = { "<" .. name:lower() }
  at = after
  while true do
    at = page:match("^[%s/]*()", at)
    if at > #page then break end
    if page:sub(at, at) == ">" then
      at = at + 1
      break
    end
    parts[#parts + 1], at = attribute(page, at)
  end
  tokens[#tokens + 1] = table.concat(parts, " ")
  return at, name:lower()
end

local function raw_text(page, at, element, tokens)
  local open = at
  repeat
    open = page:find("</", open, true)
    if not open then break end
    local name = page:match("^%a+", open + 2) or ""
    if name:lower() == element and page:find("^[%s/>]", open + 2 + #name) then break end
    open = open + 2
  until false
  local text = page:sub(at, (open or #page + 1) - 1)
  tokens[#tokens + 1] = "raw " .. element .. " " .. (element == "script" and script_kinds(text) or "")
  return open or #page + 1
end

local function comment_end(page, at)
  if page:find("^%-?>", at) then return page:find(">", at, true) + 1 end
  local _, last = page:find("%-%-!?>", at)
  return (last or #page) + 1
end

--- The tokens of PAGE.
---@param page string
---@return string[]
function html_tokens.of(page)
  local tokens, at = {}, 1
  while at <= #page do
    local open = page:find("<", at, true)
    if not open then break end
    at = open + 1
    if page:find("^%a", at) then
      local element
      at, element = start_tag(page, at, tokens)
      if RAW[element] then at = raw_text(page, at, element, tokens) end
    elseif page:find("^/%a", at) then
      at = start_tag(page, at + 1, tokens) -- an end tag is read as any other
      tokens[#tokens] = "</" .. tokens[#tokens]:match("^<(%S*)")
    elseif page:find("^!%-%-", at) then
      tokens[#tokens + 1] = "comment"
      at = comment_end(page, at + 3)
    elseif page:find("^[!?/]", at) then
      tokens[#tokens + 1] = "declaration"
      at = (page:find(">", at, true) or #page) + 1
    end
  end
  return tokens
end

return html_tokens
