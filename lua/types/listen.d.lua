---@meta srv.core.listen
-- luacheck: ignore 212 241

--- Listening sockets (src/bind/llisten.c). Apps use srv.tcp.listen and srv.unix.listen.
local listen = {}

---@class srv.core.listen.Listener
local Listener = {}

--- The next connection; when the task is cancelled, the listener closes.
---@return srv.core.socket.Socket|false|nil connected  false: woken for nothing, again
---@return srv.Error? err  closed
function Listener:accept() end

--- Whoever waits gets `closed`.
function Listener:close() end

---@return string?  "127.0.0.1:41234"
function Listener:address() end

---@param address string  "127.0.0.1:9000", "unix:/run/x.sock"
---@return srv.core.listen.Listener?
---@return srv.Error? err  unavailable, invalid
function listen.open(address) end

--- This runs while an app or a module loads, so what it opens is the app's.
---@return boolean
function listen.at_load() end

--- One more connection is served; a process that drains waits for it.
function listen.enter() end

function listen.leave() end

return listen
