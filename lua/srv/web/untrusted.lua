--- What a proxy tells of the client, where nobody has said that the proxy is to be trusted: passed over, but told
--- of in the log. Else an app behind one counts and bans all its clients as a single one, and nobody knows why.
local http = require "srv.core.http"
local log = require "srv.core.log"

-- Once in each worker and generation: whoever is no proxy can send such a header with each request.
local is_told = false

local function header_of(req)
  if http.header(req, "x-forwarded-for") then return "X-Forwarded-For" end
  return http.header(req, "forwarded") and "Forwarded" or nil
end

--- Called where an app asks who the client is and is told the socket's address.
---@param req srv.Request
return function(req)
  if is_told then return end
  local header = header_of(req)
  if not header then return end
  is_told = true
  local peer = http.peer(req)
  log.warn("a proxy is not trusted: the client is taken to be the proxy", {
    header = header, peer = peer,
    hint = ("if this peer is your proxy, say app:use(srv.proxy_trust { %q }); if it is not, all is well"):format(
      peer:find "^[%x.:]+$" and peer or "loopback"), -- a Unix socket's
  })
end
