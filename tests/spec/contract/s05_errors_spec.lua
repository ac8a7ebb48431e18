--- API, section 5: error objects, and what becomes of them.
local srv = require "srv"

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

local function get(fn, opts)
  local app = srv.app()
  app:get("/x", fn)
  return srv.test(app):get("/x", opts)
end

describe("error objects", function()
  it("have fields that follow from the status unless given", function()
    local err = srv.error.new(404)
    assert.same({ 404, "not_found", "Not Found", "Not Found", true }, { err.status, err.code, err.message, err.title, err.expose })
    assert.is_false(srv.error.new(500).expose)
    local full = srv.error.new(503, "try later", { code = "restocking", headers = { ["Retry-After"] = 7 }, data = { a = 1 },
      errors = {}, cause = err, expose = true })
    assert.equal("restocking", full.code)
    assert.equal(err, full.cause)
    assert.is_true(full.expose)
    assert.equal("restocking: try later; caused by not_found: Not Found", tostring(full))
  end)

  it("are asked by is(), also by code", function()
    local err = srv.error.new(404)
    assert.is_true(srv.error.is(err))
    assert.is_true(srv.error.is(err, "not_found"))
    assert.is_false(srv.error.is(err, "conflict"))
    assert.is_false(srv.error.is "text")
    assert.is_false(srv.error.is { status = 404 })
    assert.is_false(srv.error.is(nil))
  end)

  it("make misuse of a bad status or field, on the caller's line", function()
    for _, fn in ipairs {
      function() srv.error(200) end, function() srv.error.new "x" end, function() srv.error.new(404.5) end,
      function() srv.error.new(404, "x", { status = 200 }) end, function() srv.error.new(404, "x", 5) end,
    } do assert.is_truthy(message_of(fn):find("s05_errors_spec.lua:%d+:"), message_of(fn)) end
    assert.is_truthy(message_of(function() srv.error.new(404, "x", { cose = "y" }) end):find('did you mean "cause"?', 1, true)
      or message_of(function() srv.error.new(404, "x", { cose = "y" }) end):find('did you mean "code"?', 1, true))
  end)

  it("are raised as they are by assert", function()
    local err = srv.error.new(409, "taken")
    local ok, raised = pcall(function() _G.assert(nil, err) end)   -- Lua's, not busted's
    assert.is_false(ok)
    assert.equal(err, raised)
    get(function() _G.assert(nil, err) end):expect(409):expect { detail = "taken" }
  end)
end)

describe("what is raised becomes one", function()
  it("a string or nil is 500 lua, a table with status is adopted", function()
    local app, seen = srv.app(), {}
    app:error(function(err) seen[#seen + 1] = err.code return "x", err.status end)
    app:get("/s", function() error "text" end)
    app:get("/n", function() error(nil) end)
    app:get("/t", function() error { status = 409, message = "m", code = "mine" } end)
    app:get("/u", function() error { no = "status" } end)
    app:get("/w", function() error { status = 404.5 } end)
    app:get("/o", function() error { status = 200 } end)
    app:get("/f", function() error(print) end)
    local t = srv.test(app)
    t:get("/s"):expect(500)
    t:get("/n"):expect(500)
    t:get("/t"):expect(409)
    t:get("/u"):expect(500)
    t:get("/w"):expect(500)
    t:get("/o"):expect(500)
    t:get("/f"):expect(500)
    assert.same({ "lua", "lua", "mine", "lua" }, { unpack(seen, 1, 4) })
  end)

  it("has its trace through coroutines, and the request's id", function()
    local app, seen = srv.app(), nil
    app:error(function(err) seen = err end)
    app:get("/", function()
      local inner = coroutine.wrap(function() srv.sleep(0) error "deep" end)
      inner()
    end)
    local answer = srv.test(app):get("/"):expect(500)
    assert.is_truthy(seen.trace:find("s05_errors_spec.lua"))
    assert.equal(seen.request_id, answer:json().request_id)
  end)

  it("keeps an app's own error object unwritten", function()
    local constant = srv.error.new(404, "kept")
    local app = srv.app()
    app:get("/", function() error(constant, 0) end)
    srv.test(app):get("/"):expect(404)
    assert.is_nil(rawget(constant, "request_id"))
    assert.is_nil(rawget(constant, "trace"))
  end)
end)

describe("the answer without a handler", function()
  it("is problem+json, or HTML by Accept, with the fields of RFC 9457", function()
    local answer = get(function() srv.error(409, "taken", { code = "mine", data = { holder = "ann" }, errors = { { path = "/a" } } }) end)
    answer:expect(409):expect("content-type", "application/problem+json")
      :expect { type = "about:blank", title = "Conflict", status = 409, detail = "taken", code = "mine", holder = "ann", errors = { { path = "/a" } } }
    assert.is_string(answer:json().request_id)
    local html = get(function() srv.error(409, "<taken>") end, { headers = { Accept = "text/html" } })
    html:expect(409):expect("content-type", "^text/html")
    assert.is_nil(html.body:find("<taken>", 1, true))
    assert.is_truthy(html.body:find("&lt;taken&gt;", 1, true))
  end)

  it("tells of a 5xx the title and the request id, no more", function()
    local answer = get(function() srv.error(500, "secret", { code = "inner", data = { secret = 1 }, errors = { { path = "/s" } } }) end)
    assert.same({ "Internal Server Error", 500 }, { answer:json().title, answer:json().status })
    assert.is_nil(answer.body:find("secret", 1, true))
    assert.is_string(answer:json().request_id)
    local html = get(function() error "secret" end, { headers = { Accept = "text/html" } })
    assert.is_nil(html.body:find("secret", 1, true))
    assert.is_truthy(html.body:find("Internal Server Error", 1, true))
  end)

  it("has the error's headers", function()
    get(function() srv.error(503, "try later", { headers = { ["Retry-After"] = 7 } }) end):expect(503):expect("retry-after", "7")
  end)

  it("cannot be misled by an error's data", function()
    get(function() srv.error(409, "x", { data = { status = 200, title = "fine", code = "fine" } }) end)
      :expect(409):expect { status = 409, title = "Conflict", code = "conflict" }
  end)

  it("cannot be injected by an error's headers", function()
    local answer = get(function() srv.error(409, "x", { headers = { ["X-A"] = "a\r\nX-Evil: 1" } }) end)
    assert.is_true(answer.status >= 400)
    assert.is_nil(answer.headers["x-evil"])
  end)
end)

describe("hook error", function()
  it("sees each error once, also those that no answer can tell of any more", function()
    local app, codes = srv.app(), {}
    app:hook("error", function(err) codes[#codes + 1] = err.code end)
    app:use(function(_, _, next) return next() end)
    app:get("/raised", function() srv.error(409) end)
    app:get("/late", function(_, res)
      res:write "a"
      srv.error(500, "late", { code = "late" })
    end)
    app:get("/twice", function(_, res)
      res:text "a"
      return "b"
    end)
    app:get("/cut", function()
      local n = 0
      return function()
        n = n + 1
        if n == 1 then return "a" end
        return nil, srv.error.new(502)
      end
    end)
    local t = srv.test(app)
    t:get("/raised"):expect(409)
    assert.is_true(t:get("/late").cut)
    t:get("/twice"):expect(200):expect("a")
    assert.is_true(t:get("/cut").cut)
    t:get("/none"):expect(404)
    assert.same({ "conflict", "late", "answered_twice", "bad_gateway", "not_found" }, codes)
  end)
end)

describe("app:error", function()
  it("answers with what it returns, its status, or the error's", function()
    local app = srv.app()
    app:error(function(err, req, res)
      if req.query.res then res:status(418):json { by = "res" } return end
      if req.query.plain then return { by = "plain" } end
      if req.query.none then return end
      return { error = err.expose and err.message or err.title }, err.status
    end)
    app:get("/", function(req) srv.error(tonumber(req.query.s) or 409, "message") end)
    local t = srv.test(app)
    t:get("/"):expect(409):expect { error = "message" }
    t:get("/?s=503"):expect(503):expect { error = "Service Unavailable" }
    t:get("/?res=1"):expect(418):expect { by = "res" }
    t:get("/?plain=1"):expect(409):expect { by = "plain" }
    t:get("/?none=1"):expect(409):expect("content-type", "application/problem+json")
  end)

  it("sees 404 and 405 of paths without a route, validation and bodies", function()
    local app, codes = srv.app(), {}
    app:error(function(err) codes[#codes + 1] = err.code return "x", err.status end)
    app:post("/x", { body = { a = "string" } }, function() return "x" end)
    local t = srv.test(app)
    t:get("/none"):expect(404)
    t:get("/x"):expect(405):expect("allow", "^.*POST")
    t:post("/x", { json = {} }):expect(400)
    t:post("/x", { body = "{", headers = { ["Content-Type"] = "application/json" } }):expect(400)
    assert.same({ "not_found", "method_not_allowed", "invalid", "bad_json" }, codes)
  end)
end)
