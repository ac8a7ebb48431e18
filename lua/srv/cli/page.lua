--- Reports as pages: one file that asks nobody for anything. pages/NAME.html, with what all pages share put in
--- where it says <!-- include FILE -->, and the data where it says <!-- data -->.
local asset = require "srv.core.asset"
local json = require "srv.base.json"

local page = {}

--- Nothing in JSON needs a "<", so none may stand where a script could end.
local function data_element(data)
  local text = json.encode(data):gsub("<", "\\u003c")
  return '<script type="application/json" id="data">' .. text .. "</script>"
end

local function packed_element(data, pack)
  return '<script type="text/plain" id="data">' .. pack(json.encode(data)) .. "</script>"
end

local function include(name)
  local path = "pages/" .. name
  return assert(asset.read(path), path .. " is not in this binary")
end

---@param name string  "bench"
---@param data table
---@param pack (fun(text: string): string)?  for much data: from JSON to what the page's script unpacks, without "<"
---@return string html
function page.write(name, data, pack)
  local html = include(name .. ".html"):gsub("<!%-%- include ([%w%._-]+) %-%->", include)
  local before, after = html:match "^(.-)<!%-%- data %-%->(.*)$"
  return before .. (pack and packed_element(data, pack) or data_element(data)) .. after
end

return page
