local srv = require "srv"
local suggest = require "srv.base.suggest"

describe("suggest", function()
  it("finds a word that was misspelt by one letter more, less, other or swapped", function()
    local known = { "timeout", "slash", "body_limit" }
    assert.equal("timeout", suggest.nearest("time_out", known))
    assert.equal("timeout", suggest.nearest("timeot", known))
    assert.equal("slash", suggest.nearest("slach", known))
    assert.equal("slash", suggest.nearest("slahs", known))
  end)

  it("finds nothing where nothing is near", function()
    assert.is_nil(suggest.nearest("prefix", { "timeout", "slash" }))
  end)

  it("takes the first in byte order of two that are equally near", function()
    assert.equal("bat", suggest.nearest("cat", { "hat", "bat", "rat" }))
  end)

  it("does not look at words that nobody mistyped", function()
    local long = ("x"):rep(100000)
    assert.is_nil(suggest.nearest(long, { long .. "y" }))
  end)

  it("gives a hint that a message can end with", function()
    assert.equal(', did you mean "slash"?', suggest.hint("slahs", { "slash" }))
    assert.equal("", suggest.hint("other", { "slash" }))
  end)
end)

--- What is logged of the error that FN raises in a handler with a session.
local function told(fn)
  local app = srv.app()
  app:use(srv.session())
  app:get("/", fn)
  return srv.test(app):get("/"):expect(500).log[1].fields.err.message
end

describe("a name of another framework", function()
  it("says how it is written here, at the app's line", function()
    local db = srv.test.db { migrations = false }
    local calls = {
      ['req:get is another framework\'s name; here it is: req:header "name"'] = function(req) req:get "Host" end,
      ["res:sendStatus is another framework's name; here it is: return nil, 204"] = function(_, res) res:sendStatus(204) end,
      ["here it is: res:status(201)"] = function(_, res) res:code(201) end,
      ["here it is: res:header"] = function(_, res) res.set("A", "b") end,
      ["app:register is another framework's name; here it is: app:use(plugin), or app:mount(path, router)"] =
        function() srv.app():register(print) end,
      ["here it is: app:delete(path, fn)"] = function() srv.router():del("/", print) end,
      ["db:all is another framework's name; here it is: db:query(sql, ...)"] = function() db:all "select 1" end,
      ["here it is: req.session:rotate()"] = function(req) req.session:regenerate() end,
      ["srv.json.stringify is another framework's name; here it is: srv.json.encode(v)"] = function() srv.json.stringify {} end,
    }
    for want, fn in pairs(calls) do
      local message = told(fn)
      assert.truthy(message:find(want, 1, true), message)
      assert.matches("suggest_spec.lua:%d+:", message)
    end
  end)

  it("may be a field of the app's own, and any other name is nil as ever", function()
    local app = srv.app()
    app:use(srv.session())
    app:get("/", function(req, res)
      req.get, res.code = "mine", 7
      return { req.get, res.code, req.user == nil, res.locals == nil, app.locals == nil, req.session.user == nil }
    end)
    srv.test(app):get("/"):expect(200):expect { "mine", 7, true, true, true, true }
    assert.is_nil(srv.json.pretty)
  end)
end)
