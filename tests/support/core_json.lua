--- srv.core.json for specs that run under a plain LuaJIT: the parts that the base floor uses, over
--- dkjson. Inside srv the real one is already there and this file does nothing.
if pcall(require, "srv.core.json") then return end

local dkjson = require "dkjson"

local ARRAY, OBJECT = { __jsontype = "array" }, { __jsontype = "object" }
local null = setmetatable({}, { __tostring = function() return "null" end, __tojson = function() return "null" end })

package.preload["srv.core.json"] = function()
  return {
    null = null,
    decode = function(text)
      local value, after, message = dkjson.decode(text, 1, null, OBJECT, ARRAY)
      if message or text:find("%S", after) then
        return nil, { status = 400, code = "bad_json", message = message or "text after the value" }
      end
      return value
    end,
    encode = dkjson.encode,
    object = function(t, order)
      return setmetatable(t, order and { __jsontype = "object", __jsonorder = order } or OBJECT)
    end,
    array = function(t) return setmetatable(t, ARRAY) end,
    object_mark = OBJECT,
    array_mark = ARRAY,
  }
end

-- srv.core.error likewise: bind/lerror.c shares its metatable with srv.base.errors.
package.preload["srv.core.error"] = function()
  local STATUS = { invalid = 400, bad_json = 400, no_row = 404, unique = 409, lua = 500 }
  local REASONS = { [400] = "Bad Request", [404] = "Not Found", [409] = "Conflict", [500] = "Internal Server Error" }
  return {
    metatable = {},
    status_of = function(code) return STATUS[code] or 500 end,
    reason = function(status) return REASONS[status] or "Unknown" end,
  }
end

-- srv.base.json adds __tojson to the codec; the stand-in above has it from dkjson.
package.preload["srv.base.json"] = function()
  local core = require "srv.core.json"
  return { null = core.null, encode = core.encode, decode = core.decode, object = core.object, array = core.array }
end
