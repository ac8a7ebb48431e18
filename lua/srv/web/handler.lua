--- What stands in the lists that an app declares: handlers, plugins, and before them options.
local handler = {}

--- A function, or a table that can be called.
---@param v any
---@return boolean
function handler.is_callable(v)
  local meta = type(v) == "table" and getmetatable(v)
  return type(v) == "function" or meta and meta.__call ~= nil or false
end

--- What srv.helmet() and its like give.
---@param v any
---@return boolean
function handler.is_plugin(v)
  return type(v) == "table" and not handler.is_callable(v) and (v.use ~= nil or v.hooks ~= nil or v.setup ~= nil)
end

--- A table that is none of both.
---@param v any
---@return boolean
function handler.is_options(v)
  return type(v) == "table" and not handler.is_callable(v) and not handler.is_plugin(v)
end

return handler
