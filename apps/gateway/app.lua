--- A reverse proxy: streams both ways, fails over, keeps small public answers, limits each client.
---
---     ORIGIN=http://127.0.0.1:9001 STANDBY=http://127.0.0.1:9002 srv apps/gateway
local srv = require "srv"

local http, cache = srv.http, srv.cache
local app = srv.app { timeout = "15s", body_limit = "64MiB" }
local origins = { srv.env("ORIGIN", "url = http://127.0.0.1:9001"), srv.env("STANDBY", "url = http://127.0.0.1:9002") }

local TIMEOUT = srv.env("TIMEOUT", "duration = 10s") -- until an origin's answer begins; READ_TIMEOUT: for each part of it
local READ_TIMEOUT = srv.env("READ_TIMEOUT", "duration = 60s")

local KEPT_BYTES = 256 * 1024

--- Ready as long as one of them serves.
local function any_answers()
  local err
  for _, origin in ipairs(origins) do
    local r
    r, err = http.get(origin, { timeout = "2s", retries = 0 })
    if r and r.status < 500 then return true end
  end
  return nil, err or "no origin serves"
end

app:use(srv.proxy_trust { "loopback" }, srv.request_id())
app:use(srv.metrics(), srv.health { checks = { origin = any_answers } })
app:use(srv.rate_limit { limit = srv.env("LIMIT", "integer 1.. = 600"), window = "1m" }, srv.compress())

--- The place of the answer in the cache; nil unless it is the same for everybody.
local function cache_key(req)
  local own = req:header "authorization" or req:header "cookie" or req:header "range"
  own = own or req:header "content-length" or req:header "transfer-encoding" -- a body may ask for anything
  return req.method == "GET" and not own and "page:" .. req.host .. req.original_url or nil
end

app:all("/*path", function(req, res)
  local key = cache_key(req)
  local hit = key and cache:get(key)
  if hit then
    res:header("X-Cache", "hit")
    return hit.body, hit.status, hit.headers
  end
  -- Identity from behind, so that one copy serves all; compress() codes it for each client.
  local r, err = http.forward(req, origins, {
    timeout = TIMEOUT, read_timeout = READ_TIMEOUT, headers = { ["Accept-Encoding"] = "identity" },
  })
  if not r then return nil, err end
  local ttl = key and not r:header "vary" and r:fresh_for() or 0
  if ttl == 0 or not r.length or r.length > KEPT_BYTES then return r end -- streams through
  local body = assert(r:stream():all())
  cache:set(key, { status = r.status, headers = r.headers, body = body }, ttl)
  return body, r.status, r.headers
end)

return app
