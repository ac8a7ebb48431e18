local evaluate = require "srv.async.evaluate"
local srv = require "srv"

describe("evaluate", function()
  local printed

  local function run(text)
    local own = {}
    printed = own
    return evaluate(text, function(line)
      own[#own + 1] = line
      return true
    end, srv)
  end

  it("gives the values of an expression, or what statements return", function()
    assert.same({ true, "1", '"b"', "nil" }, { run "1, 'b', nil" })
    assert.same({ true, "2" }, { run " = 2" })
    assert.same({ true, "3" }, { run "local x = 3 return x" })
    assert.same({ true }, { run "local x = 3" })
  end)

  it("keeps names for the texts to come, and out of the app", function()
    run "kept = 7"
    assert.same({ true, "7" }, { run "kept" })
    assert.is_nil(rawget(_G, "kept"))
    run "_G.seen_by_all = 1"
    assert.equal(1, rawget(_G, "seen_by_all"))
    rawset(_G, "seen_by_all", nil)
  end)

  it("has the last value in _", function()
    run "6 * 7"
    run "local nothing"
    assert.same({ true, "43" }, { run "_ + 1" })
  end)

  it("prints to who asks, also later", function()
    run "print('a', nil, 1) later = print"
    assert.same({ "a\tnil\t1" }, printed)
    local first = printed
    run "later 'b'"
    assert.same({ "a\tnil\t1", "b" }, first)
    assert.same({}, printed)
  end)

  it("has srv, and may wait", function()
    assert.same({ true, "true" }, { run "srv.sleep(0.001) return srv.monotonic() > 0" })
  end)

  it("says what went wrong, with the lines that lead there", function()
    local ok, why = run "local function f()\n error 'boom'\nend\nf() return 1"
    assert.is_false(ok)
    assert.matches("^repl:2: boom\nstack traceback:\n", why)
    assert.matches("repl:4: in main chunk", why)
    assert.is_nil(why:find("srv/", 1, true))
    assert.same({ false, "repl:1: unexpected symbol near '='" }, { run "= = 1" })
    assert.matches("not here", select(2, run "srv.error(404, 'not here')"))
    assert.matches("^{ code = 7 }", select(2, run "error { code = 7 }"))
    assert.equal("nil", (select(2, run "error()"):match "^%a+"))
  end)

  it("is bounded as srv.base.inspect is", function()
    local _, shown = run "('x'):rep(1e6)"
    assert.is_true(#shown < 3000)
  end)
end)
