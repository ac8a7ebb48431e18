local behaviour = require "db.modules.cache_behaviour"

describe("srv.cache in memory", function()
  behaviour(function() return require "srv.async.cache" end,
    { it = it, before_each = before_each, assert = assert })
end)
