local srv = require "srv"

describe("the gateway", function()
  local undo, t

  setup(function()
    undo = srv.test.env { ORIGIN = "http://origin.example", STANDBY = "http://standby.example", LIMIT = "1000" }
    t = srv.test(require "app")
  end)

  teardown(function() if undo then undo() end end)

  --- Both upstreams answer by FN(method, url, request).
  local function upstream(fn)
    srv.test.upstream { ["* *"] = fn }
  end

  it("passes on what the origin says", function()
    upstream(function() return { status = 201, headers = { ["X-Own"] = "1" }, body = "made" } end)
    t:post("/things?x=1", { body = "data" }):expect(201):expect("x-own", "1"):expect "made"
  end)

  it("keeps what everybody may see, and nothing else", function()
    local asked = 0
    upstream(function()
      asked = asked + 1
      return { status = 200, headers = { ["Cache-Control"] = "max-age=60" }, body = "answer " .. asked }
    end)
    t:get("/kept"):expect "answer 1"
    t:get("/kept"):expect "answer 1":expect("x-cache", "hit")
    t:get("/kept", { headers = { Authorization = "mine" } }):expect "answer 2"
    t:get("/kept?other"):expect "answer 3"
  end)

  it("is ready while one of them answers", function()
    upstream(function() return { status = 200, body = "" } end)
    t:get("/readyz"):expect(200)
    upstream(function() return { status = 503, body = "" } end)
    t:get("/readyz"):expect(503)
  end)
end)
