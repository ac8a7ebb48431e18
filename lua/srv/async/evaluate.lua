--- What bind/leval runs for `srv repl`: a text in the app's VM. What it sets stays for the texts to come, and is seen
--- by them alone: a global of the app is set as `_G.name = value`.
local inspect = require "srv.base.inspect"
local trace = require "srv.base.trace"

local CHUNK = "=repl"
local OUR_END = "\n\t%[C%]: in function 'xpcall'\n\tsrv/async/evaluate%.lua:.*$" -- of a traceback

-- Names that texts have set: in this VM, for all of them.
local scope = setmetatable({}, { __index = _G })

--- `print` of the texts: to who has typed it, not to the log.
local function printer(say)
  return function(...)
    local texts = {}
    for i = 1, select("#", ...) do texts[i] = tostring((select(i, ...))) end
    say(table.concat(texts, "\t"))
  end
end

--- An expression gives its values, so it is tried as one.
local function compile(text)
  local expression = text:gsub("^%s*=", "", 1)
  local chunk = loadstring("return " .. expression, CHUNK)
  if chunk then return chunk end
  return loadstring(text, CHUNK)
end

--- Message and the lines that lead to it, without srv's own.
local function describe(err)
  local message = type(err) == "string" and err or type(err) == "table" and getmetatable(err) and tostring(err)
    or inspect.text(err)
  local stack = debug.traceback("", 2):gsub("\n\t%[builtin[^\n]*", ""):gsub(OUR_END, "")
  local lines = trace.trim(stack)
  return lines and message .. lines:gsub("^stack traceback:", "\nstack traceback:") or message
end

local function texts_of(ok, ...)
  if not ok then return false, (...) end
  local texts = {}
  for i = 1, select("#", ...) do texts[i] = inspect.text((select(i, ...))) end
  if select("#", ...) > 0 then scope._ = (...) end
  return true, unpack(texts)
end

---@param text string
---@param say fun(text: string): boolean
---@param srv table  what `require "srv"` gives: a floor above us
---@return boolean ok
---@return string ... values, or what went wrong
return function(text, say, srv)
  local chunk, why = compile(text)
  if not chunk then return false, why end
  if scope.srv == nil then scope.srv = srv end
  local own = setmetatable({ print = printer(say) }, { __index = scope, __newindex = scope })
  return texts_of(xpcall(setfenv(chunk, own), describe))
end
