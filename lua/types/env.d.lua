---@meta srv.core.env
-- luacheck: ignore 212 241

--- Where the app runs (src/bind/lenv.c). Apps use srv.env, srv.config, srv.root and the like.
local env = {
  root = "",       ---@type string  the app's folder
  version = nil,   ---@type string? of the server
  dev = false,     ---@type boolean
  worker = {},     ---@type { id: integer, count: integer, pid: integer, generation: integer }
}

---@param name string
---@return string?
function env.getenv(name) end

---@return table<string, any>  a value for each setting; durations are seconds, sizes bytes
function env.settings() end

---@return number  seconds since 1970, UTC
function env.now() end

---@return number  seconds since some moment before the start
function env.monotonic() end

---@param seconds number
---@return string  "Sun, 06 Nov 1994 08:49:37 GMT"
function env.http_date(seconds) end

--- The process drains and ends, as on SIGTERM.
function env.stop() end

--- The process ends when what it has is answered.
---@return boolean
function env.is_draining() end

return env
