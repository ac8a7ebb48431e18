local srv = require "srv"

local function client_of(...)
  local app = srv.app()
  app:use(...)
  app:get("/text", function() return "hello" end)
  app:get("/other", function() return "hellO" end)
  app:get("/json", function() return { a = 1, b = { 2 } } end)
  app:get("/calls", function() return { at = setmetatable({}, { __tojson = function() return "x" end }) } end)
  app:get("/long", function() return ("x"):rep(100) end)
  app:get("/huge", function() return ("x"):rep(200000) end)
  app:get("/own", function(_, res)
    res:etag "v1"
    return "own"
  end)
  app:get("/dated", function(_, res)
    res:last_modified(1700000000)
    return "dated"
  end)
  app:get("/stream", function(_, res) res:write "a" end)
  app:get("/created", function() return "x", 201 end)
  app:get("/empty", function() return nil, 204 end)
  app:get("/wrong", function() srv.error(409, "no") end)
  app:post("/text", function() return "posted" end)
  return srv.test(app)
end

local function tag_of(t, path) return t:get(path):expect(200).headers.etag end

describe("srv.etag", function()
  it("tags what GET and HEAD answer with 200", function()
    local t = client_of(srv.etag())
    for _, path in ipairs { "/text", "/json", "/calls", "/huge", "/dated" } do
      local tag = tag_of(t, path)
      assert.is_truthy(tag and tag:find '^W/"%x+%-%x+"$', path .. tostring(tag))
      assert.equal(tag, tag_of(t, path))
      assert.equal(tag, t:head(path):expect(200).headers.etag)
      local answer = t:get(path, { headers = { ["If-None-Match"] = '"other", ' .. tag } }):expect(304)
      assert.equal(tag, answer.headers.etag)
      assert.equal("", answer.body)
      assert.is_nil(answer.headers["content-type"])
      t:get(path, { headers = { ["If-None-Match"] = "*" } }):expect(304)
      t:get(path, { headers = { ["If-None-Match"] = '"other"' } }):expect(200)
    end
    assert.not_equal(tag_of(t, "/text"), tag_of(t, "/other"))
  end)

  it("tags nothing else", function()
    local t = client_of(srv.etag())
    for path, status in pairs { ["/stream"] = 200, ["/created"] = 201, ["/empty"] = 204, ["/wrong"] = 409, ["/none"] = 404 } do
      assert.is_nil(t:get(path):expect(status).headers.etag)
    end
    assert.is_nil(t:post("/text"):expect(200).headers.etag)
    assert.is_nil(client_of(function(_, _, next) return next() end):get("/text").headers.etag)
  end)

  it("leaves a tag that is there", function()
    local t = client_of(srv.etag())
    assert.equal('"v1"', tag_of(t, "/own"))
    t:get("/own", { headers = { ["If-None-Match"] = '"v1"' } }):expect(304)
  end)

  it("is behind all hooks, wherever it stands", function()
    local function change(_, res) res:body(res:body() .. " and more") end
    local hook = { name = "change", hooks = { send = change } }
    local one, other = client_of(srv.etag(), hook), client_of(hook, srv.etag())
    assert.equal("hello and more", one:get("/text").body)
    assert.equal(tag_of(one, "/text"), tag_of(other, "/text"))
    assert.not_equal(tag_of(one, "/text"), tag_of(client_of(srv.etag()), "/text"))
  end)

  it("has a 304 by date bear the tag, and lets the tag decide", function()
    local t = client_of(srv.etag())
    local date = t:get("/dated").headers["last-modified"]
    assert.is_string(t:get("/dated", { headers = { ["If-Modified-Since"] = date } }):expect(304).headers.etag)
    t:get("/dated", { headers = { ["If-Modified-Since"] = date, ["If-None-Match"] = '"other"' } }):expect(200)
  end)

  it("knows strong tags, and a limit", function()
    local t = client_of(srv.etag { weak = false, limit = 99 })
    local tag = tag_of(t, "/text")
    assert.is_truthy(tag:find '^"%x+%-%x+"$')
    t:get("/text", { headers = { ["If-Match"] = tag } }):expect(200)
    t:get("/text", { headers = { ["If-Match"] = '"other"' } }):expect(412)
    assert.is_nil(tag_of(t, "/long"))
    assert.is_string(tag_of(client_of(srv.etag { limit = "100B" }), "/long"))
    assert.is_nil(tag_of(client_of(srv.etag { limit = "100KiB" }), "/huge"))
    assert.error_matches(function() srv.etag { limit = 0 } end, "^srv%.etag: limit")
    assert.error_matches(function() srv.etag { strong = true } end, "unknown option")
  end)
end)
