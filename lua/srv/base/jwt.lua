--- JSON Web Tokens (RFC 7519, 8725): srv.crypto.jwt_sign and jwt_verify.
---
--- The algorithm is the verifier's to say, never the token's: a token that names another one, or
--- `none`, is refused before any key is looked at, and a secret and a PEM key cannot be taken for each
--- other.
local core = require "srv.core.crypto"
local errors = require "srv.base.errors"
local json = require "srv.base.json"
local misuse = require "srv.core.task".misuse
local now = require "srv.core.env".now
local options = require "srv.base.options"
local signatures = require "srv.core.key"

local jwt = {}

local TOKEN_BYTES_MAX = 16 * 1024
local PEM_BYTES_MAX = 16 * 1024   -- base/crypto_key.h

--- HMAC: the hash, and the least key (RFC 7518, 3.2). Key pairs are C's.
local SECRETS = { HS256 = { "sha256", 32 }, HS384 = { "sha384", 48 }, HS512 = { "sha512", 64 } }
local ALGORITHMS = {
  HS256 = true, HS384 = true, HS512 = true, RS256 = true, RS384 = true, RS512 = true,
  ES256 = true, ES384 = true, ES512 = true,
}

-- What the caller gives -------------------------------------------------------------------------------

local function is_pem(key) return key:find("-----BEGIN ", 1, true) ~= nil end

local function check_secret(where, alg, key)
  if is_pem(key) then misuse(("%s: %s takes a secret, and this is a PEM key"):format(where, alg)) end
  local least = SECRETS[alg][2]
  if #key < least then
    misuse(("%s: the key has %d bytes, and %s needs %d: make one with srv.crypto.token(%d)"):format(
      where, #key, alg, least, least))
  end
end

local function check_pem(where, alg, key)
  if not is_pem(key) then misuse(("%s: %s takes a key in PEM (-----BEGIN ...)"):format(where, alg)) end
  if #key > PEM_BYTES_MAX then misuse(where .. ": no PEM key is that long") end
end

local function check_key(where, opts)
  if not opts.alg then misuse(where .. ': say which algorithm, as in { alg = "HS256" }') end
  if not ALGORITHMS[opts.alg] then misuse(where .. ": " .. options.unknown("algorithm", opts.alg, ALGORITHMS)) end
  if not opts.key then misuse(where .. ": the option key is missing") end
  local check = SECRETS[opts.alg] and check_secret or check_pem
  check(where, opts.alg, opts.key)
end

--- Raises unless OPTS name an algorithm and have a key for it.
---@param where string
---@param opts { key: string?, alg: string? }
function jwt.check_key(where, opts) check_key(where, opts) end

-- Signing ---------------------------------------------------------------------------------------------

local SIGN_OPTIONS = { key = "string", alg = "string", expires = "duration" }

local function signature_of(alg, key, text)
  local secret = SECRETS[alg]
  if secret then return core.hmac(secret[1], key, text, "raw") end
  return signatures.sign(alg, key, text)
end

--- A copy with `iat`, and with `exp` where it expires.
local function dated(claims, expires)
  local copy, moment = {}, math.floor(now())
  for name, value in pairs(claims) do
    if type(name) ~= "string" then misuse "srv.crypto.jwt_sign: the names of claims are strings" end
    copy[name] = value
  end
  if copy.iat == nil then copy.iat = moment end
  if expires then copy.exp = math.floor(moment + expires) end
  return json.object(copy)
end

--- A signed token. Anybody can read its claims. HS256 HS384 HS512 take a secret; RS256 RS384 RS512
--- ES256 ES384 ES512 a private key in PEM, and wait for a thread of the pool.
---@param claims table<string, srv.Json>
---@param opts { key: string, alg: string, expires?: number|string }
---@return string?
---@return srv.Error? err  bad_key, busy
function jwt.sign(claims, opts)
  if type(claims) ~= "table" then misuse("srv.crypto.jwt_sign: claims are a table, not a " .. type(claims)) end
  opts = options.check("srv.crypto.jwt_sign", opts, SIGN_OPTIONS)
  check_key("srv.crypto.jwt_sign", opts)
  local head = core.encode("base64url", ('{"alg":"%s","typ":"JWT"}'):format(opts.alg))
  local text = head .. "." .. core.encode("base64url", json.encode(dated(claims, opts.expires)))
  local signature, err = signature_of(opts.alg, opts.key, text)
  if not signature then return nil, err end
  return text .. "." .. core.encode("base64url", signature)
end

-- Verifying -------------------------------------------------------------------------------------------

local VERIFY_OPTIONS = { key = "string", alg = "string", issuer = "string", audience = "string", leeway = "duration" }

--- All of these are the bearer's fault.
local function refuse(code, message)
  return nil, errors.new(401, message, { code = code })
end

--- The object that a part of the token is.
local function read_part(part)
  local text = core.decode("base64url", part)
  local value = text and json.decode(text)
  return json.is_object(value) and value or nil
end

--- "head.claims", the three parts; nothing if it does not look like that. Padding would be a second
--- way to write the same token.
local function split(token)
  if #token > TOKEN_BYTES_MAX then return nil end
  local text, head, claims, signature = token:match "^(([%w_-]+)%.([%w_-]+))%.([%w_-]*)$"
  if not text then return nil end
  return text, head, claims, signature
end

local function is_genuine(alg, key, text, signature)
  local secret = SECRETS[alg]
  if secret then return core.equal(core.hmac(secret[1], key, text, "raw"), signature) end
  return signatures.verify(alg, key, text, signature)
end

local function is_moment(v) return v == nil or type(v) == "number" end

local function check_times(claims, leeway)
  local moment = now()
  if not (is_moment(claims.exp) and is_moment(claims.nbf) and is_moment(claims.iat)) then
    return refuse("bad_token", "exp, nbf and iat of a token are numbers")
  end
  if claims.exp and moment >= claims.exp + leeway then return refuse("expired", "the token has expired") end
  if claims.nbf and moment < claims.nbf - leeway then return refuse("not_yet", "the token is not valid yet") end
  if claims.iat and moment < claims.iat - leeway then return refuse("not_yet", "the token was issued in the future") end
  return true
end

local function is_for(aud, audience)
  if type(aud) ~= "table" then return aud == audience end
  for _, one in ipairs(aud) do
    if one == audience then return true end
  end
  return false
end

--- A token that says whom it is for is for nobody else (RFC 7519, 4.1.3).
local function check_parties(claims, issuer, audience)
  if issuer and claims.iss ~= issuer then return refuse("bad_issuer", "the token comes from somebody else") end
  if (audience or claims.aud ~= nil) and not (audience and is_for(claims.aud, audience)) then
    return refuse("bad_audience", "the token is for somebody else")
  end
  return true
end

local function check_claims(claims, opts)
  local ok, err = check_times(claims, opts.leeway or 0)
  if ok then ok, err = check_parties(claims, opts.issuer, opts.audience) end
  if not ok then return nil, err end
  return claims
end

--- The claims of a token that is genuine, in time, and meant for us. With a key pair it waits for a
--- thread of the pool.
---@param token string
---@param opts { key: string, alg: string, issuer?: string, audience?: string, leeway?: number|string }
---@return table<string, srv.Json>?
---@return srv.Error? err  bad_token, bad_alg, forged, expired, not_yet, bad_issuer, bad_audience; bad_key, busy
function jwt.verify(token, opts)
  if type(token) ~= "string" then misuse("srv.crypto.jwt_verify: a token is a string, not a " .. type(token)) end
  opts = options.check("srv.crypto.jwt_verify", opts, VERIFY_OPTIONS)
  check_key("srv.crypto.jwt_verify", opts)
  local text, head, claims, signature = split(token)
  head = text and read_part(head)
  signature = head and core.decode("base64url", signature)
  if not signature then return refuse("bad_token", "this is no JSON Web Token") end
  if head.alg ~= opts.alg then return refuse("bad_alg", "the token is not signed with " .. opts.alg) end
  if head.crit ~= nil then return refuse("bad_token", "the token has extensions that must be understood") end
  local genuine, err = is_genuine(opts.alg, opts.key, text, signature)
  if err then return nil, err end
  if not genuine then return refuse("forged", "the token's signature is wrong") end
  claims = read_part(claims)
  if not claims then return refuse("bad_token", "the token's claims are no JSON object") end
  return check_claims(claims, opts)
end

return jwt
