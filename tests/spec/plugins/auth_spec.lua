local srv = require "srv"

local function client_of(...)
  local app = srv.app()
  app:use(...)
  app:get("/", function(req) return { user = req.state.user or srv.null } end)
  app:get("/refused", function() srv.error(401, "not you") end)
  app:get("/broken", function() error "broken" end)
  return srv.test(app)
end

local function basic(pair) return { Authorization = "Basic " .. srv.crypto.encode("base64", pair) } end

local EC_PRIVATE = [[
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

local BASIC = 'Basic realm="api", charset="UTF-8"'
local BEARER = 'Bearer realm="api"'

local function challenge_of(answer) return answer.headers["www-authenticate"] end

describe("srv.basic_auth", function()
  local users = { ann = "secret", bob = "p:with:colons", ["jörg"] = "pässword" }

  it("lets in whom it knows", function()
    local t = client_of(srv.basic_auth { users = users })
    for name, password in pairs(users) do
      t:get("/", { headers = basic(name .. ":" .. password) }):expect(200):expect { user = name }
    end
    for _, scheme in ipairs { "basic", "BASIC", "Basic " } do
      t:get("/", { headers = { Authorization = scheme .. " " .. srv.crypto.encode("base64", "ann:secret") } }):expect(200)
    end
  end)

  it("answers 401 with its challenge to all others, at every path", function()
    local t = client_of(srv.basic_auth { users = users })
    assert.equal(BASIC, challenge_of(t:get("/"):expect(401)))
    assert.equal(BASIC, challenge_of(t:get("/none"):expect(401)))
    assert.equal(BASIC, challenge_of(t:post("/"):expect(401)))
    for _, pair in ipairs { "ann:Secret", "ann:", "ann", "ann:secret2", "ann:secre", "eve:secret", ":", "", "bob:p", "ann:sec\0ret", "Ann:secret" } do
      assert.equal(BASIC, challenge_of(t:get("/", { headers = basic(pair) }):expect(401)))
    end
    for _, value in ipairs { "Basic", "Basic !!!", "Basic " .. ("A"):rep(8000), "Bearer x", "Digest a=b", "Basic YW5uOnNlY3JldA= x" } do
      assert.equal(BASIC, challenge_of(t:get("/", { headers = { Authorization = value } }):expect(401)))
    end
  end)

  it("asks a function, which may wait and gives the user", function()
    local t = client_of(srv.basic_auth { realm = 'a "b"', check = function(user, password, req)
      srv.sleep "1ms"
      if user == "away" then return nil, srv.error.new(503, "no database") end
      if user == "lost" then return nil, srv.error.new(404, "no row") end
      if user == "plain" then return password == "x" end
      return password == "x" and { name = user, path = req.path }
    end })
    t:get("/", { headers = basic "ann:x" }):expect { user = { name = "ann", path = "/" } }
    t:get("/", { headers = basic "plain:x" }):expect { user = "plain" }
    t:get("/", { headers = basic "plain:y" }):expect(401)
    assert.equal([[Basic realm="a \"b\"", charset="UTF-8"]], challenge_of(t:get("/", { headers = basic "ann:y" }):expect(401)))
    t:get("/", { headers = basic "lost:x" }):expect(401)
    assert.is_nil(challenge_of(t:get("/", { headers = basic "away:x" }):expect(503)))
  end)

  it("with optional = true lets in who has no credentials, not who has wrong ones", function()
    local t = client_of(srv.basic_auth { users = users, optional = true })
    t:get("/"):expect { user = srv.null }
    t:get("/", { headers = { Authorization = "Bearer x" } }):expect { user = srv.null }
    t:get("/", { headers = basic "ann:wrong" }):expect(401)
    t:get("/", { headers = basic "ann:secret" }):expect { user = "ann" }
  end)

  it("has its challenge on a 401 of a handler, and on no other status", function()
    local t, headers = client_of(srv.basic_auth { users = users }), basic "ann:secret"
    assert.equal(BASIC, challenge_of(t:get("/refused", { headers = headers }):expect(401)))
    for path, status in pairs { ["/"] = 200, ["/broken"] = 500, ["/none"] = 404 } do
      assert.is_nil(challenge_of(t:get(path, { headers = headers }):expect(status)))
    end
  end)

  it("stands on one route, too", function()
    local app = srv.app()
    app:get("/admin", srv.basic_auth { users = users }, function(req) return "hi " .. req.state.user end)
    app:get("/", function() return "x" end)
    local t = srv.test(app)
    t:get("/admin"):expect(401)
    t:get("/admin", { headers = basic "ann:secret" }):expect "hi ann"
    t:get("/"):expect(200)
  end)

  it("refuses options that let everybody in, or nobody", function()
    local function check() return true end
    for _, opts in ipairs {
      {}, { users = {} }, { users = { ann = "" } }, { users = { ann = 5 } }, { users = { "ann" } }, { users = { ["a:b"] = "x" } },
      { users = users, check = check }, { check = true }, { users = users, realm = "" }, { users = users, realm = "a\nb" }, { user = users },
    } do
      assert.error_matches(function() srv.basic_auth(opts) end, "^srv%.basic_auth: ")
    end
    assert.error_matches(function() srv.app():use(srv.basic_auth) end, "srv%.basic_auth must be called")
  end)
end)

describe("srv.bearer", function()
  local function check(token, req)
    srv.sleep "1ms"
    if token == "away" then return nil, srv.error.new(503, "no database") end
    return token == "good+/=" and { id = 7, path = req.path }
  end

  local function get(t, value, path) return t:get(path or "/", { headers = { Authorization = value } }) end

  it("lets in whose token is known", function()
    local t = client_of(srv.bearer { check = check })
    get(t, "Bearer good+/="):expect { user = { id = 7, path = "/" } }
    get(t, "bearer good+/="):expect(200)
  end)

  it("answers 401 without an error to those who come without a token", function()
    local t = client_of(srv.bearer { check = check })
    assert.equal(BEARER, challenge_of(t:get("/"):expect(401)))
    assert.equal(BEARER, challenge_of(get(t, "Basic YTpi"):expect(401)))
    assert.equal(BEARER, challenge_of(t:get("/none"):expect(401)))
    assert.equal(BEARER, challenge_of(get(t, "Bearer good+/=", "/refused"):expect(401)))
  end)

  it("says what is wrong with a token", function()
    local t = client_of(srv.bearer { check = check, realm = "shop" })
    local answer = get(t, "Bearer other"):expect(401):expect { code = "invalid_token" }
    assert.equal('Bearer realm="shop", error="invalid_token", error_description="this token is not known"', challenge_of(answer))
    for _, value in ipairs { "Bearer", "Bearer a b", 'Bearer "x"', "Bearer a,b", "Bearer =" } do
      answer = get(t, value):expect(400):expect { code = "invalid_request" }
      assert.is_truthy(challenge_of(answer):find 'error="invalid_request"')
    end
    assert.is_nil(challenge_of(get(t, "Bearer away"):expect(503)))
  end)

  it("with optional = true lets in who has none", function()
    local t = client_of(srv.bearer { check = check, optional = true })
    t:get("/"):expect { user = srv.null }
    get(t, "Bearer other"):expect(401)
    assert.error_matches(function() srv.bearer {} end, "^srv%.bearer: check")
    assert.error_matches(function() srv.bearer { check = check, relm = "x" } end, "did you mean")
  end)
end)

describe("srv.jwt", function()
  local KEY = ("k"):rep(32)

  local function token(claims, opts)
    opts = opts or {}
    return assert(srv.crypto.jwt_sign(claims, { key = opts.key or KEY, alg = opts.alg or "HS256", expires = opts.expires }))
  end

  local function get(t, text) return t:get("/", { headers = { Authorization = "Bearer " .. text } }) end

  local function jwt(opts)
    opts = opts or {}
    opts.key, opts.alg = opts.key or KEY, opts.alg or "HS256"
    return srv.jwt(opts)
  end

  it("lets in who has a genuine token; its claims are the user", function()
    local t = client_of(jwt())
    get(t, token { sub = "ann", n = 1 }):expect(200):expect { user = { sub = "ann", n = 1 } }
    assert.equal(BEARER, challenge_of(t:get("/"):expect(401)))
  end)

  it("refuses others, and says why", function()
    local t = client_of(jwt())
    local none = srv.crypto.encode("base64url", '{"alg":"none"}') .. "." .. srv.crypto.encode("base64url", '{"sub":"eve"}') .. "."
    for text, code in pairs {
      ["nonsense"] = "bad_token", [none] = "bad_alg", [token({}, { alg = "HS512", key = ("k"):rep(64) })] = "bad_alg",
      [token({}, { key = ("x"):rep(32) })] = "forged", [token { exp = srv.now() - 60 }] = "expired",
      [token { nbf = srv.now() + 60 }] = "not_yet", [token { aud = "others" }] = "bad_audience",
    } do
      local answer = get(t, text):expect(401):expect { code = code }
      assert.is_truthy(challenge_of(answer):find('^Bearer realm="api", error="invalid_token", error_description="[^"]+"$'), challenge_of(answer))
    end
    get(t, "a b"):expect(400)
  end)

  it("allows clocks to differ by half a minute, or as it is told", function()
    get(client_of(jwt()), token { exp = srv.now() - 20 }):expect(200)
    get(client_of(jwt { leeway = 0 }), token { exp = srv.now() - 20 }):expect(401)
  end)

  it("asks for issuer and audience", function()
    local t = client_of(jwt { issuer = "us", audience = "shop" })
    get(t, token { iss = "us", aud = { "news", "shop" } }):expect(200)
    get(t, token { iss = "them", aud = "shop" }):expect(401):expect { code = "bad_issuer" }
    get(t, token { iss = "us" }):expect(401):expect { code = "bad_audience" }
  end)

  it("reads a cookie where there is no Authorization", function()
    local t = client_of(jwt { cookie = "token" })
    t:get("/", { cookies = { token = token { sub = "ann" } } }):expect { user = { sub = "ann" } }
    t:get("/", { cookies = { token = "forged" } }):expect(401):expect { code = "bad_token" }
    t:get("/", { cookies = { token = token { sub = "ann" } }, headers = { Authorization = "Bearer " .. token { sub = "bob" } } })
      :expect { user = { sub = "bob" } }
    client_of(jwt()):get("/", { cookies = { token = token {} } }):expect(401)
  end)

  it("with optional = true lets in who has none", function()
    local t = client_of(jwt { optional = true, realm = "r" })
    t:get("/"):expect { user = srv.null }
    assert.is_truthy(challenge_of(get(t, "nonsense"):expect(401)):find '^Bearer realm="r"')
  end)

  it("takes public keys", function()
    local t = client_of(srv.jwt { key = EC_PUBLIC, alg = "ES256" })
    get(t, token({ sub = "ann" }, { key = EC_PRIVATE, alg = "ES256" })):expect { user = { sub = "ann" } }
    -- The public key is no secret: a token that was signed with it as one proves nothing.
    get(t, token({ sub = "eve" }, { key = ("k"):rep(32) })):expect(401):expect { code = "bad_alg" }
  end)

  it("refuses keys and algorithms that cannot be right", function()
    for _, opts in ipairs {
      { key = KEY }, { alg = "HS256" }, { key = "short", alg = "HS256" }, { key = KEY, alg = "none" }, { key = KEY, alg = "RS256" },
      { key = KEY, alg = { "HS256" } }, { key = KEY, alg = "HS256", leeway = -1 }, { key = KEY, alg = "HS256", audiences = "x" },
      { key = "-----BEGIN PUBLIC KEY-----\nAAAA", alg = "ES256" },
    } do
      assert.error_matches(function() srv.jwt(opts) end, "^srv%.jwt: ")
    end
    assert.error_matches(function() srv.jwt { key = KEY, alg = "HS256", cookie = "a b" } end, "no name for a cookie")
  end)
end)
