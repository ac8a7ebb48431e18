--- The pages of template_bench, and the same made by hand.
local engine = require "srv.web.template_engine"
local text = require "srv.base.text"

local FILES = {
  ["table.html"] = [[<!doctype html><title>{{ title }}</title><table>
{% for _, row in ipairs(rows) do %}
<tr><td>{{ row.id }}</td><td><a href="{{ row.url }}">{{ row.name }}</a></td><td>{{ row.note }}</td></tr>
{% end %}
</table>]],
  ["rows.html"] = [[<!doctype html><title>{{ title }}</title><table>
{% for _, row in ipairs(rows) do %}{% include "row", { row = row } %}{% end %}
</table>]],
  ["row.html"] = [[<tr><td>{{ row.id }}</td><td><a href="{{ row.url }}">{{ row.name }}</a></td><td>{{ row.note }}</td></tr>]],
  ["layout.html"] = [[<!doctype html><title>{% block "title" %}{% end %}</title><main>{% block "main" %}{% end %}</main>]],
  ["page.html"] = [[{% extends "layout" %}{% block "title" %}{{ title }}{% end %}{% block "main" %}<p>{{ note }}</p>{% end %}]],
}

local views = engine.engine { read = function(file) return FILES[file] end }

local data = { title = "A table", note = "Fish & chips", rows = {} }
for i = 1, 100 do
  data.rows[i] = { id = i, url = "/items/" .. i, name = "Item " .. i, note = i % 4 == 0 and "Fish & chips <b>" or "plain words" }
end

local function escape(value)
  value = tostring(value)
  return value:find("[&<>\"']") and text.escape_html(value) or value
end

--- As one writes it without templates.
local function by_hand(given)
  local out = { "<!doctype html><title>", escape(given.title), "</title><table>" }
  for _, row in ipairs(given.rows) do
    out[#out + 1] = "<tr><td>" .. escape(row.id) .. '</td><td><a href="' .. escape(row.url) .. '">' .. escape(row.name)
      .. "</a></td><td>" .. escape(row.note) .. "</td></tr>"
  end
  out[#out + 1] = "</table>"
  return table.concat(out)
end

local ROUNDS, WARM_UP, TURNS = 7, 300, 1000

local function cost(render)
  for _ = 1, WARM_UP do render() end
  local best = math.huge
  for _ = 1, ROUNDS do
    collectgarbage()
    local start = os.clock()
    for _ = 1, TURNS do render() end
    best = math.min(best, (os.clock() - start) / TURNS * 1e6)
  end
  return ("%.1f"):format(best)
end

local CASES = {
  { "100 rows of 4 columns", function() return views:render("table", data) end },
  { "the same, each row an include", function() return views:render("rows", data) end },
  { "the same by hand, with table.concat", function() return by_hand(data) end },
  { "a page of two blocks in a layout", function() return views:render("page", data) end },
}

print "page\tbytes\tus"
for _, case in ipairs(CASES) do print(case[1] .. "\t" .. #case[2]() .. "\t" .. cost(case[2])) end
