--- API, sections 1 and 15: what holds everywhere, and what an app is told of where it runs.
local srv = require "srv"

local function message_of(fn)
  local ok, raised = pcall(fn)
  return ok and "no error" or tostring(raised)
end

describe("rules that hold everywhere", function()
  it("nothing but srv's parts hang from srv, and the nearest is named", function()
    assert.is_truthy(message_of(function() return srv.scema end):find('s15_surroundings_spec.lua:%d+: .*did you mean "schema"?'))
  end)

  it("durations are seconds or texts, sizes bytes or texts", function()
    for text, seconds in pairs { ["250ms"] = 0.25, ["5s"] = 5, ["10m"] = 600, ["2h"] = 7200, ["7d"] = 604800, ["1.5s"] = 1.5 } do
      assert.equal(seconds, srv.options("x", { d = text }, { d = "duration" }).d, text)
    end
    for text, bytes in pairs { ["64KiB"] = 65536, ["1MiB"] = 1048576, ["2GiB"] = 2147483648 } do
      assert.equal(bytes, srv.options("x", { d = text }, { d = "bytes" }).d, text)
    end
    for _, text in ipairs { "5 parsecs", "-1s", "", "s", "1e3s", "nan", "inf" } do
      assert.is_truthy(message_of(function() srv.app { timeout = text } end):find("s15_surroundings_spec.lua:%d+: srv.app: "), text)
    end
    assert.is_truthy(message_of(function() srv.app { timeout = -1 } end):find("timeout"))
    assert.is_truthy(message_of(function() srv.app { timeout = 0 / 0 } end):find("timeout"))
    assert.is_truthy(message_of(function() srv.app { body_limit = "64Kib" } end):find("body_limit"))
    assert.is_truthy(message_of(function() srv.app "5s" end):find("s15_surroundings_spec.lua:%d+:"))
  end)

  it("the middle of a load may wait", function()
    srv.sleep(0.001)
    local app = srv.app()
    srv.sleep(0.001)
    app:get("/", function() return "x" end)
    srv.test(app):get("/"):expect("x")
  end)
end)

describe("surroundings", function()
  it("srv.env reads, checks by a rule, and names the variable but not its value", function()
    srv.test.env { S15_N = "7", S15_BAD = "many", S15_NONE = false, S15_FLAG = "on" }
    assert.equal("7", srv.env.S15_N)
    assert.is_nil(srv.env.S15_NONE)
    assert.equal(7, srv.env("S15_N", "integer 1..64 = 4"))
    assert.equal(4, srv.env("S15_NONE", "integer 1..64 = 4"))
    assert.equal(true, srv.env("S15_FLAG", "boolean"))
    for _, fn in ipairs {
      function() srv.env("S15_BAD", "integer") end, function() srv.env("S15_NONE", "string") end, function() srv.env("S15_N", "integer 8..") end,
    } do
      local message = message_of(fn)
      assert.is_truthy(message:find("s15_surroundings_spec.lua:%d+: environment variable S15_"), message)
      assert.is_nil(message:find("many"))
    end
  end)

  it("a rule that is none is blamed on the line that gave it", function()
    for _, fn in ipairs {
      function() srv.env("S15", "strng") end, function() srv.options("x", {}, { a = "strng" }) end, function() srv.options("x", 5, {}) end,
      function() srv.template.compile(5) end, function() srv.schema "strng" end, function() srv.schema.any_of("strng") end,
    } do assert.is_truthy(message_of(fn):find("s15_surroundings_spec.lua:%d+:"), message_of(fn)) end
  end)

  it("srv.root, dev, worker, config", function()
    assert.is_true(srv.root:sub(1, 1) == "/")
    assert.is_boolean(srv.dev)
    for _, name in ipairs { "id", "count", "pid", "generation" } do assert.is_number(srv.worker[name], name) end
    assert.is_truthy(message_of(function() srv.config.timeout = 1 end):find("s15_surroundings_spec.lua:%d+:"))
  end)

  it("a global is declared by srv.global; an undeclared one is an error with file and line", function()
    local set = loadstring("s15_undeclared = 1", "@s15_module.lua")
    assert.is_truthy(message_of(set):find('s15_module.lua:1: .*"s15_undeclared"'))
    srv.global("s15_declared", 1)
    loadstring("s15_declared = s15_declared + 1", "@s15_module.lua")()
    assert.equal(2, rawget(_G, "s15_declared"))
    rawset(_G, "s15_declared", nil)
    assert.is_nil(loadstring("return s15_unknown", "@s15_module.lua")())
  end)
end)

describe("static folders", function()
  local function client(opts, prefix)
    local app = srv.app()
    app:static(prefix or "/", "web/public", opts)
    return srv.test(app)
  end

  it("serve GET and HEAD, with validators and ranges; other methods are 405", function()
    local t = client()
    local whole = t:get("/hello.txt"):expect(200):expect("content-type", "text/plain; charset=utf-8")
    assert.is_string(whole.headers.etag)
    assert.is_string(whole.headers["last-modified"])
    t:head("/hello.txt"):expect(200):expect(""):expect("content-length", tostring(#whole.body))
    t:get("/hello.txt", { headers = { Range = "bytes=1-2" } }):expect(206):expect(whole.body:sub(2, 3))
      :expect("content-range", "bytes 1-2/" .. #whole.body)
    t:get("/hello.txt", { headers = { ["If-None-Match"] = whole.headers.etag } }):expect(304):expect("")
    t:post("/hello.txt"):expect(405):expect("allow", "^.*GET")
    t:get("/none.txt"):expect(404)
  end)

  it("never leave the folder and show no dotfiles", function()
    local t = client()
    for _, path in ipairs { "/../outside.txt", "/%2e%2e/outside.txt", "/..%2foutside.txt", "/dir/../../outside.txt", "/.secret", "/.git/config",
      "/hello.txt%00.png", "/%5c..%5coutside.txt", "//etc/passwd", "/hello.txt/", "/hello.txt/x" } do
      local answer = t:get(path)
      assert.is_true(answer.status == 404 or answer.status == 400, path .. " " .. answer.status)
    end
  end)

  it("take max_age, immutable, headers, download, etag", function()
    client { max_age = "1h" }:get("/hello.txt"):expect("cache-control", "^.*max%-age=3600")
    client { max_age = "1h", immutable = true }:get("/hello.txt"):expect("cache-control", "^.*immutable")
    local pattern = client { max_age = "1h", immutable = "%.css$" }
    assert.is_nil(pattern:get("/hello.txt").headers["cache-control"]:find("immutable"))
    client { headers = { ["X-Mine"] = "1" } }:get("/hello.txt"):expect("x-mine", "1")
    client { download = true }:get("/hello.txt"):expect("content-disposition", "^attachment")
    client { download = "%.zip$" }:get("/hello.txt"):expect("content-disposition", false)
    client { etag = false }:get("/hello.txt"):expect("etag", false)
    client():get("/hello.txt"):expect("cache-control", "^.*max%-age=0")
  end)

  it("take the options of the contract and refuse others on the caller's line", function()
    for name, value in pairs { index = "index.html", max_age = 0, immutable = false, fallback = "hello.txt", dotfiles = false,
      precompressed = true, etag = true, download = false, headers = {} } do
      assert.equal("no error", message_of(function() srv.app():static("/", "web/public", { [name] = value }) end), name)
    end
    for _, headers in ipairs { { ["X A"] = "v" }, { ["X-A"] = "a\r\nb" }, { "X-A" } } do
      local message = message_of(function() srv.app():static("/", "web/public", { headers = headers }) end)
      assert.is_truthy(message:find("s15_surroundings_spec.lua:%d+:"), message)
    end
    for name, value in pairs { max_age = "long", headers = "x", etag = 1, index = 5, immutable = 5, download = 5 } do
      local message = message_of(function() srv.app():static("/", "web/public", { [name] = value }) end)
      assert.is_truthy(message:find("s15_surroundings_spec.lua:%d+:"), name .. ": " .. message)
    end
  end)
end)
