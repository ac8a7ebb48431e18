--- What an app has opened while it loaded ends when its generation stops serving (the next one has
--- taken over, or the server shuts down).
local generation = {}

local at_stop = {}

---@param fn fun()
function generation.at_stop(fn) at_stop[#at_stop + 1] = fn end

--- Runs all that was noted, once.
function generation.stop()
  local functions = at_stop
  at_stop = {}
  for _, fn in ipairs(functions) do fn() end
end

return generation
