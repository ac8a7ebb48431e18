--- Functions that make plugins, by name: one that stands where its plugin should was not called, and
--- would be taken for middleware.
local factory = {}

local calls = setmetatable({}, { __mode = "k" })

--- MAKE, known as NAME from now on.
---@generic T
---@param name string  "srv.session"
---@param make T
---@param arguments string?  how it is called: '{ limit = 100 }'; nil: it needs none
---@return T make
function factory.name(name, make, arguments)
  calls[make] = { name = name, text = name .. (arguments and " " .. arguments or "()") }
  return make
end

--- What is wrong with V as middleware, or nil.
---@param v any
---@return string?
function factory.fault(v)
  local call = v ~= nil and calls[v]
  if not call then return nil end
  return ("%s must be called: app:use(%s)"):format(call.name, call.text)
end

return factory
