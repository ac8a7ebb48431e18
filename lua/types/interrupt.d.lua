---@meta srv.core.interrupt
-- luacheck: ignore 212 241

--- Ctrl-C as an event (src/bind/linterrupt.c), for commands that have something to finish: the first SIGINT,
--- SIGTERM or SIGHUP wakes who waits, the next one ends the process.
local interrupt = {}

---@return srv.core.Interrupt?
---@return srv.Error?
function interrupt.catch() end

---@class srv.core.Interrupt
interrupt.Interrupt = {}

---@param seconds number?
---@return integer? signal
---@return srv.Error?
function interrupt.Interrupt:wait(seconds) end

--- Signals end the process again.
function interrupt.Interrupt:close() end

return interrupt
