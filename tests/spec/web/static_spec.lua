local env = require "srv.core.env"
local srv = require "srv"

local FOLDER = "web/public"

local function client_of(opts, prefix)
  local app = srv.app()
  app:static(prefix or "/static", FOLDER, opts)
  return srv.test(app)
end

describe("app:static", function()
  it("serves files with validators, type and length", function()
    local t = client_of()
    t:get("/static/hello.txt"):expect(200):expect("hello static file\n"):expect("content-type", "text/plain; charset=utf-8")
      :expect("content-length", "18"):expect("accept-ranges", "bytes"):expect("cache-control", "public, max-age=0")
      :expect("etag", '^W?/?"'):expect("last-modified", "GMT$" and "^%a+, ")
    t:head("/static/hello.txt"):expect(200):expect(""):expect("content-length", "18")
    t:get("/static/a%20b.txt"):expect("name with space")
  end)

  it("serves a folder by its index, with its slash", function()
    local t = client_of()
    t:get("/static/"):expect(200):expect("content-type", "text/html; charset=utf-8")
    t:get("/static/dir/"):expect("in dir")
    t:get("/static/dir?x=1"):expect(301):expect("location", "/static/dir/?x=1")
    t:get("/static/empty/"):expect(404)
    t:get("/static/hello.txt/"):expect(404)
    client_of({ index = false }):get("/static/dir/"):expect(404)
  end)

  it("hides dotfiles and never leaves the folder", function()
    local t = client_of()
    t:get("/static/.env"):expect(404)
    for _, path in ipairs { "/static/../outside.txt", "/static/..%2foutside.txt", "/static/dir/..%2f..%2foutside.txt", "/static//etc/passwd" } do
      t:get(path):expect(function(r) return r.status == 404 or r.status == 400 end)
    end
    t:get("/static/a%00.txt"):expect(400)
    t:get("/static/a%zz.txt"):expect(400)
    t:get("/other/a%zz.txt"):expect(404)
  end)

  it("answers ranges and conditions", function()
    local t = client_of()
    local function range(value) return t:get("/static/digits.bin", { headers = { Range = value } }) end
    range("bytes=0-3"):expect(206):expect("0123"):expect("content-range", "bytes 0-3/10"):expect("content-length", "4")
    range("bytes=-3"):expect(206):expect("789")
    range("bytes=0-999"):expect(206):expect("0123456789")
    range("bytes=20-30"):expect(416):expect("content-range", "bytes */10")
    local tag = t:get("/static/digits.bin").headers.etag
    t:get("/static/digits.bin", { headers = { ["If-None-Match"] = tag } }):expect(304):expect(""):expect("etag", tag)
      :expect("content-type", false):expect("content-length", false)
    t:get("/static/digits.bin", { headers = { ["If-Match"] = "W/" .. tag:gsub("^W/", "") } }):expect(412)
  end)

  it("comes behind all routes, and refuses other methods on files alone", function()
    local app = srv.app()
    app:static("/", FOLDER)
    app:get("/hello.txt", function() return "route" end)
    app:post("/digits.bin", function() return "posted" end)
    local t = srv.test(app)
    t:get("/hello.txt"):expect("route")
    t:get("/digits.bin"):expect("0123456789")
    t:post("/digits.bin"):expect("posted")
    t:post("/dir/index.html"):expect(405):expect("allow", "GET, HEAD, OPTIONS")
    t:options("/dir/index.html"):expect(204):expect("allow", "GET, HEAD, OPTIONS")
    t:post("/nope"):expect(404)
  end)

  it("falls back to a page, as single-page apps need", function()
    local app = srv.app()
    app:static("/", FOLDER, { fallback = "index.html", headers = { ["X-Site"] = "yes" }, max_age = "1h", immutable = "%.js$", download = "%.bin$" })
    app:post("/login", function() return "in" end)
    local t = srv.test(app)
    t:get("/some/page"):expect(200):expect("content-type", "text/html; charset=utf-8"):expect("x-site", "yes")
    t:get("/login"):expect(200):expect("content-type", "text/html; charset=utf-8")
    t:get("/empty/x.js"):expect("cache-control", "public, max-age=3600, immutable")
    t:get("/digits.bin"):expect("content-disposition", 'attachment; filename="digits.bin"')
  end)

  it("falls back for what may be a page alone", function()
    local t = client_of({ fallback = "index.html" }, "/")
    local function get(path, accept) return t:get(path, { headers = { Accept = accept } }) end
    get("/news/7", "text/html,application/xhtml+xml,*/*;q=0.8"):expect(200):expect("vary", "Accept, Accept-Encoding")
    get("/users/joe.css", "text/html"):expect(200)
    get("/news/7", "*/*"):expect(200)
    get("/v1.2/joe.smith", "*/*"):expect(200)
    get("/gone.js", "*/*"):expect(404):expect("vary", "^Accept")
    get("/gone.js", nil):expect(404)
    get("/api/news", "application/json"):expect(404)
    get("/news/7", "text/html;q=0, */*"):expect(404)
  end)

  it("keeps for a year what never changes, unless it says otherwise", function()
    client_of({ immutable = true }):get("/static/empty/x.js"):expect("cache-control", "public, max-age=31536000, immutable")
    local t = client_of({ immutable = "%.js$" })
    t:get("/static/empty/x.js"):expect("cache-control", "public, max-age=31536000, immutable")
    t:get("/static/hello.txt"):expect("cache-control", "public, max-age=0")
  end)

  it("shows dotfiles, and goes without tags, where it is told to", function()
    client_of({ dotfiles = true }):get("/static/.env"):expect("secret")
    local t = client_of({ etag = false })
    local date = t:get("/static/hello.txt"):expect("etag", false).headers["last-modified"]
    t:get("/static/hello.txt", { headers = { ["If-Modified-Since"] = date } }):expect(304):expect("last-modified", date)
  end)

  it("lets the app's headers win", function()
    local t = client_of { max_age = "1h", headers = { ["Cache-Control"] = "no-store", ["Content-Type"] = "text/x-own", Vary = { "Origin", "Accept" } } }
    t:get("/static/hello.txt"):expect("cache-control", "no-store"):expect("content-type", "text/x-own"):expect("vary", "Origin, Accept-Encoding, Accept")
    t:get("/static/hello.txt", { headers = { ["If-None-Match"] = "*" } }):expect(304):expect("cache-control", "no-store"):expect("content-type", false)
    t:get("/static/hello.txt", { headers = { ["If-Match"] = '"x"' } }):expect(412):expect("cache-control", false)
  end)

  it("leads from the folder's name to its slash, but not from another path's", function()
    local t = client_of()
    t:get("/static?x=1"):expect(301):expect("location", "/static/?x=1")
    t:get("/static/dir%2f"):expect(404)
    t:get("/static//evil.example"):expect(404)
    client_of({ index = false }):get("/static"):expect(404)
    client_of({}, "/"):get("//evil.example/.."):expect(function(r) return r.status >= 400 and not r.headers.location end)
  end)

  it("says of a download what it is called", function()
    local t = client_of({ download = "^dir/" })
    t:get("/static/dir/index.html"):expect("content-disposition", 'attachment; filename="index.html"')
    t:get("/static/hello.txt"):expect("content-disposition", false)
  end)

  it("has middleware and hooks around it", function()
    local app = srv.app()
    app:use(function(_, res, next) res:header("X-Guard", "on") return next() end)
    app:static("/", FOLDER)
    srv.test(app):get("/hello.txt"):expect(200):expect("x-guard", "on")
  end)

  it("has no second spelling that passes a guard by", function()
    local app = srv.app()
    app:use("/static/dir", function() srv.error(403) end)
    app:static("/static", FOLDER)
    local t = srv.test(app)
    for _, path in ipairs { "/static/dir/index.html", "/static/%64ir/index.html", "/static/dir/%69ndex.html", "/static/dir/" } do
      t:get(path):expect(403)
    end
    for _, path in ipairs { "/static/dir%2findex.html", "/static/dir%2Findex.html", "/static%2fdir/index.html", "/static//dir/index.html", "/static/dir%2f" } do
      t:get(path):expect(404)
    end
    t:get("/static/a%2525b"):expect(404)
  end)

  it("needs a folder that is there", function()
    local app = srv.app()
    app:static("/", "no/such/folder")
    assert.error_matches(function() srv.test(app) end, 'app:static cannot serve "no/such/folder"')
  end)
end)

describe("a folder that is listed", function()
  local base = os.tmpname() .. ".d"
  local listed = base .. "/root"

  local function run(command) assert(srv.exec { "sh", "-c", command }) end

  setup(function()
    run(("mkdir -p '%s/sub' '%s/.hidden' && cd '%s' && mkfifo pipe && printf x > ../outside.txt"):format(listed, listed, listed))
    run(("cd '%s' && printf 12345 > b.txt && printf x > 'javascript:alert(1)' && printf x > '<i>.txt' && printf x > .env"):format(listed))
    run(("cd '%s' && ln -s ../outside.txt out && ln -s /etc etc && ln -s b.txt link && printf x > sub/$(printf 'a\\377')"):format(listed))
  end)

  teardown(function() run(("rm -rf '%s' '%s'"):format(base, base:sub(1, -3))) end)

  local function client(opts)
    opts.list = true
    local app = srv.app()
    app:static("/l", listed, opts)
    return srv.test(app)
  end

  local function names(t, path)
    local found = {}
    for i, entry in ipairs(t:get(path, { headers = { Accept = "application/json" } }):expect(200):json().entries) do
      found[i] = entry.type == "folder" and entry.name .. "/" or entry.name
    end
    return found
  end

  it("has what a client may ask for, folders first, and nothing that leads out", function()
    assert.same({ "sub/", "<i>.txt", "b.txt", "javascript:alert(1)", "link" }, names(client {}, "/l/"))
    assert.same({ ".hidden/", "sub/", ".env", "<i>.txt", "b.txt", "javascript:alert(1)", "link" }, names(client { dotfiles = true }, "/l/"))
  end)

  it("is a page whose names are text and whose links are names", function()
    local r = client {}:get("/l/"):expect(200):expect("content-type", "text/html; charset=utf-8"):expect("vary", "Accept")
      :expect("cache-control", "no-cache"):expect("content-security-policy", "^default%-src 'none'")
    assert.matches('href="javascript%%3Aalert%%281%%29">javascript:alert%(1%)<', r.body)
    assert.matches('href="%%3Ci%%3E.txt">&lt;i&gt;.txt<', r.body)
    assert.matches('href="b.txt">b.txt</a><td>5 bytes<td>%d%d%d%d%-', r.body)
    assert.is_nil(r.body:find('href="../"', 1, true))
    r = client {}:get("/l/sub/"):expect(200)
    assert.matches('href="../"', r.body)
    assert.matches('href="a%%FF">a\239\191\189<', r.body)
  end)

  it("is data for who asks for it", function()
    local r = client {}:get("/l/", { headers = { Accept = "application/json" } }):expect("vary", "Accept"):expect("content-type", "application/json")
    assert.is_false(r:json().more)
    local file = r:json().entries[3]
    assert.same({ name = "b.txt", url = "b.txt", type = "file", size = 5, modified = file.modified }, file)
    assert.is_true(math.abs(os.time() - file.modified) < 600)
  end)

  it("stands behind its index, has its slash, and is no folder outside or hidden", function()
    local t = client {}
    t:get("/l"):expect(301):expect("location", "/l/")
    t:get("/l/sub"):expect(301):expect("location", "/l/sub/")
    for _, path in ipairs { "/l/nope/", "/l/.hidden/", "/l/etc/", "/l/b.txt/", "/l/sub%2f" } do t:get(path):expect(404) end
    t:get("/l/%2e%2e/"):expect(function(r) return r.status == 400 or r.status == 404 end)
    t:get("/l/a%00/"):expect(400)
    t:head("/l/"):expect(200):expect("")
    client { index = "b.txt" }:get("/l/"):expect("12345")
    client { headers = { ["X-L"] = "1", Vary = "Origin" } }:get("/l/"):expect("x-l", "1"):expect("vary", "Origin, Accept")
  end)

  it("says where it ends too early", function()
    local listing = require "srv.web.listing"
    local entries = { { name = "a", is_folder = false, size = 1, modified = 0 } }
    assert.matches("The first 1 that the folder has; there are more", listing.html("/", entries, true, true))
    assert.is_true(listing.data(entries, true).more)
    assert.matches("Nothing is in here", listing.html("/", {}, false, true))
  end)

  it("shows no name in another direction or on two lines", function()
    local listing = require "srv.web.listing"
    local page = listing.html("/", { { name = "a\226\128\174gpj.exe", size = 1, modified = 0 }, { name = "b\nc", size = 1, modified = 0 } }, false, true)
    assert.matches(">a\239\191\189gpj.exe<", page)
    assert.matches(">b\239\191\189c<", page)
  end)

  it("is not there unless it is asked for", function()
    local app = srv.app()
    app:static("/l", listed)
    srv.test(app):get("/l/"):expect(404)
  end)
end)

describe("files.disposition", function()
  local files = require "srv.web.files"

  it("names a download in ASCII, and truly besides", function()
    assert.equal('attachment; filename="it\'s; a, b.txt"', files.disposition "it's; a, b.txt")
    assert.equal('attachment; filename="a_b.txt"; filename*=UTF-8\'\'a%22b.txt', files.disposition 'a"b.txt')
    assert.equal('attachment; filename="_ 50_.txt"; filename*=UTF-8\'\'%E2%82%AC%2050%25.txt', files.disposition "€ 50%.txt")
  end)

  it("is one name and one line, whatever it is given", function()
    assert.equal('attachment; filename="x"', files.disposition "../../x")
    assert.equal('attachment; filename="x.doc"', files.disposition "C:\\temp\\x.doc")
    assert.equal('attachment; filename="a__b_"', files.disposition "a\r\nb\0")
    assert.equal('attachment; filename="caf_"', files.disposition "caf\233")
    assert.equal('attachment; filename="download"', files.disposition "dir/")
  end)
end)

describe("res:file", function()
  it("sends a file of the app's folder, and nothing outside it", function()
    local app = srv.app()
    app:get("/f/*path", function(req, res) return res:file(req.params.path, { root = FOLDER, max_age = 60 }) end)
    app:get("/own", function(_, res) res:header("Cache-Control", "no-store") return res:file(FOLDER .. "/hello.txt", { type = "json" }) end)
    app:get("/absolute", function(_, res) return res:file(env.root .. "/" .. FOLDER .. "/hello.txt") end)
    app:get("/down", function(_, res) return res:download(FOLDER .. "/hello.txt", "Grüße.txt") end)
    local t = srv.test(app)
    t:get("/f/hello.txt"):expect("hello static file\n"):expect("cache-control", "public, max-age=60")
    t:get("/f/..%2foutside.txt"):expect(404)
    t:get("/f/nope"):expect(404):expect { code = "not_found" }
    t:get("/f/dir"):expect(404)
    t:get("/own"):expect("content-type", "application/json"):expect("cache-control", "no-store")
    t:get("/absolute"):expect(200)
    t:get("/down"):expect("content-disposition", "attachment; filename=\"Gr__e.txt\"; filename*=UTF-8''Gr%C3%BC%C3%9Fe.txt")
    t:get("/f/digits.bin", { headers = { Range = "bytes=2-3" } }):expect(206):expect("23")
  end)

  it("is for no shared cache where somebody had to say who it is, unless the app says so", function()
    local app = srv.app()
    local function guard(req, _, next)
      if req.session.banned then return nil, 403 end
      return next()
    end
    local function send(_, res) return res:file(FOLDER .. "/hello.txt", { max_age = 60 }) end
    app:use(srv.session())
    app:use("/mine", guard)
    app:get("/mine/own", function(req, res) return send(req, res:header("Cache-Control", "public, max-age=9")) end)
    app:static("/mine", FOLDER)
    app:static("/all", FOLDER)
    app:get("/sent", send)
    app:get("/guarded", guard, send)
    app:get("/signed-in", function(req, res) req.session.user = "ann" return send(req, res) end)
    local t, authorization = srv.test(app), { headers = { Authorization = "Bearer x" } }
    for path, max_age in pairs { ["/sent"] = 60, ["/all/hello.txt"] = 0 } do
      t:get(path):expect(200):expect("cache-control", "public, max-age=" .. max_age)
      local tag = t:get(path, authorization):expect(200):expect("cache-control", "private, max-age=" .. max_age).headers.etag
      t:get(path, { headers = { Authorization = "Bearer x", ["If-None-Match"] = tag } })
        :expect(304):expect("cache-control", "private, max-age=" .. max_age)
    end
    t:get("/guarded"):expect(200):expect("cache-control", "private, max-age=60")
    t:get("/mine/hello.txt"):expect(200):expect("cache-control", "private, max-age=0")
    t:get("/mine/own"):expect("cache-control", "public, max-age=9")
    t:get("/signed-in"):expect("cache-control", "private, max-age=60")
    -- A session that nobody has looked into says nothing of what is answered.
    t:get("/all/hello.txt"):expect("cache-control", "public, max-age=0")
  end)

  it("keeps what the app has said of the answer", function()
    local app = srv.app()
    app:get("/page", function(_, res) return res:status(404):file(FOLDER .. "/hello.txt") end)
    app:get("/late", function(_, res) return res:file(FOLDER .. "/hello.txt"):status(404) end)
    app:get("/tag", function(_, res) return res:etag("mine"):file(FOLDER .. "/hello.txt") end)
    app:get("/vary", function(_, res) return res:vary("Origin"):file(FOLDER .. "/hello.txt") end)
    app:post("/posted", function(_, res) return res:file(FOLDER .. "/digits.bin") end)
    app:not_found(function(_, res) return res:file(FOLDER .. "/hello.txt") end)
    local t = srv.test(app)
    local asked = { Range = "bytes=0-3", ["If-None-Match"] = "*" }
    for _, path in ipairs { "/page", "/late", "/nowhere" } do
      t:get(path, { headers = asked }):expect(404):expect("hello static file\n"):expect("content-range", false)
    end
    t:get("/tag", { headers = { ["If-None-Match"] = '"mine"' } }):expect(304):expect("etag", '"mine"')
    t:get("/tag", { headers = { Range = "bytes=0-3", ["If-Range"] = '"mine"' } }):expect(206):expect("hell")
    t:get("/vary"):expect("vary", "Origin")
    t:post("/posted", { headers = asked }):expect(200):expect("0123456789")
  end)

  it("hides nothing from the hooks, which may change it", function()
    local app = srv.app()
    app:hook("send", function(_, res) res:header("ETag", '"hooked"'):vary("Origin") end)
    app:static("/", FOLDER)
    local t = srv.test(app)
    t:get("/hello.txt"):expect("vary", "Accept-Encoding, Origin")
    t:get("/hello.txt", { headers = { ["If-None-Match"] = '"hooked"' } }):expect(304)
  end)
end)
