--- SQLite's driver: srv.core.sqlite as handle.lua wants it.
local core = require "srv.core.sqlite"
local migrations = require "srv.core.migrations"

local MEMORY = ":memory:"

--- "news.db" lies in the app's folder, "///abs/news.db" and "/abs/news.db" are the same. ":memory:"
--- is one database for the process, and ":memory:name" another one.
local function path_of(rest)
  local path = rest:gsub("^//", "")
  if path == "" then return nil, "names no file" end
  if path:find("?", 1, true) then return nil, "takes no parameters behind a ?" end
  if path:sub(1, 1) == ":" and path:sub(1, #MEMORY) ~= MEMORY then return nil, "names no file" end
  return path
end

return {
  dialect = "sqlite",
  schemes = { "sqlite" },
  path_of = path_of,
  open = core.open,
  lease = core.lease,
  cursor = core.cursor,
  migrations = migrations.read,
  blob = core.blob,
  refused = core.refused,
}
