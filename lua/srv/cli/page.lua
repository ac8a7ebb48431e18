--- Reports as pages: one file that asks nobody for anything. pages/NAME.html, with what all pages share put in
--- where it says <!-- include FILE -->, and the data where it says <!-- data -->.
local asset = require "srv.core.asset"
local exec = require "srv.async.exec"
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

--- "shop-flame.html" for the report of TOOL about the app at PATH.
---@param path string
---@param tool string
---@return string
function page.file_name(path, tool)
  local name = path:gsub("/+$", ""):match "([^/]*)$":gsub("%.lua$", "")
  local is_plain = name:find "^[%w._-]+$" and not name:find "^%.+$"
  return ("%s-%s.html"):format(is_plain and name or "app", tool)
end

--- Shows the page that was written to PATH.
---@param path string
---@return string? problem
function page.open(path)
  local shown, err = exec({ "xdg-open", path }, { timeout = "10s" })
  if not shown then return err.message end
  return shown.status ~= 0 and ("xdg-open %s: %s"):format(path, shown.stderr) or nil
end

return page
