local srv = require "srv"

describe("srv", function()
  it("names the nearest part that it has", function()
    assert.error_matches(function() return srv.tets end, 'srv has no part "tets", did you mean "test"?')
  end)

  it("reads the environment, by a rule too", function()
    srv.test.env { LIMIT = "7", EMPTY = false, BAD = "many" }
    assert.equal("7", srv.env.LIMIT)
    assert.is_nil(srv.env.EMPTY)
    assert.equal(7, srv.env("LIMIT", "integer 1..64 = 4"))
    assert.equal(4, srv.env("EMPTY", "integer 1..64 = 4"))
    assert.error_matches(function() srv.env("EMPTY", "string") end, "environment variable EMPTY is required")
    local ok, message = pcall(srv.env, "BAD", "integer")
    assert.is_false(ok)
    assert.matches("^tests/spec/web/surroundings_spec.lua:%d+: environment variable BAD must be", message)
    assert.is_nil(message:find("many", 1, true))
    assert.error_matches(function() srv.env.X = 1 end, "read only")
  end)

  it("checks what a plugin was given", function()
    local rules = { header = "string = X-Stamp", ttl = "duration?" }
    assert.same({ header = "X-Stamp", ttl = 300 }, setmetatable(srv.options("stamp", { ttl = "5m" }, rules), nil))
    assert.error_matches(function() srv.options("stamp", { tll = "5m" }, rules) end, 'srv.stamp: unknown option "tll"')
  end)

  it("tells of the worker and the folder", function()
    assert.same({ 0, 1 }, { srv.worker.id, srv.worker.count })
    assert.matches("tests/spec$", srv.root)
    assert.is_false(srv.dev)
    assert.is_true(math.abs(srv.now() - os.time()) < 2)
    assert.error_matches(function() srv.config.port = 1 end, "read only")
  end)
end)

describe("srv.watch", function()
  it("names what the app is loaded from, in its folder", function()
    srv.watch "locales"
    srv.watch "./prices.json"
    for _, path in ipairs { "/etc/passwd", "../other", "a/../../b", "" } do
      assert.has_error(function() srv.watch(path) end)
    end
    assert.has_error(function() srv.watch {} end)
  end)
end)
