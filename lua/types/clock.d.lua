---@meta srv.core.clock
-- luacheck: ignore 212 241

--- The clock of this loop, for specs (src/bind/lclock.c). Apps' specs use srv.test.clock().
local clock = {}

--- Time stands from now on; raises where no specs run.
function clock.hold() end

--- It runs by itself again; who waits for an advance goes on.
function clock.release() end

---@return boolean
function clock.is_held() end

--- Waits until the clock has been moved so far, and all that was due on the way has run.
---@param seconds number
function clock.advance(seconds) end

return clock
