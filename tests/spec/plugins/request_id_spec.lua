local srv = require "srv"

local function client_of(opts)
  local app = srv.app()
  app:use(srv.request_id(opts))
  app:get("/", function(req) return req.id end)
  app:get("/broken", function() error "broken" end)
  return srv.test(app)
end

describe("srv.request_id", function()
  it("sends the id back, on every status", function()
    local t = client_of()
    local answer = t:get("/"):expect(200)
    assert.equal(answer.body, answer.headers["x-request-id"])
    local failed = t:get("/broken", { headers = { Accept = "application/json" } }):expect(500)
    assert.equal(failed:json().request_id, failed.headers["x-request-id"])
    t:get("/nothing"):expect(404):expect("x-request-id", "^%w+")
    t:post("/"):expect(405):expect("x-request-id", "^%w+")
  end)

  it("takes an id from those only who are trusted", function()
    local sent = { headers = { ["X-Request-Id"] = "abc-1" }, ip = "10.0.0.1" }
    assert.not_equal("abc-1", client_of():get("/", sent).body)
    assert.not_equal("abc-1", client_of { trust = { "10.0.0.2" } }:get("/", sent).body)
    client_of { trust = { "10.0.0.0/8" } }:get("/", sent):expect "abc-1":expect("x-request-id", "abc-1")
    client_of { header = "X-Trace", trust = { "private" } }
      :get("/", { headers = { ["X-Trace"] = "a:b/c" }, ip = "10.0.0.1" }):expect "a:b/c":expect("x-trace", "a:b/c")
  end)

  it("takes no id that could lie in a log", function()
    local t = client_of { trust = { "loopback" } }
    for _, id in ipairs { "", "a b", 'a"b', "a,b", "ä", ("x"):rep(129), "a\tb" } do
      assert.not_equal(id, t:get("/", { headers = { ["X-Request-Id"] = id } }):expect(200).body)
    end
  end)

  it("understands traceparent", function()
    local t, trace = client_of { trust = { "loopback" } }, "4bf92f3577b34da6a3ce929d0e0e4736"
    local function id_for(traceparent, id)
      return t:get("/", { headers = { traceparent = traceparent, ["X-Request-Id"] = id } }):expect(200).body
    end
    assert.equal(trace, id_for("00-" .. trace .. "-00f067aa0ba902b7-01"))
    assert.equal(trace, id_for("01-" .. trace .. "-00f067aa0ba902b7-01-later"))
    assert.equal("own", id_for("00-" .. trace .. "-00f067aa0ba902b7-01", "own"))
    for _, wrong in ipairs {
      "00-" .. trace .. "-00f067aa0ba902b7-01-x", "ff-" .. trace .. "-00f067aa0ba902b7-01",
      "00-" .. trace:upper() .. "-00f067aa0ba902b7-01", "00-" .. ("0"):rep(32) .. "-00f067aa0ba902b7-01",
      "00-" .. trace .. "-" .. ("0"):rep(16) .. "-01", "00-" .. trace .. "0-00f067aa0ba902b7-01", trace,
    } do
      assert.not_equal(trace, id_for(wrong))
    end
  end)

  it("refuses a header that is none", function()
    assert.error_matches(function() srv.request_id { header = "a b" } end, "no name for a header")
  end)
end)
