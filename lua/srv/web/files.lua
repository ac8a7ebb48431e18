--- Files as answers: res:file(), res:download(), and what folders that are served need of them.
local env = require "srv.core.env"
local errors = require "srv.base.errors"
local http = require "srv.core.http"
local objects = require "srv.web.objects"
local text = require "srv.base.text"
local utf8 = require "srv.base.utf8"

local files = {}

--- Folders that are in use, by their path. Weak: an app may have one for each of its users.
local folders = setmetatable({}, { __mode = "v" })

--- PATH seen from the app's folder.
---@param path string
---@return string
function files.absolute(path)
  return path:sub(1, 1) == "/" and path or env.root .. "/" .. path
end

---@param path string  absolute
---@return userdata? folder
---@return srv.Error?
function files.folder(path)
  local folder, err = folders[path], nil
  if not folder then
    folder, err = http.folder(path)
    folders[path] = folder
  end
  return folder, err
end

local YEAR = 365 * 86400

--- What never changes may be kept for a year, unless the app says otherwise.
---@param max_age number?
---@param immutable boolean?
---@return number
function files.max_age(max_age, immutable)
  return max_age or immutable and YEAR or 0
end

--- Whether the request of RES has looked into its session: what it is answered then may be for this visitor alone.
---@param res srv.Response
---@return boolean
function files.is_private(res) return rawget(objects.request(res[1]), "session") ~= nil end

--- A plain name for old clients: a character outside ASCII is one "_", and so are those that they misread in
--- quotes (RFC 6266, appendix D).
local function plain_name(name)
  return (name:gsub("[\194-\244][\128-\191]+", "_"):gsub('[^ !#$&\'()+,%-.%w;=@%[%]^_`{}~]', "_"))
end

--- The value of Content-Disposition for a download (RFC 6266): the plain name, and the true one percent-encoded
--- (RFC 8187). Of a path only the last name counts, and control bytes count for nothing.
---@param name string
---@return string
function files.disposition(name)
  name = name:match("[^/\\]*$"):gsub("%c", "_")
  if name == "" then name = "download" end
  local plain = plain_name(name)
  local value = ('attachment; filename="%s"'):format(plain)
  if plain == name or not utf8.length(name) then return value end
  return value .. "; filename*=UTF-8''" .. text.percent_encode(name)
end

--- What an outcome of find_file is worth to a client, unless the file was found.
---@param outcome string
function files.raise(outcome)
  if outcome == "bad_path" then errors.raise(400, "the path has a NUL byte in it") end
  if outcome == "exhausted" then errors.raise(503, "no file can be opened now", { headers = { ["Retry-After"] = 1 } }) end
  errors.raise(404, "no such file")
end

--- Records the file at PATH beneath opts.root as the answer; raises 404 where there is none.
---@param res srv.Response
---@param path string
---@param opts table  as res:file() and res:download() have checked them
function files.send(res, path, opts)
  local root = opts.root and files.absolute(opts.root) or env.root
  if path:sub(1, #root + 1) == root .. "/" then path = path:sub(#root + 2) end
  local folder, err = files.folder(root)
  if not folder then error(err, 0) end
  local outcome = http.find_file(res, folder, path, {
    dotfiles = opts.dotfiles, max_age = files.max_age(opts.max_age, opts.immutable), immutable = opts.immutable, etag = true,
    private = files.is_private(res), type = opts.type and http.media_type(opts.type),
  })
  if outcome ~= "found" then files.raise(outcome == "folder" and "missing" or outcome) end
  if opts.download then http.field(res, "Content-Disposition", files.disposition(opts.download)) end
end

return files
