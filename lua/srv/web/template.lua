--- srv.template: the app's views, in its folder views/ (API, section 11). How templates work stands
--- in template_engine.lua.
local crypto = require "srv.core.crypto"
local engine = require "srv.web.template_engine"
local env = require "srv.core.env"
local folder = require "srv.core.folder"

local template = {}

local VIEWS = "views/"
local PUBLIC = "public/"

--- A file of the app as text. Blocks, but each is read once in a generation.
local function read_file(path, bytes_max)
  local file, why = io.open(env.root .. "/" .. path, "rb")
  if not file then return nil, why end
  local text = file:read(bytes_max or "*a")
  file:close()
  return text
end

-- ---- helpers ------------------------------------------------------------------------------------

local ASSET_BYTES_MAX = 4 * 1024 * 1024 -- a larger file is no style or script: its URL stays bare
local VERSION_CHARS = 10
local VERSIONS_MAX = 1000                 -- paths may be made from data: more, and all are forgotten

local versions, version_count = {}, 0

--- "?v=..." for the file's bytes, or "" where there is none.
local function version_of(path)
  local bytes = read_file(PUBLIC .. path:gsub("^/", ""), ASSET_BYTES_MAX + 1)
  if not bytes or #bytes > ASSET_BYTES_MAX then return "" end
  return "?v=" .. crypto.sign("asset", bytes):sub(1, VERSION_CHARS)
end

--- The URL of a file in public/ that changes with it, so that it may be cached for ever. An edit of
--- the file loads no new generation, so each time the kernel is asked whether it is still the same.
---@param path string  "/style.css"
---@return string
local function asset(path)
  local stamp = folder.version(env.root .. "/" .. PUBLIC .. path:gsub("^/", "")) or "none"
  local known = versions[path]
  if not known or known.stamp ~= stamp then
    if not known then version_count = version_count + 1 end
    if version_count > VERSIONS_MAX then versions, version_count = {}, 1 end
    known = { stamp = stamp, text = version_of(path) }
    versions[path] = known
  end
  return path .. known.text
end

local helpers = {
  asset = asset,
  url = function() error("url() needs an app whose routes have names", 2) end,
}

--- Puts names in sight of the app's views: `url`, when the app is there to make them.
---@param more table<string, any>
function template.use(more)
  for name, helper in pairs(more) do helpers[name] = helper end
end

-- ---- views --------------------------------------------------------------------------------------

local views = engine.engine {
  read = function(file) return read_file(VIEWS .. file) end,
  label = VIEWS, strict = env.dev, helpers = helpers,
}

--- The view NAME ("news/show") filled with DATA.
---@param name string
---@param data table?
---@return string
function template.render(name, data) return views:render(name, data) end

--- A function from data to text, of a template that is no file.
---@param text string
---@param opts { kind?: "html"|"xml"|"json"|"txt", name?: string }?
---@return fun(data: table?): string
function template.compile(text, opts) return views:compile(text, opts) end

--- Compiles every file below views/ of a kind that we know. What is wrong in them, a message each;
--- none if there is no such folder.
---@return string[]
function template.check()
  local files, err = folder.files(env.root .. "/" .. VIEWS)
  if not files then return err.code == "not_found" and {} or { tostring(err) } end
  table.sort(files)
  local names = {}
  for _, file in ipairs(files) do
    if engine.is_view(file) then names[#names + 1] = file end
  end
  return views:check(names)
end

template.media_type = engine.media_type
template.locate = engine.locate

return template
