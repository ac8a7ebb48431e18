---@meta srv.core.bus
-- luacheck: ignore 212 241

--- Messages to all workers (src/bind/lbus.c). Apps use srv.bus (lua/srv/async/bus.lua), which adds options
--- and the loop.
local bus = {}

---@param topic string  without "*"
---@param v any  not nil
---@return true?
---@return srv.Error? err  too_large
function bus.publish(topic, v) end

--- By a WebSocket, which does not get it.
---@param topic string
---@param v any
---@param serial integer  srv.core.ws.serial(ws)
---@return true?
---@return srv.Error? err  too_large
function bus.publish_from(topic, v, serial) end

--- CLOSES: when LIMIT messages wait, it is closed instead of losing some.
---@param topic string
---@param limit integer
---@param closes boolean
---@return srv.core.bus.Subscription?
---@return srv.Error? err
function bus.subscribe(topic, limit, closes) end

---@param sub srv.core.bus.Subscription
---@return integer
function bus.dropped(sub) end

--- By close(), or with its task.
---@param sub srv.core.bus.Subscription
---@return boolean
function bus.ended(sub) end

---@class srv.core.bus.Subscription
bus.Subscription = {}

---@param seconds number?
---@return any? v
---@return string|srv.Error topic_or_err  err: timeout, closed
function bus.Subscription:receive(seconds) end

function bus.Subscription:close() end

return bus
