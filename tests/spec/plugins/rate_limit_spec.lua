local srv = require "srv"

local function client_of(...)
  local app = srv.app()
  app:use(...)
  app:get("/", function() return "hello" end)
  app:get("/broken", function() srv.error(418) end)
  return srv.test(app)
end

local names = 0

--- Options whose counts are this test's alone.
local function fresh(opts)
  names = names + 1
  opts.name = opts.name or "spec-" .. names .. "-" .. srv.crypto.token(4)
  return opts
end

describe("srv.rate_limit", function()
  it("answers 429 beyond the limit, and tells all others what is left", function()
    local opts = fresh { limit = 2, window = "1m" }
    local t = client_of(srv.rate_limit(opts))
    local policy = ('"%s"; q=2; w=60'):format(opts.name)
    t:get("/"):expect(200):expect("ratelimit-policy", policy):expect("ratelimit", ('"%s"; r=1; t=60'):format(opts.name))
    t:get("/broken"):expect(418):expect("ratelimit-policy", policy):expect("ratelimit", '^"[%w_-]+"; r=0; t=%d+$')
    local answer = t:get("/"):expect(429):expect("ratelimit", '^"[%w_-]+"; r=0; t=%d+$'):expect("retry-after", "^%d+$")
    assert.is_true(tonumber(answer.headers["retry-after"]) >= 59)
    t:get("/nothing"):expect(429)
  end)

  it("counts each client, IPv6 by /64", function()
    local t = client_of(srv.rate_limit(fresh { limit = 1 }))
    t:get("/", { ip = "192.0.2.1" }):expect(200)
    t:get("/", { ip = "192.0.2.2" }):expect(200)
    t:get("/", { ip = "192.0.2.1" }):expect(429)
    t:get("/", { ip = "2001:db8::1" }):expect(200)
    t:get("/", { ip = "2001:db8::ffff:1" }):expect(429)
    t:get("/", { ip = "2001:db8:0:1::1" }):expect(200)
  end)

  it("a window begins with a key's first request, and ends", function()
    local clock = srv.test.clock()
    local t = client_of(srv.rate_limit(fresh { limit = 1, window = "1s" }))
    t:get("/"):expect(200):expect("ratelimit", '^"[%w_-]+"; r=0; t=1$')
    t:get("/"):expect(429)
    clock:advance "1100ms"
    t:get("/"):expect(200)
  end)

  it("what is refused does not count", function()
    local t = client_of(srv.rate_limit(fresh { limit = 3, cost = function(req) return tonumber(req.query.cost) or 1 end }))
    t:get("/?cost=2"):expect(200)
    for _ = 1, 5 do t:get("/?cost=2"):expect(429) end
    t:get("/?cost=1"):expect(200)
    t:get("/?cost=0"):expect(200)
    t:get("/?cost=1"):expect(429)
    t:get("/?cost=-1"):expect(500)
  end)

  it("what costs nothing begins no window", function()
    local t = client_of(srv.rate_limit(fresh { limit = 2, cost = function(req) return tonumber(req.query.cost) or 1 end }))
    local class, added = require "srv.core.dict".Dict, {}
    local incr = class.incr
    srv.test.stub(class, "incr", function(self, key, by, ttl)
      added[#added + 1] = by
      return incr(self, key, by, ttl)
    end)
    t:get("/?cost=0"):expect(200):expect("ratelimit", '^"[%w_-]+"; r=2; t=60$')
    assert.same({}, added)
    t:get("/"):expect(200):expect("ratelimit", '^"[%w_-]+"; r=1; t=60$')
    t:get("/?cost=0"):expect(200):expect("ratelimit", '^"[%w_-]+"; r=1; ')
  end)

  it("tells keys apart that begin alike, however long they are", function()
    local t = client_of(srv.rate_limit(fresh { limit = 1, key = function(req) return ("x"):rep(300) .. req.query.who end }))
    for _, who in ipairs { "ann", "bob" } do
      t:get("/?who=" .. who):expect(200)
      t:get("/?who=" .. who):expect(429)
    end
  end)

  it("a window that ends while a request is refused owes nothing to the next", function()
    local t, class, key = client_of(srv.rate_limit(fresh { limit = 1 })), require "srv.core.dict".Dict, nil
    local incr = class.incr
    t:get("/"):expect(200)
    srv.test.stub(class, "incr", function(self, name, by, ttl)
      if by < 0 then
        key = name
        self:delete(name) -- it ends here
      end
      return incr(self, name, by, ttl)
    end)
    t:get("/"):expect(429)
    assert.is_string(key)
    t:get("/"):expect(200)
    t:get("/"):expect(429)
  end)

  it("the key says whom to count, nil nobody", function()
    local t = client_of(srv.rate_limit(fresh { limit = 1, key = function(req) return req.query.who end }))
    for _, who in ipairs { "ann", "bob" } do
      t:get("/?who=" .. who):expect(200)
      t:get("/?who=" .. who):expect(429)
    end
    for _ = 1, 3 do t:get("/"):expect(200):expect("ratelimit", false) end
  end)

  it("two limits count apart unless they have one name", function()
    local app, opts = srv.app(), { limit = 1, key = function() return srv.worker.pid end }
    app:get("/a", srv.rate_limit(opts), function() return "a" end)
    app:get("/b", srv.rate_limit(opts), function() return "b" end)
    local named = fresh(opts)
    app:get("/c", srv.rate_limit(named), function() return "c" end)
    app:get("/d", srv.rate_limit(named), function() return "d" end)
    local t = srv.test(app)
    t:get("/a"):expect(200):expect("ratelimit", '^"default"; r=0; ')
    t:get("/b"):expect(200)
    t:get("/c"):expect(200)
    t:get("/d"):expect(429)
  end)

  it("several limits in one chain are all told", function()
    local t = client_of(srv.rate_limit(fresh { limit = 9 }), srv.rate_limit(fresh { limit = 99 }))
    t:get("/"):expect(200):expect("ratelimit", '^"[^"]+"; r=8; t=60, "[^"]+"; r=98; t=60$')
  end)

  it("nobody is refused because the counter cannot be reached", function()
    local t = client_of(srv.rate_limit(fresh { limit = 1 }))
    t:get("/"):expect(200)
    srv.test.stub(require "srv.async.shared", "open", function() return { incr = function() return nil, srv.error.new(503) end } end)
    local again = client_of(srv.rate_limit(fresh { limit = 1 }))
    for _ = 1, 3 do again:get("/"):expect(200) end
  end)

  it("refuses options that make no sense", function()
    for _, opts in ipairs {
      { limit = 0 }, { limit = 1.5 }, { limit = 2e6 }, { window = "10ms" }, { window = "soon" }, { cost = -1 },
      { cost = "1" }, { name = 'a"b' }, { name = "" }, { key = "ip" }, { limt = 5 },
    } do
      assert.error_matches(function() srv.rate_limit(opts) end, "^srv.rate_limit: ")
    end
  end)
end)
