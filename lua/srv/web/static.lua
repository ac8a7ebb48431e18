--- app:static: folders that are served behind all routes (API, section 14).
local errors = require "srv.base.errors"
local files = require "srv.web.files"
local http = require "srv.core.http"
local listing = require "srv.web.listing"
local negotiate = require "srv.web.negotiate"
local text = require "srv.base.text"

local static = {}

--- Opens the folders; one that is not there is an error of the app, at start.
---@param statics table[]
function static.prepare(statics)
  for _, served in ipairs(statics) do
    local folder, err = files.folder(files.absolute(served.folder))
    if not folder then
      error(("%s: app:static cannot serve %q: %s"):format(served.place, served.folder, err.message), 0)
    end
    served.opened = folder
  end
end

-- Options ---------------------------------------------------------------------------------------------

--- A setting that may be true or a Lua pattern for the path within the folder.
local function applies(setting, path)
  return setting == true or type(setting) == "string" and path:find(setting) ~= nil
end

local function file_options(served, r, path)
  local opts = served.options
  local index = opts.index
  if index == nil then index = "index.html" end
  local immutable = applies(opts.immutable, path)
  return {
    index = index or nil, dotfiles = opts.dotfiles, precompressed = opts.precompressed ~= false, etag = opts.etag ~= false,
    max_age = files.max_age(opts.max_age, immutable), immutable = immutable, private = files.is_private(r),
  }
end

--- The app's fields win over ours, but what an answer varies by is all of it.
local function add_headers(served, r)
  local headers = served.options.headers
  if not headers then return end
  local varies = r:header "Vary"
  http.set_headers(r, headers)
  if varies then r:vary(varies) end
end

local function find(served, r, path, only_ask)
  return http.find_file(r, served.opened, path, file_options(served, r, path), only_ask)
end

-- Folders ---------------------------------------------------------------------------------------------

--- `/docs` for a folder: its page would have its links resolved beside it.
local function redirect_to_folder(q, r)
  r:redirect(q.path .. "/" .. (q.original_url:match("%?.*$") or ""), 301)
  return true
end

local POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

--- The page of a folder without an index. It is made anew for each request, for folders change.
local function serve_list(served, q, r, path)
  local entries, is_cut = http.list_folder(served.opened, path, served.options.dotfiles == true)
  if not entries then
    if is_cut == "exhausted" then files.raise(is_cut) end
    return false
  end
  r:vary("Accept"):header("Cache-Control", "no-cache")
  if negotiate.media(q:header "accept", { "html", "json" }) == "json" then
    r:json(listing.data(entries, is_cut))
  else
    r:header("Content-Security-Policy", POLICY):html(listing.html(text.percent_decode(q.path), entries, is_cut, path == ""))
  end
  add_headers(served, r)
  return true
end

-- Fallbacks -------------------------------------------------------------------------------------------

--- Whether a path that leads nowhere may be a page of the app in the browser. A browser that goes to a page
--- asks for HTML by name; a script that is missing must be a 404, for an index in its place is a syntax error
--- in it, and so must be what asks for JSON.
local function may_be_page(q, path)
  local accept = q:header "accept"
  if accept and accept:lower():find("text/html", 1, true) then return negotiate.media(accept, { "html" }) ~= nil end
  local extension = path:match "%.(%w+)$"
  return not (extension and http.media_type(extension)) and negotiate.media(accept, { "html" }) ~= nil
end

local function serve_fallback(served, q, r, path)
  local name = served.options.fallback
  if not name then return false end
  r:vary "Accept"
  if not may_be_page(q, path) or find(served, r, name) ~= "found" then return false end
  add_headers(served, r)
  return true
end

-- Files -----------------------------------------------------------------------------------------------

--- Another method on a file that is there: OPTIONS tells of it, others are refused.
local function refuse_method(served, q, r, path)
  if find(served, r, path, true) ~= "found" then return false end
  if q.method ~= "OPTIONS" then
    errors.raise(405, q.method .. " is not allowed on a file", { headers = { Allow = "GET, HEAD, OPTIONS" } })
  end
  http.record(r, false, http.EMPTY, nil, 204, { Allow = "GET, HEAD, OPTIONS" })
  return true
end

local function serve_found(served, r, path)
  add_headers(served, r)
  if applies(served.options.download, path) then
    http.field(r, "Content-Disposition", files.disposition(path:match("[^/]+$") or "download"))
  end
  return true
end

--- A path of a folder: with a slash at its end, or "", which may still want one.
local function serve_folder(served, q, r, path)
  if q.path:sub(-1) ~= "/" then
    if served.options.list or find(served, r, path, true) == "found" then return redirect_to_folder(q, r) end
    return serve_fallback(served, q, r, path)
  end
  local outcome = find(served, r, path)
  if outcome == "found" then return serve_found(served, r, path) end
  if outcome ~= "missing" then files.raise(outcome) end
  return served.options.list and serve_list(served, q, r, path) or serve_fallback(served, q, r, path)
end

--- True when the answer is recorded.
local function serve_one(served, q, r, path)
  if q.method ~= "GET" and q.method ~= "HEAD" then return refuse_method(served, q, r, path) end
  if path == "" or path:sub(-1) == "/" then return serve_folder(served, q, r, path) end
  local outcome = find(served, r, path)
  if outcome == "found" then return serve_found(served, r, path) end
  if outcome == "folder" then return redirect_to_folder(q, r) end
  if outcome ~= "missing" then files.raise(outcome) end
  return serve_fallback(served, q, r, path)
end

--- Asks the folders whose prefix covers the path, the longest prefix first.
---@param statics table[]  of srv.CompiledApp
---@param q srv.Request
---@param r srv.Response
---@return boolean  the answer is recorded
function static.serve(statics, q, r)
  for _, served in ipairs(statics) do
    local path
    if http.is_host(q, served.scope.host_index) then path = http.rest(q, served.pattern) end
    if path == false then errors.raise(400, "the path has a broken percent-escape") end
    if path and serve_one(served, q, r, path) then return true end
  end
  return false
end

return static
