--- API, section 16: srv.test.
local srv = require "srv"

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

local function app()
  local made = srv.app()
  made:all("/echo", function(req)
    return { method = req.method, query = req.query, type = req:header "content-type" or "none", body = req:text() or "none",
      host = req.host, ip = req.ip, cookies = req.cookies, x = req:header "x-a" or "none",
      authorization = req:header "authorization" or "none" }
  end)
  made:get("/set", function(_, res) return res:cookie("a", "x y"):cookie("b", "1"):send "set" end)
  made:get("/clear", function(_, res) return res:clear_cookie "a":send "cleared" end)
  made:get("/log", function() srv.log.warn("noted", { k = 1 }) return "x" end)
  made:get("/stream", function(_, res) res:write "a" res:flush() res:write "b" end)
  return made
end

describe("srv.test", function()
  it("sends every method and its options", function()
    local t = srv.test(app())
    for _, method in ipairs { "get", "post", "put", "patch", "delete" } do t[method](t, "/echo"):expect { method = method:upper() } end
    t:request("PURGE", "/echo"):expect { method = "PURGE" }
    t:post("/echo", { json = { a = 1 } }):expect { type = "application/json", body = '{"a":1}' }
    t:post("/echo", { form = { a = "1 2", b = { "x", "y" } } }):expect { type = "application/x-www-form-urlencoded" }
    t:post("/echo", { multipart = { a = "1", f = { body = "x", name = "f.txt" } } }):expect(function(r)
      local sent = r:json()
      return sent.type:find "^multipart/form%-data; boundary=" and sent.body:find('name="f"; filename="f.txt"', 1, true)
    end)
    t:get("/echo", { auth = { "u", "p" } }):expect { authorization = "Basic dTpw" }
    t:get("/echo", { query = { a = "1", b = { "x", "y" } } }):expect { query = { a = "1", b = { "x", "y" } } }
    t:get("/echo", { host = "h:1", ip = "1.2.3.4", headers = { ["X-A"] = "v" } }):expect { host = "h:1", ip = "1.2.3.4", x = "v" }
  end)

  it("keeps cookies", function()
    local t = srv.test(app())
    assert.same({ a = "x y", b = "1" }, t:get("/set").cookies)
    t:get("/echo"):expect { cookies = { a = "x y", b = "1" } }
    t:get("/clear")
    assert.same({ b = "1" }, t:get("/echo"):json().cookies)
  end)

  it("expects a status, headers, a part of the JSON, a function; and says what is not so", function()
    local t = srv.test(app())
    local answer = t:get("/echo")
    assert.equal(answer, answer:expect(200))
    answer:expect("content-type", "^application/json"):expect { method = "GET" }:expect(function(r) return r:json().method == "GET" end)
    for wanted, fn in pairs {
      status = function() answer:expect(404) end, ["content-type"] = function() answer:expect("content-type", "text/plain") end,
      ["body.method"] = function() answer:expect { method = "POST" } end, ["no"] = function() answer:expect(function() return false end) end,
    } do
      local message = message_of(fn)
      assert.is_truthy(message:find(wanted, 1, true), message)
      assert.is_truthy(message:find("s16_tests_spec.lua:%d+"), message)
    end
    assert.is_truthy(message_of(function() answer:expect("content-type", "application/json.") end) ~= "no error")   -- exact without "^"
  end)

  it("tells status, headers in any case, body, cookies, log, chunks", function()
    local t = srv.test(app())
    local answer = t:get("/log")
    assert.equal("x", answer.body)
    assert.equal(answer.headers["Content-Type"], answer.headers["content-type"])
    assert.same({ "warn", "noted", 1 }, { answer.log[1].level, answer.log[1].message, answer.log[1].fields.k })
    assert.same({ "a", "b" }, t:get("/stream"):chunks())
  end)

  it("undoes stubs and variables by itself", function()
    local t = { f = function() return "real" end }
    srv.test.stub(t, "f", function() return "double" end)
    assert.equal("double", t.f())
    srv.test.env { S16 = "set" }
    assert.equal("set", srv.env.S16)
    srv.test.restore()
    assert.equal("real", t.f())
    assert.is_nil(srv.env.S16)
  end)

  it("answers in the place of other servers: a table, a text or a function; anything else is refused", function()
    srv.test.upstream {
      ["GET https://api.example/x"] = { status = 201, json = { a = 1 }, headers = { ["X-Up"] = "1" } },
      ["POST *"] = function(request) return { body = request.method .. " " .. request.url .. " " .. request.body .. request.headers["x-a"] } end,
      ["GET https://down.example/*"] = function() return nil, srv.error.new(503, "down") end,
    }
    local r = assert(srv.http.get("https://api.example/x", { query = { q = 1 } }))
    assert.same({ 201, "1", 1 }, { r.status, r:header "x-up", r:json().a })
    assert.equal("POST http://a.example/y?z=1 b7", assert(srv.http.post("http://a.example/y?z=1", { body = "b", headers = { ["X-A"] = 7 } })).body)
    assert.equal("down", select(2, srv.http.get("https://down.example/a", { retries = 0 })).message)
    local none, err = srv.http.get("https://other.example/", { retries = 0 })
    assert.is_nil(none)
    assert.equal("refused", err.code)
    assert.is_truthy(err.message:find("GET https://other.example/", 1, true), err.message)
    for _, answers in ipairs { { ["https://a/"] = "x" }, { ["GET https://a/"] = { stat = 200 } }, { ["GET https://a/"] = 5 }, 5 } do
      local message = message_of(function() srv.test.upstream(answers) end)
      assert.is_truthy(message:find "s16_tests_spec.lua:%d+: srv.test.upstream", message)
    end
    srv.test.restore()
    assert.is_true(select(2, srv.http.get("https://api.example/x", { retries = 0 })).code ~= "refused")
  end)

  it("stubs what the app under test asks for, also forward", function()
    local proxy = srv.app()
    proxy:all("/*path", function(req) return srv.http.forward(req, "https://origin.example") end)
    srv.test.upstream { ["* https://origin.example/*"] = function(request) return { status = 202, body = request.method .. request.body } end }
    srv.test(proxy):put("/a", { body = "b" }):expect(202):expect "PUTb"
  end)

  it("gives a fresh migrated database", function()
    local folder = os.tmpname()
    os.remove(folder)
    os.execute("mkdir " .. folder)
    local file = assert(io.open(folder .. "/001_t.sql", "w"))
    file:write "create table t (a integer);"
    file:close()
    local one, other = srv.test.db { migrations = folder }, srv.test.db { migrations = folder }
    assert.equal(1, one:insert("t", { a = 1 }))
    assert.equal(0, other:value "select count(*) from t")
    assert.is_false(pcall(srv.test.db, { migrations = folder .. "/none" }))
    os.remove(folder .. "/001_t.sql")
    os.remove(folder)
  end)

  it("blames unknown options on the spec's line", function()
    local t = srv.test(app())
    assert.is_truthy(message_of(function() t:get("/echo", { jsn = {} }) end):find('s16_tests_spec.lua:%d+: .*did you mean "json"?'))
    assert.is_truthy(message_of(function() srv.test {} end):find("app"))
  end)

  it("lets it wait", function()
    srv.sleep(0.001)
    assert.equal(1, srv.spawn(function() srv.sleep(0.001) return 1 end):wait())
  end)
end)

--- Its tasks and defers go on, and what they are of must be there.
it("an app may be forgotten while a request of it still ends", function()
  local ended = false
  local function ask()
    local slow = srv.app()
    slow:get("/", { timeout = "10ms" }, function()
      srv.defer(function()
        srv.sleep "30ms"
        ended = true
      end)
      srv.sleep "10s"
    end)
    srv.test(slow):get("/"):expect(503)
  end
  ask()
  repeat
    collectgarbage()
    srv.sleep "5ms"
  until ended
  collectgarbage()
end)
