--- srv.db, srv.sqlite, srv.postgres: from a URL to a handle. What is open lives in C, shared by all
--- workers and generations; here are only this VM's handles, until their migrations have run.
local crypto = require "srv.core.crypto"
local env = require "srv.core.env"
local errors = require "srv.base.errors"
local handle = require "srv.db.handle"
local log = require "srv.core.log"
local options = require "srv.base.options"
local postgres = require "srv.db.postgres"
local sleep = require "srv.core.task".sleep
local sqlite = require "srv.db.sqlite"
local suggest = require "srv.base.suggest"

local pool = {}

local OPTIONS = {
  pool = "2..1000000", queue = "1..1000000", timeout = "duration", migrations = "any", env = "any",
}

local DEFAULTS = { pool = 20, queue = 100, timeout = 5, migrations = "migrations" }

local DRIVERS = { sqlite = sqlite, postgres = postgres, postgresql = postgres }
local SCHEMES = { "sqlite", "postgres" }

-- Level of error() for the app: it called pool.open, which called open, which called us.
local APP = 4

-- Handles whose migrations are still to run, in the order of their opening.
local opened = {}

local function forget(db)
  for i, other in ipairs(opened) do
    if other == db then return table.remove(opened, i) end
  end
end

local function check_migrations(where, folder)
  if folder ~= false and type(folder) ~= "string" then
    error(where .. ': option "migrations" must be a folder or false', APP + 1)
  end
end

local function check_options(where, opts)
  local checked = options.check(where, opts, OPTIONS)
  checked.folder_given = checked.migrations ~= nil
  for name, default in pairs(DEFAULTS) do
    if checked[name] == nil then checked[name] = default end
  end
  check_migrations(where, checked.migrations)
  if checked.env and type(checked.env) ~= "string" then
    error(where .. ': option "env" must be the name of a variable or false', APP)
  end
  return checked
end

--- The URL that counts, and where it came from.
local function pick_url(where, url, variable)
  local given = variable and env.getenv(variable)
  if given and given ~= "" then return given, variable end
  if url == nil then
    error(("%s: no URL%s"):format(where, variable and (" and %s is not set"):format(variable) or ""), APP)
  end
  if type(url) ~= "string" then error(where .. ": the URL must be a string, not " .. type(url), APP) end
  return url, nil
end

local function driver_for(where, url, origin, kind)
  local scheme = url:match("^(%a[%w+.-]*):")
  local at = ("%s: %s%q"):format(where, origin and origin .. " is " or "", postgres.hide(url))
  local driver = DRIVERS[scheme]
  if kind and DRIVERS[kind] ~= driver then error(at .. " is no URL of " .. kind, APP) end
  if not driver then
    error(("%s: unknown kind of database%s; known: %s:..."):format(at,
      scheme and suggest.hint(scheme, SCHEMES) or "", table.concat(SCHEMES, ":..., ")), APP)
  end
  local path, wrong = driver.path_of(url:sub(#scheme + 2), url)
  if not path then error(at .. " " .. wrong, APP) end
  return driver, path, at
end

--- A name that no other database of the process has.
---@return string
function pool.fresh_name() return "srv_test_" .. crypto.uuid():gsub("-", ""):sub(-16) end

-- What is in the app's folder is no test's to write. busted gives each file of specs a copy of this module.
local test_name = package.loaded.busted and pool.fresh_name()

--- Under `srv test`, what stands in the place of a file of the app's folder: a database in memory.
local function path_in_test(path)
  if path:find "^[/:]" then return path end
  return (":memory:%s/%s"):format(test_name, (path:gsub("^%./", "")))
end

local function open(where, url, opts, variable, kind)
  local checked = check_options(where, opts)
  if checked.env ~= nil then variable = checked.env end
  local origin
  url, origin = pick_url(where, url, variable)
  local driver, path, at = driver_for(where, url, origin, kind)
  if test_name and driver == sqlite and not origin then path = path_in_test(path) end
  local db, err = handle.open(driver, {
    url = url, path = path, pool = checked.pool, queue = checked.queue, timeout = checked.timeout,
    folder = checked.migrations, folder_given = checked.folder_given, on_close = forget,
  })
  if not db and errors.is(err, "invalid") then error(at .. ": " .. postgres.hide(err.message), APP - 1) end
  if not db then error(err, 0) end
  if checked.migrations then opened[#opened + 1] = db end
  return db
end

--- srv.db: by the URL's scheme; DATABASE_URL overrides the URL. Does not wait.
---@param url string?
---@param opts { pool: integer?, queue: integer?, timeout: number|string?, migrations: string|false?, env: string|false? }?
---@return srv.Db
function pool.open(url, opts)
  local db = open("srv.db", url, opts, "DATABASE_URL")
  return db
end

--- srv.sqlite: SQLite only; a bare path will do. No variable overrides it, unless `env` names one.
---@param url string
---@param opts table?
---@return srv.Db
function pool.sqlite(url, opts)
  if type(url) == "string" and not url:find("^%a[%w+.-]*:") then url = "sqlite:" .. url end
  local db = open("srv.sqlite", url, opts, nil, "sqlite")
  return db
end

--- srv.postgres: PostgreSQL only.
---@param url string
---@param opts table?
function pool.postgres(url, opts)
  local db = open("srv.postgres", url, opts, nil, "postgres")
  return db
end

-- Seconds that a start waits for a database that is not up yet, as where both begin at once; an edit,
-- beside which the old generation serves, must load in 10 (server/generation.h: GENERATION_LOAD_MS).
local FIRST_PATIENCE, PATIENCE = 30, 7
local PAUSE_FIRST, PAUSE_MAX = 0.25, 1

--- What waiting does not mend, though no connection was made.
local HOPELESS = { "authentication failed", "does not exist", "pg_hba.conf", "no password supplied" }

local function may_come(err)
  if not errors.is(err, "unavailable") then return false end
  for _, phrase in ipairs(HOPELESS) do
    if err.message:find(phrase, 1, true) then return false end
  end
  return true
end

--- The migrations of DB, as soon as its server is there.
local function settle_in_time(db)
  local deadline = env.monotonic() + (env.worker.generation == 1 and FIRST_PATIENCE or PATIENCE)
  local pause = PAUSE_FIRST
  while true do
    local ok, err = handle.settle(db)
    if ok or not may_come(err) or env.monotonic() + pause > deadline then return ok, err end
    log.warn("the start waits for a database", { reason = err.message, patience = math.floor(deadline - env.monotonic()) })
    sleep(pause)
    pause = math.min(2 * pause, PAUSE_MAX)
  end
end

--- Runs the migrations of what was opened so far; raises what goes wrong. The loader of the app calls
--- it when app.lua has returned, so they are done before the first request. May wait.
function pool.ready()
  while opened[1] do
    local db = opened[1]
    local ok, err = settle_in_time(db)
    if not ok then error(errors.adopt(err), 0) end
    forget(db)
  end
end

return pool
