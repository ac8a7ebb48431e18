-- a reverse proxy that streams both ways, fails over, keeps small public answers, limits each client
local srv = require "srv"
local http, cache = srv.http, srv.cache
local app = srv.app { timeout = "15s", body_limit = "64MiB" }
local origins = { srv.env("ORIGIN", "url = http://127.0.0.1:9001"), srv.env("STANDBY", "url = http://127.0.0.1:9002") }
local KEPT_BYTES = 256 * 1024

app:use(srv.proxy_trust { "loopback" }, srv.request_id(), srv.rate_limit { limit = 600, window = "1m" }, srv.compress())
app:use(srv.metrics(), srv.health { checks = { origin = function() return http.get(origins[1]) end } })

local function cache_key(req)                                     -- nil unless the answer is the same for everybody
  local own = req:header "authorization" or req:header "cookie" or req:header "range"
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
  local r, err = http.forward(req, origins, { timeout = "10s", headers = { ["Accept-Encoding"] = "identity" } })
  if not r then return nil, err end
  local ttl = key and not r:header "vary" and r:fresh_for() or 0
  if ttl == 0 or not r.length or r.length > KEPT_BYTES then return r end       -- streams through
  local body = assert(r:stream():all())
  cache:set(key, { status = r.status, headers = r.headers, body = body }, ttl)
  return body, r.status, r.headers
end)
return app
