local bench_requests = require "srv.cli.bench_requests"
local srv = require "srv"

local URL = "http://127.0.0.1:8080/a?b=c"

local function plan_of(opts, ...)
  local all = { connections = 10 }
  for key, value in pairs(opts) do all[key] = value end
  return bench_requests.plan({ ... }, all)
end

local function refuses(pattern, opts, ...)
  local plan, problem = plan_of(opts, ...)
  assert.is_nil(plan)
  assert.matches(pattern, problem)
end

describe("the requests of a load", function()
  it("say no more than was asked for", function()
    local plan = assert(plan_of({}, URL))
    local head = plan.requests[1].bytes
    assert.matches("^GET /a%?b=c HTTP/1%.1\r\nHost: 127%.0%.0%.1:8080\r\n", head)
    assert.is_nil(head:find("Accept-Encoding", 1, true))
    assert.is_nil(head:find("Connection", 1, true))
    assert.same({ { host = "127.0.0.1", port = 8080 } }, plan.origins)
    assert.same({ 1 }, plan.wheel)
  end)

  it("have the method, the fields and the body of the line", function()
    local request = assert(plan_of({ method = "PUT", headers = { "X-A=1", "X-B: c: d", "x-a: 2" }, body = "text" }, URL)).requests[1]
    assert.matches("^PUT ", request.bytes)
    assert.matches("\r\nX%-A: 1\r\n", request.bytes)
    assert.matches("\r\nX%-B: c: d\r\n", request.bytes)
    assert.matches("\r\nContent%-Length: 4\r\n\r\ntext$", request.bytes)
    assert.is_false(request.is_head)
    assert.is_true(assert(plan_of({ method = "HEAD" }, URL)).requests[1].is_head)
  end)

  it("may close their connection", function()
    local bytes = assert(plan_of({ headers = { "connection=close" } }, URL)).requests[1].bytes
    assert.matches("\r\nConnection: close\r\n\r\n$", bytes)
  end)

  it("are fields one behind the other with HTTP/2, whose names are in lower case", function()
    local request = assert(plan_of({ http2 = true, method = "POST", headers = { "X-A=1", "Host=b.example" }, body = "text" }, URL)).requests[1]
    local texts, at = {}, 1
    for i, length in ipairs(request.fields) do
      texts[i], at = request.bytes:sub(at, at + length - 1), at + length
    end
    local fields = {}
    for i = 1, #texts, 2 do fields[texts[i]] = texts[i + 1] end
    assert.same({ ":method", "POST", ":scheme", "http", ":authority", "b.example", ":path", "/a?b=c" }, { unpack(texts, 1, 8) })
    assert.equal("1", fields["x-a"])
    assert.equal("4", fields["content-length"])
    assert.is_nil(fields.host)
    assert.equal("text", request.bytes:sub(at))
  end)

  it("say with https whose certificate is wanted", function()
    local plan = assert(plan_of({}, "https://127.0.0.1/", "http://127.0.0.1:443/"))
    assert.same({ { host = "127.0.0.1", port = 443, tls = true, name = "127.0.0.1" }, { host = "127.0.0.1", port = 443 } }, plan.origins)
    assert.equal("b.example", assert(plan_of({ servername = "b.example" }, "https://127.0.0.1/")).origins[1].name)
  end)

  it("have no Connection with HTTP/2", function()
    refuses("Connection is of HTTP/1%.1", { http2 = true, headers = { "Connection=close" } }, URL)
  end)

  it("have room for ids, wherever they stand, and lengths that count it", function()
    local request = assert(plan_of({ ["id-replacement"] = true, method = "POST", body = "[<id>]", headers = { "X-Id=<[<id>]>" } },
      "http://127.0.0.1/[<id>]/%5B%3Cid%3E%5D")).requests[1]
    assert.equal(4, #request.ids)
    local room = request.bytes:sub(-27)
    for _, place in ipairs(request.ids) do assert.equal(room, request.bytes:sub(place + 1, place + 27)) end
    assert.matches("Content%-Length: 27\r\n", request.bytes)
    assert.is_nil(assert(plan_of({ body = "[<id>]", method = "POST" }, URL)).requests[1].ids)
  end)

  it("come as often as their weights say, spread evenly", function()
    local plan = assert(plan_of({ weights = "3,1" }, URL, URL .. "&two"))
    assert.same({ 1, 1, 2, 1 }, plan.wheel)
    assert.equal(1, #plan.origins)
    plan = assert(plan_of({}, "http://127.0.0.1:1/", "http://127.0.0.1:2/"))
    assert.same({ 1, 2 }, { plan.requests[1].origin, plan.requests[2].origin })
  end)

  it("go to a Unix socket, with host and path as the URL says", function()
    local plan = assert(plan_of({ ["socket-path"] = "/run/s" }, "http://name.example/x"))
    assert.same({ { path = "/run/s" } }, plan.origins)
    assert.matches("Host: name.example", plan.requests[1].bytes)
  end)

  it("are refused in words", function()
    refuses("a field is NAME=VALUE", { headers = { "X" } }, URL)
    refuses("set by srv alone", { headers = { "Transfer-Encoding=chunked" } }, URL)
    refuses("is no method", { method = "G E T" }, URL)
    refuses("does not begin with http://, https://, ws:// or wss://", {}, "ftp://x/")
    refuses("has 1 numbers for 2 URLs", { weights = "1" }, URL, URL)
    refuses("whole number from 1 on", { weights = "0" }, URL)
    refuses("no JSON object", { form = "{" }, URL)
    refuses("No such file", { input = "/no/such" }, URL)
    for _, entry in ipairs { "5", '{"request":7}', '{"request":{"url":"' .. URL .. '","method":7}}' } do
      local path = assert(srv.fs.temp()).path
      assert(srv.fs.write(path, '{"log":{"entries":[' .. entry .. "]}}"))
      refuses("goes to the URLs that were given", { har = path }, URL)
    end
    refuses("is no HAR file", { har = "tests/spec/cli/bench_requests_spec.lua" }, URL)
    refuses("reach 1 of 2 servers", { connections = 1 }, "http://127.0.0.1:1/", "http://127.0.0.1:2/")
  end)
end)
