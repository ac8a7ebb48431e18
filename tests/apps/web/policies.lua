-- What the cases of areas C, Z, H and L speak to, beside the routes of app.lua: plugins around small answers.
local srv = require "srv"

local app = srv.router()

local function page() return "hello" end
local function broken() error "broken on purpose" end

--- A router with PLUGINS and a page, mounted at PREFIX.
local function mount(prefix, ...)
  local router = srv.router()
  router:use(...)
  router:get("/page", page)
  router:get("/broken", broken)
  app:mount(prefix, router)
  return router
end

-- Security headers ------------------------------------------------------------------------------------
mount("/helmet", srv.helmet()):get("/own", function(_, res)
  return res:header("X-Frame-Options", "DENY"):header("Content-Security-Policy", "default-src 'none'"):text "own"
end)
mount("/helmet-tls", srv.helmet(), srv.proxy_trust { "loopback" })
mount("/helmet-chosen", srv.helmet { csp = "default-src 'none'", frame = false, coep = "require-corp", referrer = "same-origin" })
mount("/helmet/inner", srv.helmet { frame = "DENY", corp = false })

-- Pages of other origins ------------------------------------------------------------------------------
local LISTED = { origins = { "https://a.example", "https://*.b.example" }, credentials = true }
mount("/cors/guarded", srv.basic_auth { users = { u = "p" } }, srv.cors(LISTED))
mount("/cors/own", srv.cors { methods = { "GET", "PUT" }, headers = { "X-One", "X-Two" } })
  :options("/page", function() return "my own" end)

-- Compression -----------------------------------------------------------------------------------------
local LONG = ("repeated "):rep(300)

local coded = mount("/coded", srv.compress())
coded:get("/secret", function(_, res) return res:header("Cache-Control", "no-transform"):text(LONG) end)
coded:get("/strong", function(_, res) return res:etag("v"):text(LONG) end)
coded:get("/image", function(_, res) return res:type("png"):text(LONG) end)
coded:get("/own", function(_, res) return res:header("Content-Encoding", "x-own"):text(LONG) end)
coded:get("/none", function(_, res) return res:status(204):vary "X-Own" end)
coded:get("/part", function(_, res) return res:status(206):header("Content-Range", "bytes 0-2699/5400"):text(LONG) end)
coded:get("/events", function(_, res)
  local events = res:sse()
  events:send(LONG)
end)
coded:get("/stream", function(_, res)
  res:type("text"):etag "v"
  local left = 3
  return function()
    left = left - 1
    return left >= 0 and LONG or nil
  end
end)

-- Limits ----------------------------------------------------------------------------------------------
local function key(req) return req.params.key end
mount("/limited/:key", srv.cors(), srv.rate_limit { limit = 3, window = "1m", key = key })
mount("/dear/:key", srv.rate_limit { limit = 5, window = "1h", key = key, cost = 2, name = "dear" })
mount("/counted", srv.rate_limit { limit = 1000000 })
mount("/unlimited", srv.rate_limit { limit = 1, key = function() end })

return app
