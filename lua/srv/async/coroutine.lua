--- coroutine.* in which a wait may stand at any depth: resume is srv's own (src/vm/coroutine.c), and
--- wrap is built on it. What cannot be told apart from Lua's own functions is their point.
-- luacheck: globals coroutine.resume coroutine.status coroutine.running coroutine.wrap coroutine.yield
local core = require "srv.core.coroutine"

local create, error, step, type = coroutine.create, error, core.step, type

--- Takes what step() gave: values, or the error of the function, or nil and why it cannot be resumed.
local function values(resumed, ...)
  if resumed then return ... end
  if resumed == nil then error((...), 2) end -- tail called, so 2 is who called the generator
  error((...), 0)
end

coroutine.resume = core.resume
coroutine.status = core.status
coroutine.running = core.running
coroutine.yield = core.yield

function coroutine.wrap(f)
  if type(f) ~= "function" then
    error(("bad argument #1 to 'wrap' (function expected, got %s)"):format(type(f)), 2)
  end
  local co = create(f)
  return function(...) return values(step(co, ...)) end
end
