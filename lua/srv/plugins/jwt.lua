--- srv.jwt (API, section 14): JSON Web Tokens with each request, in Authorization or in a cookie.
---
--- The algorithm is one, and the app's to name: what the token says of it is compared, never followed.
local auth = require "srv.plugins.auth"
local bearer = require "srv.plugins.bearer"
local cookie = require "srv.web.cookie"
local crypto = require "srv.core.crypto"
local factory = require "srv.base.factory"
local jwt = require "srv.base.jwt"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"

local OPTIONS = {
  key = "string", alg = "string", issuer = "string", audience = "string", leeway = "duration", cookie = "string",
  realm = "string", optional = "boolean",
}

local LEEWAY_SECONDS = 30

--- A key that cannot be read is found out by the first token that asks for it: better at start.
local function check_readable(opts)
  local head = crypto.encode("base64url", ('{"alg":"%s"}'):format(opts.alg))
  local _, err = jwt.verify(head .. ".e30.AAAA", { key = opts.key, alg = opts.alg })
  if err and err.code == "bad_key" then misuse("srv.jwt: " .. err.message) end
end

local function check_options(opts)
  opts = options.check("srv.jwt", opts, OPTIONS)
  jwt.check_key("srv.jwt", opts)
  if opts.cookie then cookie.write(opts.cookie, "x", {}, false) end
  if opts.leeway and opts.leeway < 0 then misuse "srv.jwt: leeway must not be negative" end
  check_readable(opts)
  return opts
end

---@class srv.JwtOptions
---@field key string               a secret of 32 bytes and more, or the public key in PEM
---@field alg string               "HS256", "RS256", "ES256" ...: tokens by another one are refused
---@field issuer string?           `iss` must be it
---@field audience string?         `aud` must have it
---@field leeway number|string?    "30s", for clocks that differ
---@field cookie string?           where the token is if there is none in Authorization
---@field realm string?            "api"
---@field optional boolean?        false; true: requests without a token pass

--- Answers 401 to whoever has no token that is genuine, in time and for us; its claims are in `req.state.user`.
---@param opts srv.JwtOptions
---@return table plugin
return factory.name("srv.jwt", function(opts)
  opts = check_options(opts)
  local realm = bearer.realm("srv.jwt", opts.realm)
  local verifying = {
    key = opts.key, alg = opts.alg, issuer = opts.issuer, audience = opts.audience,
    leeway = opts.leeway or LEEWAY_SECONDS,
  }

  local function read(req)
    local token = bearer.token(realm, req) or opts.cookie and req:cookie(opts.cookie)
    if not token then return nil end
    local claims, err = jwt.verify(token, verifying)
    if not claims and err.status ~= 401 then error(err, 0) end
    return claims or bearer.refuse(realm, err.message, err.code)
  end

  return auth.plugin("jwt", realm.challenge, read, opts.optional, opts.cookie)
end, '{ key = ..., alg = "HS256" }')
