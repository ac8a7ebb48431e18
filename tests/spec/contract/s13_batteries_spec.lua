--- API, section 13: srv.json, srv.log, srv.now(), srv.crypto, srv.fs, srv.exec.
local srv = require "srv"
local json = srv.json

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

describe("srv.json", function()
  it("arrays by keys 1..n, objects in byte order, empty is [] unless marked", function()
    assert.equal("[1,2]", json.encode { 1, 2 })
    assert.equal('{"B":1,"a":2,"b":3}', json.encode { a = 2, b = 3, B = 1 })
    assert.equal("[]", json.encode {})
    assert.equal("{}", json.encode(json.object {}))
    assert.equal("[]", json.encode(json.array {}))
    assert.equal('{"b":1,"a":2}', json.encode(json.object({ a = 2, b = 1 }, { "b", "a" })))
    assert.equal("{}", json.encode(json.decode "{}"))
    assert.equal("[]", json.encode(json.decode "[]"))
    assert.equal('[{"a":[]},{}]', json.encode(json.decode '[{"a":[]},{}]'))
  end)

  it("null is srv.null and truthy", function()
    assert.equal(srv.null, json.decode "null")
    assert.is_true(srv.null and true)
    assert.equal('{"a":null}', json.encode { a = srv.null })
    assert.equal(srv.null, json.decode('{"a":null}').a)
    assert.is_truthy(message_of(function() json.encode(nil) end):find("s13_batteries_spec.lua:%d+: .*srv.null"))
  end)

  it("mixed keys, NaN, infinity, functions, circles are misuse on the caller's line", function()
    local circle = {}
    circle[1] = circle
    for _, value in ipairs { { 1, a = 2 }, { [1] = 1, [3] = 3 }, 0 / 0, 1 / 0, print, circle, { [true] = 1 }, { [1.5] = 1 }, coroutine.create(print) } do
      local message = message_of(function() json.encode(value) end)
      assert.is_truthy(message:find("s13_batteries_spec.lua:%d+:"), message)
    end
    assert.is_truthy(message_of(function() json.encode({}, { prety = true }) end):find('s13_batteries_spec.lua:%d+: .*did you mean "pretty"'))
    assert.is_truthy(message_of(function() json.decode(5) end):find("s13_batteries_spec.lua:%d+:"))
  end)

  it("numbers read back as they were", function()
    for _, text in ipairs { "0.1", "1e+300", "123456789012345", "-0.5", "9007199254740991", "5e-324", "1.7976931348623157e+308" } do
      local value = json.decode(text)
      assert.equal(value, json.decode(json.encode(value)))
      assert.equal(tonumber(text), value)
    end
    assert.equal("9007199254740993", json.decode "9007199254740993")
    assert.equal("-123456789012345678901234567890", json.decode "-123456789012345678901234567890")
    assert.equal("9223372036854775807", json.encode(9223372036854775807LL))
    assert.equal("18446744073709551615", json.encode(18446744073709551615ULL))
    assert.equal("5", json.encode(5))
    assert.equal("100000000000000000000", json.encode(1e20):gsub("1e%+20", "100000000000000000000"), nil)
  end)

  it("decode refuses what is no JSON, with nil, err", function()
    for _, text in ipairs { "", "{", "[1,]", "{a:1}", "'x'", "01", "1.", ".5", "+1", "NaN", "tru", '"\1"', '"\\x"', "[1] 2", '{"a":1,}', '"\\ud800"', '"\255"', "//c\n1" } do
      local value, err = json.decode(text)
      assert.is_nil(value, text)
      assert.equal("bad_json", err.code)
    end
    assert.equal("bad_json", select(2, json.decode(("["):rep(65))).code)
    assert.is_truthy(json.decode(("["):rep(64) .. ("]"):rep(64)))
    assert.is_nil((json.decode("[[1]]", { depth = 1 })))
    assert.equal("\240\157\132\158", json.decode '"\\ud834\\udd1e"')
    assert.equal(false, json.decode "false")
  end)

  it("pretty is the same value", function()
    local pretty = json.encode({ a = { 1, 2 }, b = {} }, { pretty = true })
    assert.is_truthy(pretty:find "\n")
    assert.same({ a = { 1, 2 }, b = {} }, json.decode(pretty))
  end)

  it("escapes so that it may stand in a script, and keeps UTF-8", function()
    assert.equal('"ü\\n\\t\\"\\\\\\u0001"', json.encode "ü\n\t\"\\\1")
  end)
end)

describe("srv.log", function()
  it("has levels, fields, with()", function()
    local app = srv.app()
    app:get("/", function(req)
      srv.log.info("a", { k = 1 })
      srv.log.with({ mine = 2 }).warn("b", { k = 3 })
      req.log.error("c")
      return "x"
    end)
    local lines = srv.test(app):get("/").log
    assert.same({ "info", "a" }, { lines[1].level, lines[1].message })
    assert.equal(1, lines[1].fields.k)   -- secrets are masked on the way to the line: tests/unit/bind/llog_test.c
    assert.equal("warn", lines[2].level)
    assert.same({ "error", "c" }, { lines[3].level, lines[3].message })
  end)

  it("blames a message that is none", function()
    assert.is_truthy(message_of(function() srv.log.info() end):find("s13_batteries_spec.lua:%d+:"), message_of(function() srv.log.info() end))
    assert.is_truthy(message_of(function() srv.log.info("x", 5) end):find("s13_batteries_spec.lua:%d+:"), message_of(function() srv.log.info("x", 5) end))
  end)
end)

describe("time", function()
  it("srv.now() is seconds since 1970, srv.monotonic() goes on", function()
    assert.is_true(math.abs(srv.now() - os.time()) < 2)
    local from = srv.monotonic()
    srv.sleep(0.01)
    assert.is_true(srv.monotonic() > from)
  end)
end)

describe("srv.crypto", function()
  local crypto, key = srv.crypto, ("k"):rep(32)

  it("hash, hmac, encode and decode, in four encodings", function()
    assert.equal("900150983cd24fb0d6963f7d28e17f72", crypto.hash("md5", "abc"))
    for _, enc in ipairs { "hex", "base64", "base64url" } do
      assert.equal(crypto.hmac("sha256", "k", "s", "raw"), crypto.decode(enc, crypto.hmac("sha256", "k", "s", enc)))
      assert.equal("bytes", crypto.decode(enc, crypto.encode(enc, "bytes")))
    end
  end)

  it("random(n), token([bytes = 16]), uuid() v7, equal(a, b)", function()
    assert.equal(5, #crypto.random(5))
    assert.equal(16, #crypto.decode("base64url", crypto.token()))
    assert.equal(20, #crypto.decode("base64url", crypto.token(20)))
    assert.equal("7", crypto.uuid():sub(15, 15))
    assert.is_true(crypto.equal("a", "a"))
  end)

  it("encrypt(key, s, [aad]) and decrypt, password_hash and password_verify, jwt_sign and jwt_verify", function()
    assert.equal("s", crypto.decrypt(key, crypto.encrypt(key, "s")))
    assert.equal("s", crypto.decrypt(key, crypto.encrypt(key, "s", "aad"), "aad"))
    assert.is_true(crypto.password_verify("s", crypto.password_hash "s"))
    local token = crypto.jwt_sign({ sub = "7" }, { key = key, alg = "HS256", expires = "1m" })
    assert.equal("7", crypto.jwt_verify(token, { key = key, alg = "HS256" }).sub)
  end)
end)

describe("srv.fs", function()
  it("read, write, append, stat, list, mkdir, remove, rename, copy, touch, temp, open", function()
    local fs, folder = srv.fs, os.tmpname() .. ".folder"
    local function path(name) return folder .. "/" .. name end
    assert.is_true(fs.mkdir(folder))
    assert.is_true(fs.write(path "a", "one\n"))
    assert.is_true(fs.append(path "a", "two\n"))
    assert.equal("too_large", select(2, fs.read(path "a", 7)).code)
    assert.equal("one\ntwo\n", fs.read(path "a", 8))
    local st = fs.stat(path "a")
    assert.same({ 8, "file", "string", "number" }, { st.size, st.kind, type(st.mode), type(st.mtime) })
    assert.is_true(fs.copy(path "a", path "b"))
    assert.is_true(fs.rename(path "b", path "c"))
    assert.is_true(fs.touch(path "d"))
    assert.same({ "a", "c", "d" }, fs.list(folder))
    local file = assert(fs.open(path "a", "r+"))
    assert.equal("one", file:line())
    assert.is_true(file:write "TWO")
    file:seek "set"
    assert.equal("one\nTWO\n", file:all())
    file:close()
    assert.is_string(assert(fs.temp()).path)
    assert.is_true(fs.remove(folder, { recursive = true }))
    assert.equal("not_found", select(2, fs.list(folder)).code)
  end)
end)

describe("srv.exec", function()
  it("exec(argv, [opts]) -> { status, stdout, stderr }", function()
    local result = srv.exec({ "sh", "-c", "cat; echo $A >&2; pwd; exit 4" }, { input = "in\n", cwd = "/", env = { A = "a" }, timeout = "20s" })
    assert.same({ status = 4, stdout = "in\n/\n", stderr = "a\n" }, result)
    assert.equal("timeout", select(2, srv.exec({ "sleep", "9" }, { timeout = "1ms" })).code)
    assert.equal("too_large", select(2, srv.exec({ "yes" }, { limit = "1KiB" })).code)
    assert.equal("not_found", select(2, srv.exec { "no-such-program" }).code)
  end)

  it("exec.start streams", function()
    local process = assert(srv.exec.start { "cat" })
    assert.is_true(process.stdin:write "a\n")
    assert.equal("a", process.stdout:line())
    assert.is_true(process:kill())
    assert.equal("SIGTERM", process:wait())
  end)
end)
