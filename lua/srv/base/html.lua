--- HTML (API, section 13): srv.html, for text that no template writes.
local misuse = require "srv.core.task".misuse
local text = require "srv.base.text"

local html = {}

--- & < > " ' as entities: for text and for attributes in quotes. Nothing else is safe by this: not a
--- URL, not a script, not an attribute without quotes.
---@param value string|number
---@return string
function html.escape(value)
  local kind = type(value)
  if kind ~= "string" and kind ~= "number" then misuse("srv.html.escape: expected a string, not a " .. kind) end
  return text.escape_html(tostring(value))
end

return html
