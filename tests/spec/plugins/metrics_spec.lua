local srv = require "srv"

local function client_of(...)
  local app = srv.app()
  app:use(...)
  app:get("/", function() return "hello" end)
  return srv.test(app)
end

describe("srv.metrics()", function()
  it("shows all metrics in Prometheus' format", function()
    srv.metrics.counter("spec_shown_total", "Shown."):add(2)
    local t = client_of(srv.metrics())
    t:get("/metrics"):expect(200):expect("content-type", "text/plain; version=0.0.4; charset=utf-8")
      :expect("cache-control", "no-store"):expect(function(r) return r.body:find("\nspec_shown_total 2\n", 1, true) ~= nil end)
    t:get("/"):expect "hello"
  end)

  it("speaks OpenMetrics to those who ask for it", function()
    srv.metrics.counter("spec_open_total", "Open."):add(1)
    client_of(srv.metrics { path = "/m" }):get("/m", { headers = { Accept = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5" } })
      :expect(200):expect("content-type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
      :expect(function(r) return r.body:find("# TYPE spec_open counter\nspec_open_total 1\n", 1, true) and r.body:find "# EOF\n$" ~= nil end)
  end)

  it("is for this machine and private networks only", function()
    local t = client_of(srv.metrics())
    for _, ip in ipairs { "127.0.0.1", "10.1.2.3", "::1", "fd00::1" } do t:get("/metrics", { ip = ip }):expect(200) end
    t:get("/metrics", { ip = "203.0.113.7" }):expect(403)
    client_of(srv.metrics { allow = { "203.0.113.0/24" } }):get("/metrics", { ip = "203.0.113.7" }):expect(200)
    client_of(srv.metrics { allow = {} }):get("/metrics"):expect(403)
  end)

  it("a client behind a proxy that nobody vouches for is not let in", function()
    local forwarded = { headers = { ["X-Forwarded-For"] = "127.0.0.1" } }
    client_of(srv.metrics()):get("/metrics", forwarded):expect(403)
    client_of(srv.metrics(), srv.proxy_trust { "loopback" }):get("/metrics", forwarded):expect(200)
    client_of(srv.metrics(), srv.proxy_trust { "loopback" })
      :get("/metrics", { headers = { ["X-Forwarded-For"] = "127.0.0.1, 203.0.113.7" } }):expect(403)
  end)

  it("refuses options that it does not know", function()
    assert.error_matches(function() srv.metrics { pth = "/x" } end, 'did you mean "path"')
    assert.error_matches(function() srv.metrics { allow = { "home" } } end, '"home" is no network')
  end)
end)
