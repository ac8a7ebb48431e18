--- app:static: folders that are served behind all routes (API, section 14).
local errors = require "srv.base.errors"
local files = require "srv.web.files"
local http = require "srv.core.http"

local static = {}

--- A setting that may be true or a Lua pattern for the path within the folder.
local function applies(setting, path)
  return setting == true or type(setting) == "string" and path:find(setting) ~= nil
end

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

local function file_options(served, path)
  local opts = served.options
  local index = opts.index
  if index == nil then index = "index.html" end
  return {
    index = index or nil, dotfiles = opts.dotfiles, precompressed = opts.precompressed ~= false, etag = opts.etag ~= false,
    max_age = opts.max_age or 0, immutable = applies(opts.immutable, path),
  }
end

local function add_headers(served, r, path)
  local opts = served.options
  if opts.headers then http.set_headers(r, opts.headers) end
  if applies(opts.download, path) then
    http.field(r, "Content-Disposition", files.disposition(path:match("[^/]+$") or "download"))
  end
end

--- Another method on a file that is there: OPTIONS tells of it, others are refused.
local function refuse_method(served, q, r, path)
  if http.find_file(r, served.opened, path, file_options(served, path), true) ~= "found" then return false end
  if q.method ~= "OPTIONS" then
    errors.raise(405, q.method .. " is not allowed on a file", { headers = { Allow = "GET, HEAD, OPTIONS" } })
  end
  http.record(r, false, http.EMPTY, nil, 204, { Allow = "GET, HEAD, OPTIONS" })
  return true
end

local function serve_fallback(served, r)
  local name = served.options.fallback
  if not name or http.find_file(r, served.opened, name, file_options(served, name)) ~= "found" then return false end
  if served.options.headers then http.set_headers(r, served.options.headers) end
  return true
end

local function redirect_to_folder(q, r)
  r:redirect(q.path .. "/" .. (q.original_url:match("%?.*$") or ""), 301)
  return true
end

--- True when the answer is recorded.
local function serve_one(served, q, r, path)
  if q.method ~= "GET" and q.method ~= "HEAD" then return refuse_method(served, q, r, path) end
  local outcome = http.find_file(r, served.opened, path, file_options(served, path))
  if outcome == "found" then
    add_headers(served, r, path)
    return true
  end
  if outcome == "folder" then return redirect_to_folder(q, r) end
  if outcome ~= "missing" then files.raise(outcome) end
  return serve_fallback(served, r)
end

--- Asks the folders whose prefix covers the path, the longest prefix first.
---@param statics table[]  of srv.CompiledApp
---@param q srv.Request
---@param r srv.Response
---@return boolean  the answer is recorded
function static.serve(statics, q, r)
  for _, served in ipairs(statics) do
    local path = http.is_host(q, served.scope.host_index) and http.rest(q, served.pattern)
    if path and serve_one(served, q, r, path) then return true end
  end
  return false
end

return static
