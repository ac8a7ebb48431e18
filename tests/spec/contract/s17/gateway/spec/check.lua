local srv = require "srv"
local t = srv.test(require "app")

local ORIGIN, STANDBY = "http://127.0.0.1:9001", "http://127.0.0.1:9002"

describe("the gateway", function()
  it("passes requests on and answers back", function()
    local seen
    srv.test.upstream { ["* " .. ORIGIN .. "*"] = function(request)
      seen = request
      return { status = 201, body = "got " .. request.body, headers = { ["X-Up"] = "1" } }
    end }
    t:post("/a/b?c=1", { body = "hello", ip = "192.0.2.1" }):expect(201):expect "got hello":expect("x-up", "1"):expect("x-cache", false)
    assert.same({ "POST", ORIGIN .. "/a/b?c=1", "identity", "192.0.2.1" },
      { seen.method, seen.url, seen.headers["accept-encoding"], seen.headers["x-forwarded-for"] })
  end)

  it("keeps what is small and for everybody", function()
    local asked = 0
    srv.test.upstream { ["GET *"] = function(request)
      asked = asked + 1
      local fields = { ["Cache-Control"] = "max-age=60" }
      if request.url:find "vary" then fields.Vary = "Cookie" end
      if request.url:find "cookie" then fields["Set-Cookie"] = "a=b" end
      return { body = "page " .. asked, headers = fields }
    end }
    t:get("/kept"):expect "page 1":expect("x-cache", false)
    t:get("/kept"):expect "page 1":expect("x-cache", "hit"):expect("cache-control", "max-age=60")
    t:get("/kept", { headers = { Authorization = "Bearer x" } }):expect "page 2"
    t:get("/kept", { host = "another.example" }):expect "page 3"
    for i, path in ipairs { "/vary", "/vary", "/cookie", "/cookie" } do t:get(path):expect("page " .. 3 + i) end
  end)

  it("compresses what it passes on, kept or not, for each client that likes it", function()
    local page = ("a line of a page\n"):rep(200)
    srv.test.upstream { ["GET *"] = function(request)
      local fields = { ["Content-Type"] = "text/html", ETag = '"v1"' }
      if request.url:find "kept" then fields["Cache-Control"] = "max-age=60" end
      return { body = page, headers = fields }
    end }
    for _, path in ipairs { "/plain", "/kept-page", "/kept-page" } do
      local answer = t:get(path, { headers = { ["Accept-Encoding"] = "gzip" } })
      answer:expect(200):expect("content-encoding", "gzip"):expect("vary", "Accept-Encoding"):expect("etag", 'W/"v1"')
      assert.is_true(#answer.body < #page / 4)
      t:get(path):expect(page):expect("etag", '"v1"'):expect("content-encoding", false)
    end
  end)

  it("asks the other origin when one is down, and says so when both are", function()
    srv.test.upstream { ["GET " .. STANDBY .. "/*"] = "standby" }
    for _ = 1, 3 do t:get("/x"):expect(200):expect "standby" end
    srv.test.upstream {}
    t:get("/x"):expect(502)
  end)

  it("limits each client, names each request, and tells how it is", function()
    srv.test.upstream { ["GET *"] = "x" }
    local answer = t:get("/limited", { ip = "192.0.2.2" }):expect(200)
    assert.is_truthy(answer.headers["ratelimit-policy"]:find "q=600; w=60")
    assert.is_string(answer.headers["x-request-id"])
    t:get("/livez"):expect(200)
    t:get("/readyz"):expect(200):expect { checks = { origin = "ok" } }
    t:get("/metrics", { ip = "127.0.0.1" }):expect(200)
    srv.test.upstream {}
    t:get("/readyz"):expect(503):expect { checks = { origin = "failed" } }
  end)
end)
