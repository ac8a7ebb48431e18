--- Names to addresses: srv.dns (API, section 13).
local core = require "srv.core.dns"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"

local dns = {}

local OPTIONS = { timeout = "duration" }

--- Addresses as texts, in the order in which they should be tried. As libc would: literal addresses
--- and the hosts file first, search domains; answers are kept by their TTL.
---@param name string
---@param opts { timeout?: number|string }?
---@return string[]?
---@return srv.Error?  dns, timeout, busy
function dns.resolve(name, opts)
  if type(name) ~= "string" then misuse("srv.dns.resolve: a name was expected, not a " .. type(name)) end
  return core.resolve(name, options.check("srv.dns.resolve", opts, OPTIONS).timeout)
end

return dns
