local srv = require "srv"
local crypto = srv.crypto

local function misuse_of(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok)
  assert.is_truthy(tostring(message):find("^[^:]*crypto_spec.lua:%d+: "), message)
  return (message:gsub("^[^:]*:%d+: ", ""))
end

describe("srv.crypto", function()
  it("hashes as the standards have it", function()
    assert.equal("900150983cd24fb0d6963f7d28e17f72", crypto.hash("md5", "abc"))
    assert.equal("a9993e364706816aba3e25717850c26c9cd0d89d", crypto.hash("sha1", "abc"))
    assert.equal("ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", crypto.hash("sha256", "abc", "base64"))
    assert.equal("ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0", crypto.hash("sha256", "abc", "base64url"))
    assert.equal(48, #crypto.hash("sha384", "abc", "raw"))
    assert.equal(128, #crypto.hash("sha512", ""))
  end)

  it("signs with a key (RFC 4231, case 2)", function()
    local text = "what do ya want for nothing?"
    assert.equal("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", crypto.hmac("sha256", "Jefe", text))
    assert.equal("af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
      crypto.hmac("sha384", "Jefe", text))
    assert.equal("164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fd"
      .. "caeab1a34d4a6b4b636e070a38bce737", crypto.hmac("sha512", "Jefe", text))
  end)

  it("blames a wrong word on the caller's line, and names the nearest", function()
    assert.equal('srv.crypto.hash: unknown algorithm "sha265", did you mean "sha256"?', misuse_of(function() crypto.hash("sha265", "") end))
    assert.equal('srv.crypto.hash: unknown encoding "bas64", did you mean "base64"?', misuse_of(function() crypto.hash("md5", "", "bas64") end))
    assert.equal("srv.crypto.hash: what is hashed must be a string, not a nil", misuse_of(function() crypto.hash("md5") end))
    assert.is_truthy(misuse_of(function() crypto.random(0) end):find "^srv.crypto.random: a number of bytes")
    assert.is_truthy(misuse_of(function() crypto.encode("raw", "") end):find "^srv.crypto.encode: unknown encoding")
  end)

  it("makes what nobody can guess", function()
    assert.equal(7, #crypto.random(7))
    assert.equal(65536, #crypto.random(65536))
    assert.are_not.equal(crypto.random(16), crypto.random(16))
    assert.equal(22, #crypto.token())
    assert.is_truthy(crypto.token(300):find "^[%w_-]+$")
  end)

  it("makes UUIDs that sort", function()
    local last = ""
    for _ = 1, 1000 do
      local id = crypto.uuid()
      assert.is_true(last < id)
      assert.is_truthy(id:find "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-7%x%x%x%-[89ab]%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$")
      last = id
    end
  end)

  it("compares", function()
    assert.is_true(crypto.equal("", ""))
    assert.is_true(crypto.equal("a\0b", "a\0b"))
    assert.is_false(crypto.equal("a\0b", "a\0c"))
    assert.is_false(crypto.equal("a", "ab"))
  end)

  it("encodes and decodes", function()
    for length = 0, 50 do
      local bytes = crypto.random(length + 1):sub(2)
      for _, enc in ipairs { "hex", "base64", "base64url" } do
        assert.equal(bytes, crypto.decode(enc, crypto.encode(enc, bytes)))
      end
    end
    local bytes, err = crypto.decode("hex", "0g")
    assert.is_nil(bytes)
    assert.equal("bad_encoding: this is not hex", tostring(err))
    assert.equal("bad_encoding", select(2, crypto.decode("base64", "YQ")).code)
  end)
end)

describe("what is large", function()
  local text, key = ("0123456789abcdef"):rep(200000), crypto.token(32)

  it("gives the same, beside the loop", function()
    local ticks = 0
    local ticker = srv.spawn(function()
      while true do
        srv.sleep(0)
        ticks = ticks + 1
      end
    end)
    local core = require "srv.core.crypto"
    for _, enc in ipairs { "hex", "base64", "base64url", "raw" } do
      assert.equal(core.hash("sha256", text, enc), crypto.hash("sha256", text, enc))
      assert.equal(core.hmac("sha512", key, text, enc), crypto.hmac("sha512", key, text, enc))
    end
    local sealed = assert(crypto.encrypt(key, text, "aad"))
    assert.is_true(text == crypto.decrypt(key, sealed, "aad"))
    assert.is_true(text == core.unseal(key, sealed, "aad"))
    assert.equal("forged", select(2, crypto.decrypt(key, sealed, "other")).code)
    assert.equal("forged", select(2, crypto.decrypt(key, sealed .. "!", "aad")).code)
    ticker:cancel()
    assert.is_true(ticks > 5)
  end)

  it("is done at once where nothing can wait", function()
    local digests = {}
    table.sort({ 1, 2 }, function(a, b)
      digests[#digests + 1] = crypto.hash("md5", text)
      return a < b
    end)
    assert.equal(crypto.hash("md5", text), digests[1])
  end)

  it("stops being wanted", function()
    for _ = 1, 20 do srv.race(function() return crypto.encrypt(key, text) end, function() end) end
    assert.is_string(crypto.encrypt(key, text))
  end)
end)

describe("sealed texts", function()
  local key = crypto.token(32)

  it("come back", function()
    for _, text in ipairs { "", "secret", ("x"):rep(100000) } do
      local sealed = crypto.encrypt(key, text)
      assert.is_truthy(sealed:find "^[%w_-]+$")
      assert.equal(text, crypto.decrypt(key, sealed))
    end
    assert.equal("t", crypto.decrypt(key, crypto.encrypt(key, "t", "user 7"), "user 7"))
  end)

  it("are forged when anything differs", function()
    local sealed = crypto.encrypt(key, "secret", "user 7")
    local function check(...)
      local text, err = crypto.decrypt(...)
      assert.is_nil(text)
      assert.equal("forged", err.code)
      assert.equal(400, err.status)
    end
    check(key, sealed, "user 8")
    check(key, sealed)
    check(crypto.token(32), sealed, "user 7")
    check(key, "")
    check(key, sealed .. "A", "user 7")
    check(key, sealed:sub(1, -2), "user 7")
    check(key, "no base64url!", "user 7")
    for i = 1, #sealed do
      local other = sealed:sub(i, i) == "A" and "B" or "A"
      check(key, sealed:sub(1, i - 1) .. other .. sealed:sub(i + 1), "user 7")
    end
  end)

  it("want a key that cannot be guessed", function()
    assert.equal("srv.crypto.encrypt: the key has 6 bytes and needs 32: make one with srv.crypto.token(32)",
      misuse_of(function() crypto.encrypt("secret", "") end))
    misuse_of(function() crypto.decrypt(("k"):rep(31), "") end)
  end)
end)

describe("passwords", function()
  it("are verified", function()
    local hash = assert(crypto.password_hash "open sesame")
    assert.equal("$argon2id$v=19$m=19456,t=2,p=1$", hash:sub(1, 31))
    assert.is_true(crypto.password_verify("open sesame", hash))
    assert.is_false(crypto.password_verify("Open sesame", hash))
  end)

  it("are computed beside the loop", function()
    local ticks = 0
    srv.all(function()
      local hashes = srv.map({ "a", "b", "c", "d" }, crypto.password_hash, { limit = 2 })
      assert.equal(4, #hashes)
    end, function()
      for _ = 1, 5 do
        srv.sleep(0.001)
        ticks = ticks + 1
      end
    end)
    assert.equal(5, ticks)
  end)

  it("stop being computed for who has gone", function()
    local many = {}
    for i = 1, 40 do many[i] = "password " .. i end
    local hashes, err = srv.timeout("1ms", srv.map, many, crypto.password_hash, { limit = 40 })
    assert.is_nil(hashes)
    assert.equal("timeout", err.code)
    assert.is_string(crypto.password_hash "the lane is free again")   -- and was not kept busy by those
  end)

  it("have a bound, and hashes must be ones", function()
    assert.equal("invalid", select(2, crypto.password_hash(("x"):rep(4097))).code)
    assert.equal("bad_hash", select(2, crypto.password_verify("a", "")).code)
    assert.equal("bad_hash", select(2, crypto.password_verify("a", ("x"):rep(5000))).code)
    misuse_of(function() crypto.password_verify("a") end)
  end)
end)
