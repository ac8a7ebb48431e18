local srv = require "srv"

local function show(req)
  return { ip = req.ip, ips = req.ips, proto = req.proto, secure = req.secure, host = req.host, hostname = req.hostname, peer = req.peer.ip }
end

local function client_of(list)
  local app = srv.app()
  app:use(srv.proxy_trust(list))
  app:get("/", show)
  return srv.test(app)
end

local function ask(list, headers, ip)
  return client_of(list):get("/", { headers = headers, ip = ip }):expect(200):json()
end

describe("srv.proxy_trust", function()
  it("the first address from the right that is no trusted proxy is the client", function()
    local told = ask({ "loopback" }, { ["X-Forwarded-For"] = "203.0.113.7, 10.0.0.1", ["X-Forwarded-Proto"] = "https", ["X-Forwarded-Host"] = "api.example:8443" })
    assert.same({ ip = "10.0.0.1", ips = { "10.0.0.1" }, proto = "https", secure = true, host = "api.example:8443", hostname = "api.example", peer = "127.0.0.1" }, told)
    told = ask({ "loopback", "private" }, { ["X-Forwarded-For"] = "6.6.6.6, 203.0.113.7, 10.0.0.1" })
    assert.same({ "203.0.113.7", { "203.0.113.7", "10.0.0.1" } }, { told.ip, told.ips })
    told = ask({ "loopback", "private" }, { ["X-Forwarded-For"] = "10.0.0.2, 10.0.0.1" })
    assert.same({ "10.0.0.2", { "10.0.0.2", "10.0.0.1" } }, { told.ip, told.ips })
  end)

  it("nobody else is believed", function()
    local headers = { ["X-Forwarded-For"] = "203.0.113.7", ["X-Forwarded-Proto"] = "https", ["X-Forwarded-Host"] = "evil.example", Forwarded = "for=203.0.113.8;proto=https;host=evil.example" }
    local told = ask({ "10.0.0.0/8" }, headers, "192.0.2.1")
    assert.same({ "192.0.2.1", {}, "http", "test.local" }, { told.ip, told.ips, told.proto, told.host })
  end)

  it("without a header the client is the proxy", function()
    local told = ask({ "loopback" }, {})
    assert.same({ "127.0.0.1", {}, "http", false }, { told.ip, told.ips, told.proto, told.secure })
  end)

  it("understands ports, brackets, IPv6, several lines", function()
    for text, ip in pairs {
      ["203.0.113.7:4711"] = "203.0.113.7", ["[2001:db8::7]:4711"] = "2001:db8::7", ["[2001:db8::7]"] = "2001:db8::7",
      ["2001:DB8:0::7"] = "2001:db8::7", ["::ffff:203.0.113.7"] = "203.0.113.7",
    } do
      assert.equal(ip, ask({ "loopback" }, { ["X-Forwarded-For"] = text }).ip)
    end
    local told = ask({ "loopback", "private" }, { ["X-Forwarded-For"] = { "203.0.113.7", "10.0.0.1" } })
    assert.same({ "203.0.113.7", "10.0.0.1" }, told.ips)
  end)

  it("stops at an entry that is no address", function()
    for _, entry in ipairs { "unknown", "", "_hidden", "203.0.113.300", "<script>", "203.0.113.7 x" } do
      assert.equal("127.0.0.1", ask({ "loopback" }, { ["X-Forwarded-For"] = "198.51.100.1, " .. entry }).ip)
    end
  end)

  it("scheme and host are the outermost trusted proxy's word", function()
    local told = ask({ "loopback" }, { ["X-Forwarded-For"] = "203.0.113.7", ["X-Forwarded-Proto"] = "https, http", ["X-Forwarded-Host"] = "evil.example, api.example" })
    assert.same({ "http", "api.example" }, { told.proto, told.host })
    told = ask({ "loopback", "private" }, { ["X-Forwarded-For"] = "203.0.113.7, 10.0.0.1", ["X-Forwarded-Proto"] = "ftp, https, http", ["X-Forwarded-Host"] = "evil.example, api.example, inner" })
    assert.same({ "https", "api.example" }, { told.proto, told.host })
    told = ask({ "loopback" }, { ["X-Forwarded-Proto"] = "gopher", ["X-Forwarded-Host"] = "a b" })
    assert.same({ "http", "test.local" }, { told.proto, told.host })
  end)

  it("reads Forwarded where no X-Forwarded-For is", function()
    local told = ask({ "loopback", "private" }, { Forwarded = 'for=6.6.6.6;host=evil.example, for="[2001:db8::7]:47";proto=https;host="api.example:8443", for=10.0.0.1;proto=http' })
    assert.same({ "2001:db8::7", { "2001:db8::7", "10.0.0.1" }, "https", "api.example:8443" }, { told.ip, told.ips, told.proto, told.host })
    told = ask({ "loopback" }, { Forwarded = 'for="a, b";proto=https' })
    assert.same({ "127.0.0.1", "https" }, { told.ip, told.proto })
    local both = { Forwarded = "for=6.6.6.6;proto=https", ["X-Forwarded-For"] = "203.0.113.7" }
    assert.equal("203.0.113.7", ask({ "loopback" }, both).ip)
    assert.equal("6.6.6.6", ask({ "loopback", header = "forwarded" }, both).ip)
    assert.equal("127.0.0.1", ask({ "loopback", header = "x-forwarded" }, { Forwarded = "for=6.6.6.6" }).ip)
  end)

  it("nothing that a client sends can change what a proxy has added", function()
    local t, alphabet = client_of { "loopback", "private" }, '0123456789abcdef.:,;="[] for\\\127\200'
    for _ = 1, 300 do
      local bytes = {}
      for i = 1, math.random(0, 40) do
        local at = math.random(#alphabet)
        bytes[i] = alphabet:sub(at, at):gsub("[%c]", " ")
      end
      local sent = table.concat(bytes)
      local told = t:get("/", { headers = { ["X-Forwarded-For"] = sent .. ", 203.0.113.7, 10.0.0.1", Forwarded = sent } }):expect(200):json()
      assert.same({ "203.0.113.7", { "203.0.113.7", "10.0.0.1" } }, { told.ip, told.ips }, sent)
      told = t:get("/", { headers = { Forwarded = sent .. ', for="203.0.113.7:80";host="a\\"b,c";proto=https, for=10.0.0.1' } }):expect(200):json()
      assert.same({ "203.0.113.7", { "203.0.113.7", "10.0.0.1" }, "https" }, { told.ip, told.ips, told.proto }, sent)
    end
  end)

  it("walks through a bounded number of proxies", function()
    local hops = ("127.0.0.1, "):rep(2000) .. "127.0.0.1"
    assert.equal(32, #ask({ "loopback" }, { ["X-Forwarded-For"] = hops }).ips)
  end)

  it("counts for its router, and cookies follow it", function()
    local app, inner = srv.app(), srv.router()
    inner:use(srv.proxy_trust { "loopback" })
    local function set(req, res)
      res:cookie("a", "1")
      return req.ip
    end
    inner:get("/", set)
    app:get("/outer", set)
    app:mount("/inner", inner)
    local t, opts = srv.test(app), { headers = { ["X-Forwarded-For"] = "203.0.113.7", ["X-Forwarded-Proto"] = "https" } }
    t:get("/outer", opts):expect "127.0.0.1":expect("set-cookie", "a=1; Path=/; HttpOnly; SameSite=Lax")
    t:get("/inner", opts):expect "203.0.113.7":expect("set-cookie", "a=1; Path=/; HttpOnly; Secure; SameSite=Lax")
  end)

  it("refuses what is no list of networks", function()
    for _, list in ipairs { {}, { "10.0.0.0/33" }, { "proxy.example" }, { 1 } } do
      assert.error_matches(function() srv.proxy_trust(list) end, "srv.proxy_trust: ")
    end
    assert.error_matches(function() srv.proxy_trust() end, "a list of networks is missing")
    assert.error_matches(function() srv.proxy_trust { "loopback", heder = "forwarded" } end, 'did you mean "header"')
  end)
end)
