--- srv.csrf (API, section 14): requests that change something must come from our own pages.
---
--- Browsers say where a request comes from (Sec-Fetch-Site, and for older ones Origin), and no page can forge
--- that; who sends neither is no browser, so nobody's cookies are with him.
local errors = require "srv.base.errors"
local factory = require "srv.base.factory"
local log = require "srv.core.log"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local origins = require "srv.base.origins"

local csrf = {}

local SAFE = { GET = true, HEAD = true, OPTIONS = true, TRACE = true }
local OPTIONS = { origins = "table" }

local function is_ours(req, allowed)
  local site, origin = req:header "sec-fetch-site", req:header "origin"
  if origin and allowed[origin:lower()] then return true end
  if site then return site == "same-origin" or site == "none" end
  return not origin or origins.is_own(origin, req)
end

--- Raises 403 for a request that another site's page has made.
---@param req srv.Request
---@param allowed table<string, boolean>  origins besides our own, in lower case
function csrf.check(req, allowed)
  if SAFE[req.method] or is_ours(req, allowed) then return end
  -- The host is the app's own affair: behind a proxy it is an address that nobody outside knows.
  log.warn("request of another site refused", {
    origin = req:header "origin", host = req.host, site = req:header "sec-fetch-site",
    hint = "srv.csrf { origins = { ... } } allows an origin; behind a proxy, srv.proxy_trust tells the host",
  })
  errors.raise(403, "this request comes from a page of another site", { code = "cross_site" })
end

local function read_origins(list)
  local allowed = {}
  for _, origin in ipairs(list or {}) do
    if type(origin) ~= "string" or not origins.is(origin) then
      misuse(('srv.csrf: %q is no origin; one is "https://app.example"'):format(tostring(origin)))
    end
    allowed[origin:lower()] = true
  end
  return allowed
end

---@param opts { origins?: string[] }?  besides our own
---@return table plugin
function csrf.plugin(opts)
  opts = options.check("srv.csrf", opts, OPTIONS)
  local allowed = read_origins(opts.origins)
  return {
    name = "csrf",
    use = function(req, _, next)
      csrf.check(req, allowed)
      return next()
    end,
  }
end

factory.name("srv.csrf", csrf.plugin)

return csrf
