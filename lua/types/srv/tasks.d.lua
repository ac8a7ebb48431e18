---@meta _
-- luacheck: ignore 212 241 631

---@class srv.Task
---@field state "running"|"done"|"failed"|"cancelled"
local Task = {}

--- What the function returned; raises what it raised; `nil, err` if it was cancelled, or is not over in time.
---@param t srv.Duration?
---@return any ...
function Task:wait(t) end

function Task:cancel() end

---@class srv.Channel
local Channel = {}

--- True when somebody has it, or it has a place.
---@param v any  not nil
---@param t srv.Duration?
---@return true?
---@return srv.Error? err  closed, timeout
function Channel:send(v, t) end

---@param t srv.Duration?
---@return any v
---@return srv.Error? err  closed, timeout
function Channel:receive(t) end

--- `for v in channel:each() do`, until it is closed and empty.
---@return fun(): any
function Channel:each() end

function Channel:close() end

---@class srv.Event
local Event = {}

function Event:set() end
function Event:clear() end

---@return boolean
function Event:is_set() end

---@param t srv.Duration?
---@return true?
---@return srv.Error? err  timeout
function Event:wait(t) end

---@class srv.Semaphore
local Semaphore = {}

---@param t srv.Duration?
---@return true?
---@return srv.Error? err  timeout
function Semaphore:acquire(t) end

function Semaphore:release() end

--- fn's values; released however it ends.
---@param fn function
---@param ... any
---@return any ...
function Semaphore:with(fn, ...) end

---@class srv.Mutex
local Mutex = {}

---@param t srv.Duration?
---@return true?
---@return srv.Error? err  timeout
function Mutex:lock(t) end

function Mutex:unlock() end

---@param fn function
---@param ... any
---@return any ...
function Mutex:with(fn, ...) end

--- Incoming bytes. `for chunk in reader do` raises what goes wrong.
---@class srv.Reader
---@overload fun(): string?
local Reader = {}

--- At most BYTES of what comes next; nil at the end.
---@param bytes integer?
---@return string?
---@return srv.Error? err
function Reader:read(bytes) end

--- Without its end ("\n", "\r\n").
---@return string?
---@return srv.Error? err
function Reader:line() end

---@param opts { limit?: srv.Size }?  "10MiB"
---@return string?
---@return srv.Error? err  too_large
function Reader:all(opts) end

--- Nothing more is wanted. Idempotent.
---@return any
function Reader:close() end
