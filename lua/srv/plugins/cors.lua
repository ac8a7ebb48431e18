--- srv.cors (API, section 14): which pages of other origins may read our answers.
---
--- Headers are set when the answer goes out, on every status, so a page can read errors too. A preflight (OPTIONS with
--- Origin and Access-Control-Request-Method) is answered before any middleware: it never carries credentials,
--- so whoever asks for them would refuse it. Every other OPTIONS is the app's.
local errors = require "srv.base.errors"
local factory = require "srv.base.factory"
local http = require "srv.core.http"
local log = require "srv.core.log"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local origins = require "srv.base.origins"
local text = require "srv.base.text"

local OPTIONS = {
  origins = "any", methods = "table", headers = "table", expose = "table", credentials = "boolean",
  max_age = "duration",
}

local METHODS = { "GET", "HEAD", "PUT", "PATCH", "POST", "DELETE" }

--- What may stand there already: another mount's, or another server's whose answer is passed on.
local OF_ANSWER = {
  "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers",
  "Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Max-Age",
}

-- Origins ---------------------------------------------------------------------------------------------

local function allows_of_list(list)
  local is_listed = origins.matcher("srv.cors", list)
  return function(origin) return is_listed(origin) and origin or nil end
end

--- FN may wait, and says true, an origin, or that it is none; `nil, err` is an error of ours.
local function allows_of_function(fn)
  return function(origin, req)
    local allowed, err = fn(origin, req)
    if allowed == true then return origin end
    if not allowed and err ~= nil then error(errors.adopt(err), 0) end
    return allowed
  end
end

---@return (fun(origin: string, req: srv.Request): string?)?  nil: everybody's
local function allows_of(given)
  if given == nil or given == "*" then return nil end
  if type(given) == "function" then return allows_of_function(given) end
  if type(given) ~= "table" or #given == 0 then
    misuse 'srv.cors: origins must be "*", a list like { "https://app.example" }, or a function'
  end
  return allows_of_list(given)
end

-- Options ---------------------------------------------------------------------------------------------

local function joined(opts, name, default)
  local list = opts[name] or default
  if not list then return nil end
  for _, token in ipairs(list) do
    if type(token) ~= "string" or not text.is_token(token) then
      misuse(("srv.cors: %s: %q is no name"):format(name, tostring(token)))
    end
  end
  if #list == 0 then misuse(("srv.cors: %s must be a list of names"):format(name)) end
  return table.concat(list, ",")
end

--- Browsers refuse credentials from everybody.
local function allows_credentials(opts, allows)
  if not opts.credentials then return false end
  if allows then return true end
  log.warn('srv.cors: credentials = true needs a list of origins; without one no credentials are allowed')
  return false
end

--- What every answer to everybody bears but a preflight's.
local function fields_for_all(expose)
  local fields = { "Access-Control-Allow-Origin", "*" }
  if expose then fields[3], fields[4] = "Access-Control-Expose-Headers", expose end
  return http.field_list(fields)
end

local function read_options(opts)
  opts = options.check("srv.cors", opts, OPTIONS)
  local allows = allows_of(opts.origins)
  return {
    for_all = not allows and fields_for_all(joined(opts, "expose")) or nil,
    allows = allows, credentials = allows_credentials(opts, allows), methods = joined(opts, "methods", METHODS),
    headers = joined(opts, "headers"), expose = joined(opts, "expose"),
    max_age = opts.max_age and ("%d"):format(opts.max_age),
  }
end

-- Answers ---------------------------------------------------------------------------------------------

local is_preflight = http.is_preflight

local function allow_preflight(own, req, res)
  res:header("Access-Control-Allow-Methods", own.methods)
  local headers = own.headers
  if not headers then
    headers = req:header "access-control-request-headers"
    res:vary "Access-Control-Request-Headers"
  end
  if headers then res:header("Access-Control-Allow-Headers", headers) end
  if own.max_age then res:header("Access-Control-Max-Age", own.max_age) end
end

local function allow(own, req, res, origin)
  res:header("Access-Control-Allow-Origin", origin)
  if own.credentials then res:header("Access-Control-Allow-Credentials", "true") end
  if is_preflight(req) then return allow_preflight(own, req, res) end
  if own.expose then res:header("Access-Control-Expose-Headers", own.expose) end
end

local function send(own, req, res)
  if http.field(res, "access-control-allow-origin") then
    for _, name in ipairs(OF_ANSWER) do res:remove(name) end
  end
  if own.for_all then
    if is_preflight(req) then return allow(own, req, res, "*") end
    return http.set_list(res, own.for_all)
  end
  res:vary "Origin"
  local origin = req:header "origin"
  local allowed = origin and own.allows(origin, req)
  if allowed then allow(own, req, res, allowed) end
end

---@class srv.CorsOptions
---@field origins "*"|string[]|(fun(origin: string, req: srv.Request): boolean|string|nil, srv.Error?)|nil  "*"
---@field methods string[]?          GET HEAD PUT PATCH POST DELETE
---@field headers string[]?          that may be sent; those that are asked for
---@field expose string[]?           that pages may read
---@field credentials boolean?       false; needs origins
---@field max_age number|string?     how long a preflight is good

--- Lets pages of other origins in.
---@param opts srv.CorsOptions?
---@return table plugin
return factory.name("srv.cors", function(opts)
  local own = read_options(opts)
  return {
    name = "cors",
    hooks = {
      request = function(req, res)
        if is_preflight(req) then return http.record(res, true, http.EMPTY, nil, 204) end
      end,
      send = function(req, res) send(own, req, res) end,
    },
  }
end)
