---@meta srv.core.alarm
-- luacheck: ignore 212 241

--- A limit of real time for what runs now (src/bind/lalarm.c), for `srv test`.
local alarm = {}

--- Unless it is cleared by then, the running task is cancelled, with this reason.
---@param seconds number
---@param why string
---@param why_held string  the reason while the clock is held
function alarm.set(seconds, why, why_held) end

function alarm.clear() end

return alarm
