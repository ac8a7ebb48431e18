--- A header of a proxy that nobody has said is to be trusted.
local srv = require "srv"

--- What ANSWER's request has logged of it.
local function told(answer)
  local found = {}
  for _, line in ipairs(answer:expect(200).log) do
    if line.message:find "^a proxy is not trusted" then found[#found + 1] = line end
  end
  return found
end

local function client_of(plugin)
  local app = srv.app()
  if plugin then app:use(plugin) end
  app:get("/ip", function(req) return req.ip end)
  app:get("/", function() return "hello" end)
  return srv.test(app)
end

local HEADERS = { ["X-Forwarded-For"] = "203.0.113.7" }

describe("X-Forwarded-For of a peer that is not trusted", function()
  it("is told of once, and only where somebody asks who the client is", function()
    local t = client_of()
    assert.same({}, told(t:get("/", { headers = HEADERS })))
    assert.same({}, told(t:get "/ip"))
    local lines = told(t:get("/ip", { headers = HEADERS, ip = "192.0.2.1" }):expect "192.0.2.1")
    assert.equal(1, #lines)
    assert.same({ "warn", "X-Forwarded-For", "192.0.2.1" }, { lines[1].level, lines[1].fields.header, lines[1].fields.peer })
    assert.matches('srv.proxy_trust { "192.0.2.1" }', lines[1].fields.hint, 1, true)
    assert.same({}, told(t:get("/ip", { headers = HEADERS })))
  end)

  it("is told of where other proxies are trusted, too", function()
    for _, name in ipairs { "srv.web.untrusted", "srv.plugins.proxy_trust" } do srv.test.stub(package.loaded, name, nil) end
    local t = client_of(require "srv.plugins.proxy_trust" { "10.0.0.0/8" })
    assert.same({}, told(t:get("/ip", { headers = HEADERS, ip = "10.0.0.1" }):expect "203.0.113.7"))
    local lines = told(t:get("/ip", { headers = { Forwarded = "for=203.0.113.7" }, ip = "192.0.2.1" }))
    assert.same({ 1, "Forwarded" }, { #lines, lines[1] and lines[1].fields.header })
  end)
end)
