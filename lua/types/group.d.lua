---@meta srv.core.group
-- luacheck: ignore 212 241
--- Children of one task that are waited for together (src/bind/lgroup.c). Arguments are not checked.
local group = {}

---@class srv.core.group.Group : userdata

---@param places integer   how many may run at once
---@param values integer?  how many are gathered; nil: next() takes the outcomes one by one
---@return srv.core.group.Group
function group.new(places, values) end

--- There is a place for it.
---@param g srv.core.group.Group
---@param index integer  the caller's number for it
---@param fn function
---@param ... any  its arguments
function group.start(g, index, fn, ...) end

--- Waits for a place.
---@param g srv.core.group.Group
---@return boolean room  false: a child has failed
function group.room(g) end

--- When all are over: true and the array of first values, or the outcome of the first that failed.
---@param g srv.core.group.Group
---@return boolean? ok
---@return any ...
function group.gather(g) end

--- Nothing when the time is up or none is left.
---@param g srv.core.group.Group
---@param seconds number?
---@return integer? index
---@return boolean? ok
---@return any ...
function group.next(g, seconds) end

--- All that still run.
---@param g srv.core.group.Group
function group.cancel(g) end

return group
