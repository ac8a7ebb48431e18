--- The page of a folder that app:static lists (option `list`): HTML, or JSON for who asks for it.
---
--- Names are whatever somebody has put there. In a link they are percent-encoded, so none is a scheme; on the page
--- they are escaped.
local format = require "srv.base.format"
local json = require "srv.base.json"
local text = require "srv.base.text"
local utf8 = require "srv.base.utf8"

local listing = {}

local STYLE = [[
:root{color-scheme:light dark;--ink:#222;--dim:#6b6b6b;--line:#e4e4e0;--hover:#f4f4f0;--link:#0a58ca;--back:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#ddd;--dim:#9a9a9a;--line:#333;--hover:#252525;--link:#7db4ff;--back:#1b1b1b}}
body{font:16px/1.5 system-ui,sans-serif;margin:0;color:var(--ink);background:var(--back)}
main{max-width:60rem;margin:3rem auto;padding:0 1.5rem}
h1{font-size:1.3rem;font-weight:600;margin:0 0 1.5rem;overflow-wrap:anywhere}
table{width:100%;border-collapse:collapse}
th{text-align:left;font-weight:500;color:var(--dim);font-size:.85rem}
th,td{padding:.4rem .6rem;border-bottom:1px solid var(--line)}
td:first-child{overflow-wrap:anywhere}
td+td,th+th{text-align:right;white-space:nowrap;color:var(--dim);font-variant-numeric:tabular-nums}
tbody tr:hover{background:var(--hover)}
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}
.folder{font-weight:600}p{color:var(--dim)}
@media(max-width:40rem){td:nth-child(3),th:nth-child(3){display:none}}]]

local PAGE = [[
<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex"><title>%s</title><style>%s</style>
<main><h1>%s</h1>
<table><thead><tr><th scope="col">Name<th scope="col">Size<th scope="col">Changed (UTC)</thead><tbody>
%s</tbody></table>
%s</main></html>
]]

local ROW = '<tr><td><a%s href="%s">%s</a><td>%s<td>%s\n'

local REPLACEMENT = "\239\191\189" -- U+FFFD

--- NAME without what cannot be shown, and without what turns the direction of a text ("gpj.exe" as "exe.jpg").
local function readable(name)
  if not utf8.length(name) then name = name:gsub("[\128-\255]", REPLACEMENT) end
  return (name:gsub("%c", REPLACEMENT):gsub("\226\128[\170-\174]", REPLACEMENT):gsub("\226\129[\166-\169]", REPLACEMENT))
end

local function row(entry)
  local slash = entry.is_folder and "/" or ""
  return ROW:format(entry.is_folder and ' class="folder"' or "", text.percent_encode(entry.name) .. slash,
    text.escape_html(readable(entry.name)) .. slash, entry.is_folder and "&ndash;" or format.bytes(entry.size),
    os.date("!%Y-%m-%d %H:%M", entry.modified))
end

--- TITLE: the folder's path as the client sees it, decoded.
---@param title string
---@param entries table[]
---@param is_cut boolean
---@param is_root boolean
---@return string
function listing.html(title, entries, is_cut, is_root)
  local rows = {}
  if not is_root then rows[1] = ROW:format(' class="folder"', "../", "..", "", "") end
  for _, entry in ipairs(entries) do rows[#rows + 1] = row(entry) end
  local note = is_cut and ("<p>The first %d that the folder has; there are more.</p>\n"):format(#entries)
    or #entries == 0 and "<p>Nothing is in here.</p>\n" or ""
  title = text.escape_html(readable(title))
  return PAGE:format(title, STYLE, title, table.concat(rows), note)
end

--- `{ entries = { { name, url, type = "file"|"folder", size, modified } }, more }`; moments in seconds since 1970.
---@param entries table[]
---@param is_cut boolean
---@return table
function listing.data(entries, is_cut)
  local list = json.array {}
  for i, entry in ipairs(entries) do
    local slash = entry.is_folder and "/" or ""
    list[i] = {
      name = readable(entry.name), url = text.percent_encode(entry.name) .. slash, type = entry.is_folder and "folder" or "file",
      size = not entry.is_folder and entry.size or nil, modified = entry.modified,
    }
  end
  return { entries = list, more = is_cut }
end

return listing
