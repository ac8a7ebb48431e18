--- lua/types declares for the editor what the C modules export: each has a file, which names all of it and no
--- more.
local INNER = { http = { slots = true, kept_requests = true, kept_responses = true } } -- tables that C and srv.web share

local function read_file(path)
  local file = io.open(path)
  local text = file and file:read "*a"
  if file then file:close() end
  return text
end

local function c_modules()
  local names, pipe = {}, assert(io.popen "grep -l 'int l[a-z0-9_]*_open(lua_State' src/bind/l*.h")
  for path in pipe:lines() do
    local name = path:match "/l([%w_]+)%.h$"
    local ok, module = pcall(require, "srv.core." .. name)
    if ok and type(module) == "table" then names[name] = module end
  end
  pipe:close()
  return names
end

local function is_declared(text, name)
  return text:find("[%.:]" .. name .. "%f[^%w_]") or text:find("%f[%w_]" .. name .. " = ") or text:find("@field " .. name .. "%f[^%w_]")
end

describe("lua/types", function()
  for name, module in pairs(c_modules()) do
    it("declares srv.core." .. name, function()
      local text = assert(read_file("lua/types/" .. name .. ".d.lua"), "lua/types/" .. name .. ".d.lua is missing")
      for key, value in pairs(module) do
        if not (INNER[name] and INNER[name][key]) then assert(is_declared(text, key), key .. " is not declared") end
        for method in pairs(type(value) == "table" and value.__index == value and value or {}) do
          if not method:find "^__" then assert(is_declared(text, method), key .. "." .. method .. " is not declared") end
        end
      end
      local own = text:match "return ([%w_]+)%s*$"
      for key in text:gmatch("function " .. own .. "%.([%w_]+)%(") do assert(module[key] ~= nil, key .. " is declared and not there") end
    end)
  end
end)
