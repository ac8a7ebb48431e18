local srv = require "srv"
local crypto, json = srv.crypto, srv.json

local RSA = [[
-----BEGIN PRIVATE KEY-----
MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQC7QfYXcwo5c4xH
tllJ70xzqNrTUSwQBVO7Dmxzm7bcxHVwJc4Dso70EhWwGQyA1GkmoEGAMLGE3Pp6
MuJUbls8BaZPzEB1H0UNXTqksOdeEt8DMnJUgW5H9foNi9hQFvWbPzs9tGLk0ygm
rQVPRxP7uNapaw5XaCdsQ3yk3WcGdTN1WNl6XLUzTV7suO+2Wbz8hakagAmEiKoP
gcn0uaHSHunn4rUyHo6STv7K2C5xufXa35udUFlIPeTnEKN7kE+idloKm+XHkkts
BI6TiRMTC78lhZ4WdnYe+ySLJET28xqqbLxNZMNlB/CnXn6DP1ZfI5JeNOm0mrWl
2ffrEe03AgMBAAECggEAFUwW5BXbvNWtHQmFNYkiMH6s3J8nxsQEVjWkFLCfZz5v
fjYegdcmC7ue0ddsz54uPgwN8bltXIdmyXfOEVI3zXzLAdpgyQapwNpbQsMynUVs
2HKSrupwPij2ATe9fhEOaqi8tnOJ/S0dgkCSu7CBelNMaW+umDb//NU0G5VpaUIV
/VJj32AEc/K1TzMzjJKa/QT2HSI17/XquSCfRDIPd9YaM90afW2f8kMcQ7J8tiw8
0jm/HcmB2i44MnqdWtauICVNmBLjcN0Ql4xKONxZ0qszQPVJZgKK3P8W/JinBCSr
C6PzCgRHJk3RAIoiURrhAUY75vO0TLh10VCHhSOPEQKBgQDiOjWShVSPKQWF7Rj1
olTLeo7QzY+xLx6oGcNf2gbszPXnChX8EBIGcDcL8P3PA+/8Z8cP19x5iLoj8FqR
rdZfMeR1FvcVNKT/5d78F2iOxBbaIi9liuVgoKv52RmFbhd4aaxRLEGoIFSoF2JG
k1xiYw9ebpbVnT+4s/rymf4xXwKBgQDT5tRVQ6/UTIzuNzxThYx/T26pD41huhvT
Qo0pMpGEm6SELa1GAAI0LHmzZgaMyb6+XvA/OD+OJ2VbQQ2E2HPOkdAmF5wha5ta
l5NQYzIFYNDECTD6ZHvLSeBv+y0MvSdzZSKZs//FTfDAW9sC5j1760C7Qyu18nE2
ylbKDDkbKQKBgQDQzj1oUdwsjwZkCOWCwyRU83giTbmVJxK6wZzNOeYuZzeI2oxU
LVkVzDlisjrx+oZliDv56Zm8K3DzfwN5duRo1Roy4NGKJx8serWIJOsC6wbUq7zn
kn4I5AQYBkRCHc1X/OFpwtmPHthEleDFl3or7Zbf6F8cJ5oLF0RG68/tLQKBgFN1
UqPSaOogzFD2iFgM/W0XB+qmKXUYK+VlDNvxAsdL1dwJcXlkf3m1GqnBwUqqGuo3
0j/UE5QViCIM2Ro9dj8hxu151xCCpUlk8axzpTvhCdhsFlJISUmj6zWvo+qkhWk5
qAsJje9T50Kb6wKVVBn+ahxXNFwRBO4je1NQxR0hAoGBAIrPtaDCAKph5hXb8jI0
dUKmOnAYXja/bGbplirXc5xeYbp698Ik8lr3tT7C9oE5mk69Hrb1xpp/GVrTiKrL
C8MNx0h8BhgN0Q6qAN6yPtI18CwrVSw/m8bOTj981c02LpVlF1in88QtA8yjN9Ul
fAVe6BLcX0ylO2qYvAotWEQC
-----END PRIVATE KEY-----
]]
local RSA_PUBLIC = [[
-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu0H2F3MKOXOMR7ZZSe9M
c6ja01EsEAVTuw5sc5u23MR1cCXOA7KO9BIVsBkMgNRpJqBBgDCxhNz6ejLiVG5b
PAWmT8xAdR9FDV06pLDnXhLfAzJyVIFuR/X6DYvYUBb1mz87PbRi5NMoJq0FT0cT
+7jWqWsOV2gnbEN8pN1nBnUzdVjZely1M01e7Ljvtlm8/IWpGoAJhIiqD4HJ9Lmh
0h7p5+K1Mh6Okk7+ytgucbn12t+bnVBZSD3k5xCje5BPonZaCpvlx5JLbASOk4kT
Ewu/JYWeFnZ2HvskiyRE9vMaqmy8TWTDZQfwp15+gz9WXyOSXjTptJq1pdn36xHt
NwIDAQAB
-----END PUBLIC KEY-----
]]
local EC = [[
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIFvrZvEO2K/UeHJI+D6SLJfgubOV89tNQSf48ypQZrI0oAoGCCqGSM49
AwEHoUQDQgAE3sdKtVdrDZcjA9zU9jO4+9WRdfmA40CIHKGvZuCv02X/3rqzRWzV
sxeSjkBI62qTOczqxv7jfs8UHREO+ymcOg==
-----END EC PRIVATE KEY-----
]]
local EC_PUBLIC = [[
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE3sdKtVdrDZcjA9zU9jO4+9WRdfmA
40CIHKGvZuCv02X/3rqzRWzVsxeSjkBI62qTOczqxv7jfs8UHREO+ymcOg==
-----END PUBLIC KEY-----
]]

local SECRET = ("s"):rep(64)

local function misuse_of(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok)
  assert.is_truthy(tostring(message):find("^[^:]*jwt_spec.lua:%d+: "), message)
  return (message:gsub("^[^:]*:%d+: ", ""))
end

local function verify(token, opts)
  local given = { alg = "HS256", key = SECRET }
  for name, value in pairs(opts or {}) do given[name] = value end
  return crypto.jwt_verify(token, given)
end

local function sign(claims, opts)
  local given = { alg = "HS256", key = SECRET }
  for name, value in pairs(opts or {}) do given[name] = value end
  return assert(crypto.jwt_sign(claims, given))
end

local function refused(code, token, opts)
  local claims, err = verify(token, opts)
  assert.is_nil(claims)
  assert.equal(code, err.code)
  assert.equal(401, err.status)
end

--- A token with any head, signed as HS256.
local function raw(head, claims, key)
  local text = crypto.encode("base64url", head) .. "." .. crypto.encode("base64url", claims)
  return text .. "." .. crypto.hmac("sha256", key or SECRET, text, "base64url")
end

describe("a token", function()
  it("of RFC 7515, A.1, is genuine, and expired in 2011", function()
    local key = crypto.decode("base64url", "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")
    local token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
      .. "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ."
      .. "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    refused("expired", token, { key = key })
    local claims = assert(verify(token, { key = key, leeway = "36500d", issuer = "joe" }))
    assert.is_true(claims["http://example.com/is_root"])
    refused("forged", token:gsub("k$", "o"), { key = key })
  end)

  it("comes back with its claims, by every algorithm", function()
    for alg, keys in pairs {
      HS256 = { SECRET, SECRET }, HS384 = { SECRET, SECRET }, HS512 = { SECRET, SECRET },
      RS256 = { RSA, RSA_PUBLIC }, RS384 = { RSA, RSA_PUBLIC }, RS512 = { RSA, RSA_PUBLIC },
      ES256 = { EC, EC_PUBLIC },
    } do
      local token = sign({ sub = "7", roles = { "admin" } }, { alg = alg, key = keys[1] })
      local claims = assert(verify(token, { alg = alg, key = keys[2] }))
      assert.equal("7", claims.sub)
      assert.equal("admin", claims.roles[1])
      assert.is_true(math.abs(claims.iat - srv.now()) < 60)
      refused("forged", token:gsub("(%.[^.]*%.)(.)", function(dots, c) return dots .. (c == "A" and "B" or "A") end), { alg = alg, key = keys[2] })
    end
  end)

  it("is bound to the verifier's algorithm", function()
    local by_rsa = sign({}, { alg = "RS256", key = RSA })
    refused("bad_alg", by_rsa)
    refused("bad_alg", sign {}, { alg = "HS512" })
    refused("bad_alg", raw('{"alg":"none"}', "{}"))
    refused("bad_alg", raw('{"alg":"None"}', "{}"))
    refused("bad_alg", raw('{"alg":["HS256"]}', "{}"))
    refused("bad_alg", raw("{}", "{}"))
    -- the old trick: the public key as HMAC's secret
    refused("bad_alg", raw('{"alg":"HS256"}', "{}", RSA_PUBLIC), { alg = "RS256", key = RSA_PUBLIC })
    assert.equal("srv.crypto.jwt_verify: HS256 takes a secret, and this is a PEM key",
      misuse_of(function() verify(by_rsa, { key = RSA_PUBLIC }) end))
    assert.equal("srv.crypto.jwt_verify: RS256 takes a key in PEM (-----BEGIN ...)",
      misuse_of(function() verify(by_rsa, { alg = "RS256" }) end))
  end)

  it("without a signature, or with half of it, is refused", function()
    local token = sign {}
    refused("forged", (token:gsub("[^.]*$", "")))
    refused("forged", token:sub(1, -4))   -- a whole number of bytes
    refused("bad_token", (token:gsub("%.[^.]*$", "")))
  end)

  it("has a time", function()
    local now = math.floor(srv.now())
    assert.equal(now + 300, assert(verify(sign({ iat = now }, { expires = "5m" }))).exp)
    refused("expired", sign { exp = now - 1 })
    assert.is_truthy(verify(sign { exp = now - 1 }, { leeway = "1m" }))
    refused("not_yet", sign { nbf = now + 60 })
    assert.is_truthy(verify(sign { nbf = now + 60 }, { leeway = "2m" }))
    refused("not_yet", sign { iat = now + 600 })
    refused("bad_token", sign { exp = "tomorrow" })
    refused("bad_token", sign { nbf = srv.null })
  end)

  it("has an issuer and an audience", function()
    assert.is_truthy(verify(sign { iss = "a", aud = "b" }, { issuer = "a", audience = "b" }))
    assert.is_truthy(verify(sign { aud = { "c", "b" } }, { audience = "b" }))
    refused("bad_issuer", sign { iss = "a" }, { issuer = "b" })
    refused("bad_issuer", sign {}, { issuer = "b" })
    refused("bad_audience", sign { aud = { "c", "d" } }, { audience = "b" })
    refused("bad_audience", sign {}, { audience = "b" })
    refused("bad_audience", sign { aud = "b" })
  end)

  it("is nothing else", function()
    for _, text in ipairs { "", ".", "..", "a.b.c", "a.b.c.d", ("a"):rep(20000), "e30.e30.", "\0.\0.\0" } do
      local claims, err = verify(text)
      assert.is_nil(claims)
      assert.equal(401, err.status)
    end
    local token = sign {}
    refused("bad_token", token .. "=")
    refused("bad_token", token .. " ")
    refused("bad_token", token .. "\n")
    refused("bad_token", raw('{"alg":"HS256","crit":["exp"]}', "{}"))
    refused("bad_token", raw('["HS256"]', "{}"))
    refused("bad_token", raw('{"alg":"HS256"}', "[]"))
    refused("bad_token", raw('{"alg":"HS256"}', "7"))
    refused("bad_token", raw('{"alg":"HS256"}', '{"exp":1'))
  end)

  it("of a broken key is nobody's fault but the key's", function()
    local token, err = crypto.jwt_sign({}, { alg = "RS256", key = EC })
    assert.is_nil(token)
    assert.equal("bad_key: RS256 wants an RSA key", tostring(err))
    local claims, fault = verify(sign({}, { alg = "RS256", key = RSA }), { alg = "RS256", key = "-----BEGIN PUBLIC KEY-----\nAAAA" })
    assert.is_nil(claims)
    assert.equal("bad_key", fault.code)
    assert.equal(500, fault.status)
  end)

  it("wants to be told how", function()
    assert.equal('srv.crypto.jwt_sign: say which algorithm, as in { alg = "HS256" }', misuse_of(function() crypto.jwt_sign({}, { key = SECRET }) end))
    assert.equal('srv.crypto.jwt_verify: unknown algorithm "HS265", did you mean "HS256"?', misuse_of(function() verify("", { alg = "HS265" }) end))
    assert.is_truthy(misuse_of(function() verify("", { alg = "none" }) end):find 'unknown algorithm "none"')
    assert.equal("srv.crypto.jwt_sign: the key has 6 bytes, and HS256 needs 32: make one with srv.crypto.token(32)",
      misuse_of(function() sign({}, { key = "secret" }) end))
    assert.is_truthy(misuse_of(function() verify("", { expires = 1 }) end):find 'unknown option "expires"')
    misuse_of(function() sign { 1, 2 } end)
    misuse_of(function() verify(nil) end)
  end)

  it("can be read by anybody", function()
    local claims = sign({ sub = "7", iat = 1 }):match "%.([^.]*)%."
    assert.equal('{"iat":1,"sub":"7"}', json.encode(json.decode(crypto.decode("base64url", claims))))
  end)
end)
