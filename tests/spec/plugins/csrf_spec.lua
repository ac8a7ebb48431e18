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

  it("lets listed origins in", function()
    local t = client_of { origins = { "https://App.example" } }
    post(t, { Origin = "https://app.example", ["Sec-Fetch-Site"] = "cross-site" }):expect(200)
    post(t, { Origin = "https://app.example:1", ["Sec-Fetch-Site"] = "cross-site" }):expect(403)
    assert.error_matches(function() srv.csrf { origins = { "app.example" } } end, "is no origin")
  end)
end)
