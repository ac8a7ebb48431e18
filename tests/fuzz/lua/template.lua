--- Templates: whatever the text, it compiles or is told by line and column what is wrong; and what it
--- makes has one structure for all values, as a browser sees it (tests/support/html_tokens.lua).
---
--- The input is "text NUL value"; its first byte chooses the kind. Only texts whose tags do nothing but
--- print and branch are rendered: the rest is the app's own code, which may do anything.
local html_tokens = require "tests.support.html_tokens"
local json = require "srv.base.json"
local template_engine = require "srv.web.template_engine"

local FILES = {
  ["page.html"] = "<!doctype html><title>{% block 't' %}{{ v }}{% end %}</title><p id='{{ v }}'>{% block 'b' %}{% end %}</p>",
  ["part.html"] = "<i title='{{ v }}'>{{ v }}</i>",
}

local views = template_engine.engine { read = function(file) return FILES[file], "no such file" end }

local KINDS = { [0] = "html", "html", "html", "html", "xml", "json", "txt", "html" }

local TAGS = {
  "{{ v }}", "{% if a then %}", "{% if not a then %}", "{% else %}", "{% end %}", "{% extends 'page' %}", "{% block 't' %}",
  "{% block 'b' %}", "{% include 'part' %}",
}

local HOSTILE = {
  "'", '"', "</script><script>", "-->", "javascript:alert(1)", ":alert(1)", "//x", "`", "\\", "\n", ">", "<!--", "x onload=y",
  "</textarea>", "&quot;", "${x}", "*/", "'\"><img src=x onerror=alert(1)>", "</style>", "\226\128\168", " javascript:x",
}

--- Past the tag that stands at AT, if it is one of TAGS or a comment.
local function skip_tame_tag(text, at)
  for _, tag in ipairs(TAGS) do
    if text:sub(at, at + #tag - 1) == tag then return at + #tag end
  end
  return text:match("^{#.-#}()", at)
end

local function is_tame(text)
  local at = 1
  while at do
    at = text:find("{[{%%#]", at)
    if not at then return true end
    at = skip_tame_tag(text, at)
  end
  return false
end

local function plain_count(text, of)
  local _, count = text:gsub(of, "")
  return count
end

local function has_json(text)
  local _, err = json.decode(text)
  return err == nil
end

--- What must not differ between values.
local SHAPES = {
  html = function(page) return table.concat(html_tokens.of(page), "\n") end,
  xml = function(page) return plain_count(page, "[<>\"']") .. " marks" end,
  json = function(page) return has_json(page) and "JSON" or "none" end,
  txt = function() return "" end,
}

--- A regular expression in a script is beyond the judge, and so are the bytes that HTML takes for blanks
--- or ends and Lua does not.
local function is_judged(kind, text)
  if kind ~= "html" then return true end
  if text:find("[%z\v]") then return false end
  return not text:find("/", 1, true) or not text:lower():find("<script", 1, true) and not text:lower():find("%son")
end

local function check_shapes(kind, text, show, value)
  for _, a in ipairs { true, false } do
    local plain = SHAPES[kind](show { v = "x", a = a })
    for _, hostile in ipairs { value, value .. HOSTILE[#value % #HOSTILE + 1], HOSTILE[#text % #HOSTILE + 1] .. value } do
      local page = show { v = hostile, a = a }
      local shape = SHAPES[kind](page)
      if shape ~= plain then
        error(("%s %q with %q: %s\nshould be:\n%s\nis:\n%s"):format(kind, text, hostile, page, plain, shape), 0)
      end
    end
  end
end

return function(bytes)
  local kind = KINDS[(bytes:byte(1) or 0) % 8]
  local text, value = bytes:match("^.?([^%z]*)%z?(.*)$")
  local ok, show = pcall(views.compile, views, text or "", { kind = kind })
  if not ok then
    if not tostring(show):find("^template:%d+:%d+: ") then error(("%q: %s"):format(text, tostring(show)), 0) end
    return
  end
  if is_tame(text) and is_judged(kind, text) then check_shapes(kind, text, show, value or "") end
end
