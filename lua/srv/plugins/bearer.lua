--- srv.bearer (API, section 14): a token with each request (RFC 6750), and how srv.jwt reads and refuses one.
local auth = require "srv.plugins.auth"
local factory = require "srv.base.factory"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"

local bearer = {}

local OPTIONS = { check = "function", realm = "string", optional = "boolean" }

---@class srv.BearerRealm
---@field name string
---@field challenge string  to those who come without a token

---@param where string
---@param realm string?
---@return srv.BearerRealm
function bearer.realm(where, realm)
  local name = auth.realm(where, realm)
  return { name = name, challenge = auth.challenge("Bearer", { { "realm", name } }) }
end

--- RFC 6750, 3: what is wrong stands beside the realm.
local function refuse(realm, word, message, fields, status)
  local params = { { "realm", realm.name }, { "error", word }, { "error_description", message } }
  auth.refuse(auth.challenge("Bearer", params), message, fields, status)
end

--- Raises 401 for a token that is not good.
---@param realm srv.BearerRealm
---@param message string  plain text
---@param code string?
function bearer.refuse(realm, message, code)
  refuse(realm, "invalid_token", message, { code = code or "invalid_token" })
end

--- The token of REQ; nil: none came with it. Raises 400 for what can be none.
---@param realm srv.BearerRealm
---@param req srv.Request
---@return string?
function bearer.token(realm, req)
  local credentials = auth.credentials(req, "bearer")
  if not credentials then return nil end
  local token = credentials:match "^[%w%-._~+/]+=*$"
  return token or refuse(realm, "invalid_request", "there is no token behind Bearer", { code = "invalid_request" }, 400)
end

---@class srv.BearerOptions
---@field check fun(token: string, req: srv.Request): any, any  gives the user
---@field realm string?       "api"
---@field optional boolean?   false; true: requests without a token pass

--- Answers 401 to whoever has no token that `check` knows; what it gives is in `req.state.user`.
---@param opts srv.BearerOptions
---@return table plugin
function bearer.plugin(opts)
  opts = options.check("srv.bearer", opts, OPTIONS)
  if not opts.check then misuse "srv.bearer: check = function(token, req) is missing; it gives the user" end
  local realm = bearer.realm("srv.bearer", opts.realm)

  local function read(req)
    local token = bearer.token(realm, req)
    if not token then return nil end
    return auth.outcome(opts.check(token, req)) or bearer.refuse(realm, "this token is not known")
  end

  return auth.plugin("bearer", realm.challenge, read, opts.optional)
end

factory.name("srv.bearer", bearer.plugin, "{ check = function(token) ... end }")

return bearer
