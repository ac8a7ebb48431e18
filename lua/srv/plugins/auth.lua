--- What basic_auth, bearer and jwt have in common: whom they ask for credentials, and how they refuse.
---
--- The challenge stands on every 401 beneath the plugin, also on one that a handler raises (RFC 9110, 11.6.1).
local errors = require "srv.base.errors"
local misuse = require "srv.core.task".misuse
local text = require "srv.base.text"

local auth = {}

--- As a quoted-string's text (RFC 9110, 5.6.4).
local function quoted(value) return '"' .. value:gsub('["\\]', "\\%0") .. '"' end

--- `Bearer realm="api", error="invalid_token"`
---@param scheme string
---@param params string[][]  name and value
---@return string
function auth.challenge(scheme, params)
  local list = {}
  for i, param in ipairs(params) do list[i] = param[1] .. "=" .. quoted(param[2]) end
  return scheme .. " " .. table.concat(list, ", ")
end

---@param where string
---@param realm string?
---@return string
function auth.realm(where, realm)
  realm = realm or "api"
  if realm == "" or realm:find "[%c\128-\255]" then misuse(where .. ": realm must be plain text") end
  return realm
end

--- What stands behind SCHEME in Authorization; nil where another scheme or nothing does.
---@param req srv.Request
---@param scheme string  in lower case
---@return string?
function auth.credentials(req, scheme)
  local given, rest = (req:header "authorization" or ""):match "^([^%s]+)(.*)$"
  return given and given:lower() == scheme and text.trim(rest) or nil
end

--- Raises what is answered to credentials that are missing or wrong.
---@param challenge string
---@param message string
---@param fields table?  of the error
---@param status integer?  401
function auth.refuse(challenge, message, fields, status)
  fields = fields or {}
  fields.headers = { ["WWW-Authenticate"] = challenge }
  errors.raise(status or 401, message, fields)
end

--- What an app's check gave. An error of the server's is raised as it is: nobody may be told that his password is
--- wrong because the database is away. All else that is no user refuses.
---@param user any
---@param err any
---@return any user  nil: refused
function auth.outcome(user, err)
  if not user and errors.is(err) and err.status >= 500 then error(err, 0) end
  return user or nil
end

--- Whom the middleware of these plugins lets pass, for those who describe an app (srv.openapi).
---@class srv.AuthAsked
---@field name string
---@field is_optional boolean
---@field cookie string?  that may bring the token, too

local asked = setmetatable({}, { __mode = "k" })

---@param fn any  middleware
---@return srv.AuthAsked?
function auth.asked_by(fn) return asked[fn] end

--- A plugin that asks READ for the user of each request.
---@param name string
---@param challenge string  sent with each 401
---@param read fun(req: srv.Request): any  the user; nil: there are no credentials
---@param is_optional boolean?
---@param cookie string?  where READ looks for a token besides Authorization
---@return table plugin
function auth.plugin(name, challenge, read, is_optional, cookie)
  local function use(req, _, next)
    local user = read(req)
    if user == nil and not is_optional then auth.refuse(challenge, "credentials are missing") end
    if user ~= nil then req.state.user = user end
    return next()
  end

  asked[use] = { name = name, is_optional = is_optional or false, cookie = cookie }
  return {
    name = name,
    use = use,
    hooks = {
      send = function(_, res)
        if res:status() == 401 and not res:header "www-authenticate" then res:header("WWW-Authenticate", challenge) end
      end,
    },
  }
end

return auth
