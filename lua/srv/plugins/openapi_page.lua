--- The page of srv.openapi: one HTML file with its style, its script and the document in it. It asks nobody for
--- anything else, and its own Content-Security-Policy lets nothing run but what stands in it.
local crypto = require "srv.core.crypto"
local script = require "srv.plugins.openapi_script"
local style = require "srv.plugins.openapi_style"
local text = require "srv.base.text"

local openapi_page = {}

---@class srv.OpenapiPage
---@field html string
---@field tag string
---@field csp string

local PAGE = [[
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%(title)s</title>
<link rel="icon" href="data:,">
<style>%(style)s</style>
</head>
<body>
<a class="skip" href="#operations">To the operations</a>
<header>
<h1>%(title)s <small>%(version)s</small></h1>
<p><a href="%(link)s">%(link)s</a> <span>OpenAPI 3.1</span></p>
<div class="tools"></div>
</header>
<main id="operations"><noscript><p>This page needs JavaScript to show the document above.</p></noscript></main>
<script type="application/json" id="document">%(document)s</script>
<script>%(script)s</script>
</body>
</html>
]]

local function source_of(content) return "'sha256-" .. crypto.hash("sha256", content, "base64") .. "'" end

--- Where "try it" may send requests: to us and to the servers that the app names.
local function connections(servers)
  local list = { "'self'" }
  for _, server in ipairs(servers or {}) do
    list[#list + 1] = server.url:match "^%a[%w+.-]*://[^/{}]+"
  end
  return table.concat(list, " ")
end

local function policy(servers)
  return ("default-src 'none'; script-src %s; style-src %s; img-src 'self' data: blob:; connect-src %s; base-uri 'none'; "
    .. "form-action 'none'; frame-ancestors 'self'"):format(source_of(script), source_of(style), connections(servers))
end

--- The way from the page at DOCS to PATH, whatever stands before both.
---@param docs string
---@param path string
---@return string
function openapi_page.relative(docs, path)
  local _, slashes = docs:sub(2):gsub("/", "")
  return ("../"):rep(slashes) .. path:sub(2)
end

---@param document string  JSON
---@param info srv.OpenapiInfo
---@param link string      to the document
---@return srv.OpenapiPage
function openapi_page.make(document, info, link)
  local parts = {
    title = text.escape_html(info.title), version = text.escape_html(info.version), link = text.escape_html(link),
    style = style, script = script,
    -- In a script element only "<" could end it.
    document = document:gsub("<", "\\u003c"),
  }
  local html = PAGE:gsub("%%%((%l+)%)s", parts)
  return { html = html, tag = crypto.hash("sha256", html, "base64url"):sub(1, 27), csp = policy(info.servers) }
end

return openapi_page
