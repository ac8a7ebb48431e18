local srv = require "srv"

local function client_of(opts)
  local app = srv.app()
  app:use(srv.csrf(opts))
  app:all("/", function() return "done" end)
  return srv.test(app)
end

local function post(t, headers, host) return t:post("/", { headers = headers, host = host or "a.example" }) end

describe("srv.csrf", function()
  it("lets our own pages and programs in", function()
    local t = client_of()
    for _, headers in ipairs {
      {}, { ["Sec-Fetch-Site"] = "same-origin" }, { ["Sec-Fetch-Site"] = "none" }, { Origin = "https://a.example" },
      { Origin = "http://A.example" }, { ["Sec-Fetch-Site"] = "same-origin", Origin = "https://a.example" },
    } do
      post(t, headers):expect(200)
    end
    post(t, { Origin = "http://a.example:8080" }, "a.example:8080"):expect(200)
  end)

  it("refuses pages of other sites", function()
    local t = client_of()
    for _, headers in ipairs {
      { ["Sec-Fetch-Site"] = "cross-site" }, { ["Sec-Fetch-Site"] = "same-site" }, { ["Sec-Fetch-Site"] = "" },
      { Origin = "https://evil.example" }, { Origin = "null" }, { Origin = "https://a.example.evil.example" },
      { Origin = "https://a.example:8443" }, { Origin = "https://a.example@evil.example" },
      { ["Sec-Fetch-Site"] = "cross-site", Origin = "https://a.example" },
      { ["Sec-Fetch-Site"] = { "cross-site", "same-origin" } },
    } do
      post(t, headers):expect(403)
      t:get("/", { headers = headers }):expect(200)
    end
  end)

  it("takes no page of plain HTTP for ours over TLS, unless it is listed", function()
    local function over_tls(opts, origin)
      return client_of(opts):post("/", { headers = { Origin = origin }, host = "a.example", tls = true })
    end
    over_tls(nil, "https://a.example"):expect(200)
    over_tls(nil, "http://a.example"):expect(403):expect { code = "cross_site" }
    over_tls(nil, "HTTP://a.example"):expect(403)
    over_tls({ origins = { "http://a.example" } }, "http://a.example"):expect(200)
  end)

  it("knows its own host with and without the port that goes without saying", function()
    post(client_of(), { Origin = "https://a.example" }, "a.example:443"):expect(200)
    post(client_of(), { Origin = "https://a.example:80" }, "a.example"):expect(403)
  end)

  it("lets listed origins in", function()
    local t = client_of { origins = { "https://App.example" } }
    post(t, { Origin = "https://app.example", ["Sec-Fetch-Site"] = "cross-site" }):expect(200)
    post(t, { Origin = "https://app.example:1", ["Sec-Fetch-Site"] = "cross-site" }):expect(403)
    assert.error_matches(function() srv.csrf { origins = { "app.example" } } end, "is no origin")
  end)
end)
