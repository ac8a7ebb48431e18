local srv = require "srv"

local CSP = "default-src 'self';base-uri 'self';font-src 'self' https: data:;form-action 'self';frame-ancestors 'self';"
  .. "img-src 'self' data:;object-src 'none';script-src 'self';script-src-attr 'none';style-src 'self' https: 'unsafe-inline'"

local PLAIN = {
  ["content-security-policy"] = CSP, ["cross-origin-opener-policy"] = "same-origin",
  ["cross-origin-resource-policy"] = "same-origin", ["origin-agent-cluster"] = "?1", ["referrer-policy"] = "no-referrer",
  ["x-content-type-options"] = "nosniff", ["x-dns-prefetch-control"] = "off", ["x-download-options"] = "noopen",
  ["x-frame-options"] = "SAMEORIGIN", ["x-permitted-cross-domain-policies"] = "none", ["x-xss-protection"] = "0",
}

local TLS = { headers = { ["X-Forwarded-Proto"] = "https", ["X-Forwarded-For"] = "203.0.113.7" }, ip = "127.0.0.1" }

local function app_of(...)
  local app = srv.app()
  app:use(srv.proxy_trust { "loopback" }, ...)
  app:get("/", function() return "x" end)
  app:get("/own", function(_, res)
    res:header("X-Frame-Options", "DENY")
    return "x"
  end)
  app:get("/broken", function() error "broken" end)
  app:get("/guarded", function(_, res)
    res:header("Content-Security-Policy", "default-src 'none'")
    error "broken"
  end)
  app:get("/late", { timeout = "20ms" }, function() srv.sleep "1h" end)
  app:get("/no-json", function() return { x = 0 / 0 } end)
  app:get("/stream", function(_, res) res:write "a" end)
  app:get("/empty", function() return nil, 204 end)
  return app
end

local function client_of(opts) return srv.test(app_of(srv.helmet(opts))) end

describe("srv.helmet", function()
  it("has helmet 8's headers, on every status", function()
    local t = client_of()
    for path, status in pairs { ["/"] = 200, ["/broken"] = 500, ["/no-json"] = 500, ["/late"] = 503, ["/stream"] = 200, ["/empty"] = 204, ["/none"] = 404 } do
      local answer = t:get(path):expect(status)
      for name, value in pairs(PLAIN) do assert.equal(value, answer.headers[name], path) end
      for _, name in ipairs { "strict-transport-security", "cross-origin-embedder-policy", "x-powered-by" } do
        assert.is_nil(answer.headers[name])
      end
    end
    assert.equal(CSP, t:post("/"):expect(405).headers["content-security-policy"])
    assert.equal(CSP, t:options("/"):expect(204).headers["content-security-policy"])
  end)

  it("sends HSTS and upgrade-insecure-requests on TLS alone", function()
    local headers = client_of():get("/", TLS):expect(200).headers
    assert.equal(CSP .. ";upgrade-insecure-requests", headers["content-security-policy"])
    assert.equal("max-age=31536000; includeSubDomains", headers["strict-transport-security"])
    for name, value in pairs(PLAIN) do
      if name ~= "content-security-policy" then assert.equal(value, headers[name]) end
    end
  end)

  it("leaves what a handler has set", function()
    client_of():get("/own"):expect("x-frame-options", "^DENY$")
    client_of():get("/guarded"):expect(500):expect("content-security-policy", "^default%-src 'none'$")
  end)

  it("takes another text for each, or none", function()
    local headers = client_of {
      csp = "default-src 'none'", hsts = "max-age=60; preload", frame = "DENY", referrer = "origin", coop = "unsafe-none",
      corp = "cross-origin", coep = "require-corp",
    }:get("/", TLS).headers
    assert.same({ "default-src 'none'", "max-age=60; preload", "DENY", "origin", "unsafe-none", "cross-origin", "require-corp" }, {
      headers["content-security-policy"], headers["strict-transport-security"], headers["x-frame-options"],
      headers["referrer-policy"], headers["cross-origin-opener-policy"], headers["cross-origin-resource-policy"],
      headers["cross-origin-embedder-policy"],
    })
    assert.equal("max-age=86400; includeSubDomains", client_of { hsts = "1d" }:get("/", TLS).headers["strict-transport-security"])
    headers = client_of { csp = false, hsts = false, frame = false, referrer = false, coop = false, corp = false }:get("/", TLS).headers
    for _, name in ipairs {
      "content-security-policy", "strict-transport-security", "x-frame-options", "referrer-policy",
      "cross-origin-opener-policy", "cross-origin-resource-policy",
    } do
      assert.is_nil(headers[name])
    end
    assert.equal("nosniff", headers["x-content-type-options"])
  end)

  it("of a mount further in has the last word", function()
    local app, inner = app_of(srv.helmet()), srv.router()
    inner:use(srv.helmet { frame = false, csp = "default-src 'none'" })
    inner:get("/", function() return "x" end)
    inner:get("/own", function(_, res)
      res:header("Referrer-Policy", "origin")
      return "x"
    end)
    app:mount("/embed", inner)
    local t = srv.test(app)
    local headers = t:get("/embed").headers
    assert.is_nil(headers["x-frame-options"])
    assert.equal("default-src 'none'", headers["content-security-policy"])
    assert.equal("no-referrer", headers["referrer-policy"])
    t:get("/embed/own"):expect("referrer-policy", "^origin$")
    t:get("/"):expect("x-frame-options", "^SAMEORIGIN$")
  end)

  it("refuses what can be no header", function()
    for _, opts in ipairs { { csp = true }, { frame = "" }, { referrer = "a\nb" }, { hsts = "soon" }, { hsts = 5 }, { frames = "DENY" } } do
      assert.error_matches(function() srv.helmet(opts) end, "^srv%.helmet: ")
    end
  end)
end)
