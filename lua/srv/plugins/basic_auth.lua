--- srv.basic_auth (API, section 14): a name and a password with each request (RFC 7617).
local auth = require "srv.plugins.auth"
local crypto = require "srv.core.crypto"
local factory = require "srv.base.factory"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"

local OPTIONS = { users = "table", check = "function", realm = "string", optional = "boolean" }

local BYTES_MAX = 4096   -- of what a client sends; the head has a limit besides

-- Whom we know ----------------------------------------------------------------------------------------

--- Digests are compared, so that the time tells neither where two passwords differ nor how long one is.
local function digests_of(users, key)
  local digests = {}
  for name, password in pairs(users) do
    if type(name) ~= "string" or type(password) ~= "string" or name:find "[:%c]" then
      misuse "srv.basic_auth: users are names and passwords, and a name has no colon: { ann = srv.env.ANN_PASSWORD }"
    end
    if password == "" then misuse(("srv.basic_auth: the password of %q is empty"):format(name)) end
    digests[name] = crypto.hmac("sha256", key, password, "raw")
  end
  if next(digests) == nil then misuse "srv.basic_auth: users has nobody in it" end
  return digests
end

local function check_of_users(users)
  local key = crypto.random(32)
  local digests, nobody = digests_of(users, key), crypto.random(32)
  return function(name, password)
    local is_right = crypto.equal(digests[name] or nobody, crypto.hmac("sha256", key, password, "raw"))
    return is_right and name or nil
  end
end

local function check_of(opts)
  if (opts.users == nil) == (opts.check == nil) then
    misuse "srv.basic_auth: give users = { name = password }, or check = function(user, password, req)"
  end
  return opts.check or check_of_users(opts.users)
end

-- Reading ---------------------------------------------------------------------------------------------

--- Nil for what is no pair of a name and a password.
local function read_pair(credentials)
  local pair = #credentials <= BYTES_MAX and crypto.decode("base64", credentials)
  if not pair or pair:find "%c" then return nil end
  return pair:match "^([^:]*):(.*)$"
end

---@class srv.BasicAuthOptions
---@field users table<string, string>?   passwords by name
---@field check (fun(user: string, password: string, req: srv.Request): any, any)?  gives the user, or true
---@field realm string?                  "api"
---@field optional boolean?              false; true: requests without credentials pass

--- Answers 401 to whoever has no name and password that fit; the user is in `req.state.user`.
---@param opts srv.BasicAuthOptions
---@return table plugin
return factory.name("srv.basic_auth", function(opts)
  opts = options.check("srv.basic_auth", opts, OPTIONS)
  local check = check_of(opts)
  local challenge = auth.challenge("Basic", {
    { "realm", auth.realm("srv.basic_auth", opts.realm) }, { "charset", "UTF-8" },
  })

  local function read(req)
    local credentials = auth.credentials(req, "basic")
    if not credentials then return nil end
    local name, password = read_pair(credentials)
    local user = name and auth.outcome(check(name, password, req))
    if not user then auth.refuse(challenge, "this name and password are not known") end
    return user == true and name or user
  end

  return auth.plugin("basic_auth", challenge, read, opts.optional)
end, '{ users = { ann = "..." } }')
