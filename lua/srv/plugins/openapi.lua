--- srv.openapi (API, sections 6 and 14): the app's routes in OpenAPI 3.1, and a page that shows them.
---
--- Both are made at the first ask of a generation, and stay to the byte: keys are sorted and routes are in the order
--- of their files, so all workers have one ETag.
local crypto = require "srv.core.crypto"
local document = require "srv.plugins.openapi_document"
local factory = require "srv.base.factory"
local json = require "srv.core.json"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local page = require "srv.plugins.openapi_page"

local OPTIONS = { title = "string", version = "string", path = "string", docs = "any", servers = "table" }
local SERVER_OPTIONS = { url = "string", description = "string" }

-- Options ---------------------------------------------------------------------------------------------

local function server_of(given)
  if type(given) == "string" then given = { url = given } end
  local server = options.check("srv.openapi: servers", given, SERVER_OPTIONS)
  if not server.url or server.url == "" or server.url:find "[%s%c\"';,<>]" then
    misuse 'srv.openapi: servers are URLs, or tables with one: { "https://a.example", { url = "/v2", description = "..." } }'
  end
  return json.object(server)
end

local function servers_of(given)
  if not given then return nil end
  local list = {}
  for i, server in ipairs(given) do list[i] = server_of(server) end
  if #list == 0 then misuse "srv.openapi: servers is a list with at least one URL" end
  return json.array(list)
end

local function docs_of(given)
  if given == nil then return "/docs" end
  if given ~= false and type(given) ~= "string" then misuse "srv.openapi: docs must be a path, or false for no page" end
  return given
end

-- Answers ---------------------------------------------------------------------------------------------

--- What two handlers share: made anew only when the app was compiled anew, as a test may do.
---@class srv.OpenapiMade
---@field of srv.CompiledApp?
---@field text string
---@field tag string
---@field page srv.OpenapiPage?

local function tag_of(text) return crypto.hash("sha256", text, "base64url"):sub(1, 27) end

local function bring_up_to_date(made, router, info)
  local compiled = (router.served_by or router).serving
  if made.of == compiled then return end
  made.text = assert(json.encode(document.make(compiled, router, info)))
  made.of, made.tag, made.page = compiled, tag_of(made.text), nil
end

local function send(res, body, tag, kind)
  res:header("Content-Type", kind)
  res:header("Cache-Control", "no-cache")
  res:etag(tag)
  res:bytes(body)
  return res
end

---@class srv.OpenapiOptions
---@field title string?                     "API"
---@field version string?                   of the API: "1.0.0"
---@field path string?                      "/openapi.json"
---@field docs string|false|nil             "/docs": the page; false: none
---@field servers (string|table)[]?         URLs, or { url =, description = }; without them: the server that is asked

--- Routes that describe the routes beside and beneath.
---@param opts srv.OpenapiOptions?
---@return table plugin
return factory.name("srv.openapi", function(opts)
  opts = options.check("srv.openapi", opts, OPTIONS)
  local path, docs = opts.path or "/openapi.json", docs_of(opts.docs)
  local info = { title = opts.title or "API", version = opts.version or "1.0.0", servers = servers_of(opts.servers) }

  local function setup(router)
    local made = {}

    router:get(path, { hidden = true }, function(_, res)
      bring_up_to_date(made, router, info)
      return send(res, made.text, made.tag, "application/json")
    end)

    if not docs then return end
    router:get(docs, { hidden = true }, function(_, res)
      bring_up_to_date(made, router, info)
      made.page = made.page or page.make(made.text, info, page.relative(docs, path))
      res:header("Content-Security-Policy", made.page.csp)
      return send(res, made.page.html, made.page.tag, "text/html; charset=utf-8")
    end)
  end

  return { name = "openapi", setup = setup }
end)
