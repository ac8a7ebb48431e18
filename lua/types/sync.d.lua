---@meta srv.core.sync
-- luacheck: ignore 212 241

--- Channels, events, semaphores, mutexes (src/bind/lsync.c); times are seconds. Apps use srv.channel
--- and the like (lua/srv/async/sync.lua), which adds durations and loops to these classes.
local sync = {}

---@param room integer
---@return srv.core.sync.Channel
function sync.channel(room) end

---@return srv.core.sync.Event
function sync.event() end

---@param count integer
---@return srv.core.sync.Semaphore
function sync.semaphore(count) end

---@return srv.core.sync.Mutex
function sync.mutex() end

---@class srv.core.sync.Channel
sync.Channel = {}

---@return true?
---@return srv.Error?
function sync.Channel:send(v, seconds) end

---@return any
---@return srv.Error?
function sync.Channel:receive(seconds) end

function sync.Channel:close() end

---@class srv.core.sync.Event
sync.Event = {}

function sync.Event:set() end

function sync.Event:clear() end

---@return boolean
function sync.Event:is_set() end

---@return true?
---@return srv.Error?
function sync.Event:wait(seconds) end

---@class srv.core.sync.Semaphore
sync.Semaphore = {}

---@return true?
---@return srv.Error?
function sync.Semaphore:acquire(seconds) end

function sync.Semaphore:release() end

---@class srv.core.sync.Mutex
sync.Mutex = {}

---@return true?
---@return srv.Error?
function sync.Mutex:lock(seconds) end

function sync.Mutex:unlock() end

return sync
