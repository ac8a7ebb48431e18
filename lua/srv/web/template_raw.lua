--- The text of elements that hold no markup: where does it end? For template_html.
local template_raw = {}

local find, sub, match = string.find, string.sub, string.match

--- The "</script" in TEXT that ends ELEMENT.
---@param element string
---@param text string
---@return integer?
function template_raw.find_end(element, text)
  local at = 1
  while true do
    local open = find(text, "</", at, true)
    if not open then return nil end
    local name = match(text, "^%a+", open + 2)
    if name and name:lower() == element and find(text, "^[%s/>]", open + 2 + #name) then return open end
    at = open + 2
  end
end

--- What of TEXT's end may go on to become the end of ELEMENT, or a mark inside of a script.
---@param element string
---@param text string
---@return string?
function template_raw.open_rest(element, text)
  local rest = match(text, "<[/!]?[%a-]*$")
  if not rest then return nil end
  local word = rest:lower()
  local function begins(mark) return sub(mark, 1, #word) == word end
  if begins("</" .. element) or element == "script" and (begins "<!--" or begins "<script") then return rest end
end

--- After "<!--" in a script, "<script" makes browsers read on past "</script>" (13.2.5.27).
--- Follows the text of a script. Returns what is wrong with it.
---@param context table  its field `hidden` is kept here
---@param text string
---@return string? message
function template_raw.follow_hiding(context, text)
  local at = 1
  while true do
    if not context.hidden then
      local open = find(text, "<!--", at, true)
      if not open then return nil end
      context.hidden, at = true, open + 2
    end
    local close, last = find(text, "-->", at, true)
    local script = find(sub(text, at, close), "<[sS][cC][rR][iI][pP][tT][%s/>]")
    if script then return "<!-- and <script in a script make browsers read past its end: write \\x3c for <" end
    if not close then return nil end
    context.hidden, at = nil, last + 1
  end
end

return template_raw
