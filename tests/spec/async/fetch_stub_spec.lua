local errors = require "srv.base.errors"
local fetch = require "srv.async.fetch"
local srv = require "srv"

local function fails(code, value, err)
  assert.is_nil(value)
  assert.is_true(errors.is(err, code), tostring(err))
  return err
end

describe("srv.test.upstream", function()
  it("answers for other servers, TLS or not, and nobody else is asked", function()
    srv.test.upstream {
      ["GET https://api.example/x"] = { json = { a = 1 }, headers = { ["Cache-Control"] = "max-age=5", ["Set-Cookie"] = { "a=1", "b=2" } } },
      ["* http://127.0.0.1:1/*"] = "text",
    }
    local r = assert(fetch.get("https://api.example/x", { query = { q = 1 } }))
    assert.equal(1, r:json().a)
    assert.equal("application/json", r:header "content-type")
    assert.same({ "a=1", "b=2" }, r:header_lines "set-cookie")
    assert.equal("text", fetch.post("http://127.0.0.1:1/y/z", { json = {} }).body)
    assert.matches("nothing answers GET https://api.example/other", fails("refused", fetch.get("https://api.example/other", { retries = 0 })).message)
  end)

  it("prefers the most exact key", function()
    srv.test.upstream { ["* *"] = "any", ["GET *"] = "get", ["GET http://a.example/x"] = "exact", ["GET http://a.example/*"] = "host" }
    assert.equal("exact", fetch.get("http://a.example/x").body)
    assert.equal("host", fetch.get("http://a.example/y").body)
    assert.equal("get", fetch.get("http://b.example/").body)
    assert.equal("any", fetch.put("http://b.example/").body)
  end)

  it("shows a function what was sent, and takes its fault", function()
    local seen
    srv.test.upstream { ["* *"] = function(request)
      seen = request
      if request.method == "DELETE" then return nil, errors.coded("timeout", "late") end
      return { status = 201 }
    end }
    local pieces = { "a", "b" }
    assert.equal(201, fetch.post("http://a.example/x?y", { body = function() return table.remove(pieces, 1) end, headers = { X = "1" } }).status)
    assert.same({ "POST", "http://a.example/x?y", "ab", "1" }, { seen.method, seen.url, seen.body, seen.headers.x })
    fails("timeout", fetch.delete("http://a.example/"))
    assert.equal("", fetch.get("http://a.example/", { stream = true }):stream():all())
  end)

  it("lasts until the test is over", function()
    fails("refused", fetch.get("https://127.0.0.1:1/x", { retries = 0 }))
  end)

  it("refuses keys and answers that are none", function()
    assert.error_matches(function() srv.test.upstream { ["https://a/"] = "x" } end, "is no request")
    assert.error_matches(function() srv.test.upstream { ["GET https://a/"] = { stat = 1 } } end, 'unknown option "stat"')
  end)
end)
