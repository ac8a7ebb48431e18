--- `local srv = require "srv"`: the one name that an app needs.
---
--- Each part is required when it is first asked for, so an app pays for what it uses.
local suggest = require "srv.base.suggest"

local srv = {}

--- The module of a part, or of its function: { "srv.web.app", "new" } is srv.web.app's `new`.
local PARTS = {
  -- applications
  app = { "srv.web.app", "new" }, router = { "srv.web.app", "router" }, error = { "srv.base.errors" },
  schema = { "srv.web.schema" }, options = { "srv.web.surroundings", "options" },
  template = { "srv.web.template" }, current = { "srv.web.objects", "current" }, test = { "srv.testing" },
  -- values and texts
  json = { "srv.base.json" }, null = { "srv.core.json", "null" }, time = { "srv.base.time" },
  format = { "srv.base.format" }, url = { "srv.base.url" }, html = { "srv.base.html" },
  crypto = { "srv.base.crypto" },
  -- tasks
  sleep = { "srv.async.task", "sleep" }, spawn = { "srv.async.task", "spawn" }, all = { "srv.async.task", "all" },
  map = { "srv.async.task", "map" }, race = { "srv.async.task", "race" }, timeout = { "srv.async.task", "timeout" },
  defer = { "srv.async.task", "defer" }, channel = { "srv.async.sync", "channel" },
  event = { "srv.async.sync", "event" }, semaphore = { "srv.async.sync", "semaphore" },
  mutex = { "srv.async.sync", "mutex" },
  -- the world outside
  http = { "srv.async.fetch" }, websocket = { "srv.async.websocket", "connect" },
  tcp = { "srv.async.tcp" }, unix = { "srv.async.unix" }, udp = { "srv.async.udp" },
  dns = { "srv.async.dns" }, fs = { "srv.async.fs" }, exec = { "srv.async.exec" },
  -- data
  db = { "srv.db.pool", "open" }, sqlite = { "srv.db.pool", "sqlite" }, postgres = { "srv.db.pool", "postgres" },
  redis = { "srv.db.redis", "open" }, cache = { "srv.db.cache" }, shared = { "srv.async.shared", "open" },
  bus = { "srv.db.bus" }, global = { "srv.async.globals", "declare" },
  -- plugins
  metrics = { "srv.plugins.metrics" }, health = { "srv.plugins.health" }, request_id = { "srv.plugins.request_id" },
  proxy_trust = { "srv.plugins.proxy_trust" }, compress = { "srv.plugins.compress" }, rate_limit = { "srv.plugins.rate_limit" },
  session = { "srv.plugins.session" }, csrf = { "srv.plugins.csrf", "plugin" },
  helmet = { "srv.plugins.helmet" }, cors = { "srv.plugins.cors" }, etag = { "srv.plugins.etag" },
  basic_auth = { "srv.plugins.basic_auth" }, bearer = { "srv.plugins.bearer", "plugin" }, jwt = { "srv.plugins.jwt" },
  openapi = { "srv.plugins.openapi" },
  -- surroundings
  env = { "srv.web.surroundings", "env" }, config = { "srv.web.surroundings", "config" }, log = { "srv.core.log" },
  watch = { "srv.web.surroundings", "watch" },
  version = { "srv.core.env", "version" }, root = { "srv.core.env", "root" }, dev = { "srv.core.env", "dev" },
  worker = { "srv.core.env", "worker" }, now = { "srv.core.env", "now" }, monotonic = { "srv.core.env", "monotonic" },
}

local function names()
  local list = {}
  for name in pairs(PARTS) do list[#list + 1] = name end
  return list
end

return setmetatable(srv, {
  __index = function(_, name)
    local part = PARTS[name]
    if not part then
      error(("srv has no part %q"):format(tostring(name)) .. suggest.names(tostring(name), names()), 2)
    end
    local module = require(part[1])
    local value = module
    if part[2] then value = module[part[2]] end
    rawset(srv, name, value)
    return value
  end,
})
