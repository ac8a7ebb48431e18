local srv = require "srv"

local article = srv.schema({ title = "string 1..200 trim -- the headline", url = "url", tag = "slug = news" }, { name = "Article" })

local function nothing() return "x" end

--- The app of DECLARE with srv.openapi(OPTS) in it.
local function client_of(declare, opts)
  local app = srv.app()
  app:use(srv.openapi(opts))
  declare(app)
  return srv.test(app)
end

--- Where the sources are; srv.exec begins in the app's folder.
local ROOT = io.popen("pwd"):read "*l"

--- Python may be slow to begin on a busy machine, so this waits instead of holding up the loop.
local function faults_of(text)
  local path = os.tmpname()
  assert(srv.fs.write(path, text))
  local checked = assert(srv.exec({ "python3", "tests/support/openapi_check.py", path }, { timeout = "60s", cwd = ROOT }))
  os.remove(path)
  return checked.stdout .. checked.stderr .. "done\n"
end

--- The document, which is valid.
local function document_of(declare, opts)
  local text = client_of(declare, opts):get("/openapi.json"):expect(200).body
  assert.equal("done\n", faults_of(text))
  return srv.json.decode(text)
end

local function names_of(map)
  local names = {}
  for name in pairs(map or {}) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local function param_of(operation, place, name)
  for _, param in ipairs(operation.parameters or {}) do
    if param["in"] == place and param.name == name then return param end
  end
end

describe("srv.openapi", function()
  it("tells of an app without routes", function()
    local d = document_of(function() end, { title = "News", version = "2.1", servers = { "https://a.example", { url = "/v2", description = "new" } } })
    assert.equal("3.1.0", d.openapi)
    assert.same({ title = "News", version = "2.1" }, { title = d.info.title, version = d.info.version })
    assert.equal("https://a.example", d.servers[1].url)
    assert.equal("new", d.servers[2].description)
    assert.same({}, names_of(d.paths))
  end)

  it("writes rules of every kind so that it is valid", function()
    local tree
    tree = srv.schema({ v = "integer", kids = srv.schema({ srv.schema.lazy(function() return tree end) }, { optional = true }) }, { name = "Tree" })
    local every = {
      fn = function(v) return v end, map = { ["*"] = "integer" }, rest = { a = "string", ["*"] = "drop" }, tree = tree, ["a/b~c {x}"] = "string?",
      either = srv.schema.any_of({ k = "'a'", r = "number" }, { k = "'b'" }, "string"),
      patch = srv.schema({ a = "string = x", b = "integer" }, { partial = true, min = 1, max = 2, description = "a part" }),
    }
    for i, rule in ipairs {
      "string 1..80 trim", "string /%d+-%a*/", "slug /a.*/", "string ..9 /%bxy/", "integer 1..9", "number >0", "boolean", "null", "any", "object", "array",
      "bigint >=5", "email", "url", "uuid", "date", "time", "datetime", "duration 1s..1h = 5m", "bytes ..1MiB", "ip|null", "cidr|null", "host",
      "hex|null", "base64", "draft|published|null", "1|2|'x'", "(integer|null)[] ..5 unique", "(string[])[]", "slug[] = []", "string|null = null -- text",
    } do every["f" .. i] = rule end
    local d = document_of(function(app)
      app:post("/every", { query = { f = "duration = 1s", ["*"] = "string" }, cookies = { c = "hex" }, body = srv.schema(every, { name = "Every" }),
        response = { [201] = every, [404] = tree } }, nothing)
    end)
    assert.same({ "Every", "Problem", "Tree" }, names_of(d.components.schemas))
  end)

  it("says how forms write groups", function()
    local d = document_of(function(app)
      local body = { author = srv.schema({ name = "string" }, { name = "Author" }), tags = "slug[]", place = { city = "string" } }
      app:post("/", { body = srv.schema(body, { name = "Book" }) }, nothing)
    end)
    local content = d.paths["/"].post.requestBody.content
    assert.is_nil(content["application/json"].encoding)
    local encoding = content["application/x-www-form-urlencoded"].encoding
    assert.same({ "author", "place" }, names_of(encoding))
    assert.equal("deepObject", encoding.author.style)
  end)

  it("writes paths with typed parameters, optional ends and rests", function()
    local d = document_of(function(app)
      app:get("/n/:id<int>", nothing)
      app:get("/opt/:name?", nothing)
      app:get("/:first?", nothing)
      app:get("/files/*path", nothing)
      app:get("/any/*", nothing)
      app:get("/near/:lat<number>-:lng<number>", nothing)
      app:get("/img/:file.png", nothing)
      app:get("/lang/:l<en|de>", nothing)
      app:get("/code/:c<%u%u%d+>", nothing)
      app:get("/a::b/{x}", nothing)
    end)
    assert.same({ "/", "/a:b/%7Bx%7D", "/any/{rest}", "/code/{c}", "/files/{path}", "/img/{file}.png", "/lang/{l}", "/n/{id}",
      "/near/{lat}-{lng}", "/opt", "/opt/{name}", "/{first}" }, names_of(d.paths))
    assert.equal("integer", param_of(d.paths["/n/{id}"].get, "path", "id").schema.type)
    assert.equal("number", param_of(d.paths["/near/{lat}-{lng}"].get, "path", "lng").schema.type)
    assert.same({ "en", "de" }, { unpack(param_of(d.paths["/lang/{l}"].get, "path", "l").schema.enum) })
    assert.equal("^[A-Z][A-Z][0-9]+$", param_of(d.paths["/code/{c}"].get, "path", "c").schema.pattern)
    assert.is_true(param_of(d.paths["/files/{path}"].get, "path", "path")["x-srv-rest"])
    assert.is_nil(d.paths["/opt"].get.parameters)
  end)

  it("writes query, headers and cookies, each field a parameter", function()
    local d = document_of(function(app)
      app:get("/:id", {
        params = { id = "uuid -- whose" }, query = { page = "integer>=1 = 1 -- which page", q = "string", ["*"] = "string" },
        headers = { ["X-Key"] = "hex", accept = "string?" }, cookies = { c = "string?" },
      }, nothing)
    end)
    local get = d.paths["/{id}"].get
    assert.same({ "uuid", "whose" }, { param_of(get, "path", "id").schema.format, param_of(get, "path", "id").description })
    local page = param_of(get, "query", "page")
    assert.same({ "which page", 1, nil }, { page.description, page.schema.default, page.required })
    assert.is_true(param_of(get, "query", "q").required)
    assert.equal("string", param_of(get, "query", "others").schema.additionalProperties.type)
    assert.is_true(param_of(get, "header", "x-key").required)
    assert.is_nil(param_of(get, "header", "accept"))
    assert.is_nil(param_of(get, "cookie", "c").required)
    local either = document_of(function(app)
      app:get("/", { query = srv.schema.any_of({ id = "integer" }, { name = "string" }) }, nothing)
    end)
    assert.equal(2, #param_of(either.paths["/"].get, "query", "query").schema.anyOf)
  end)

  it("writes bodies by what is consumed, and the errors to expect", function()
    local d = document_of(function(app)
      app:post("/a", { body = article }, nothing)
      app:put("/b", { body = article, consumes = { "json" } }, nothing)
      app:post("/c", { body = srv.schema({ x = "integer" }, { optional = true }) }, nothing)
      app:get("/d", nothing)
    end)
    local post = d.paths["/a"].post
    assert.same({ "application/json", "application/x-www-form-urlencoded" }, names_of(post.requestBody.content))
    assert.same({ "application/json" }, names_of(d.paths["/b"].put.requestBody.content))
    assert.is_true(post.requestBody.required)
    assert.is_nil(d.paths["/c"].post.requestBody.required)
    assert.equal("#/components/schemas/Article", post.requestBody.content["application/json"].schema["$ref"])
    assert.same({ "2XX", "400", "413", "415", "default" }, names_of(post.responses))
    assert.same({ "2XX", "default" }, names_of(d.paths["/d"].get.responses))
    local problem = d.components.schemas.Problem
    assert.same({ "code", "in", "message", "path" }, names_of(problem.properties.errors.items.properties))
    assert.is_not_nil(d.components.responses.Invalid.content["application/problem+json"])
  end)

  it("writes a body with files as multipart", function()
    local d = document_of(function(app)
      app:post("/u", { body = { picture = "file image/png ..2MiB", more = "file[] ..3?", title = "string" } }, nothing)
    end)
    local content = d.paths["/u"].post.requestBody.content
    assert.same({ "multipart/form-data" }, names_of(content))
    local fields = content["multipart/form-data"].schema.properties
    assert.same({ "binary", "image/png" }, { fields.picture.format, fields.picture.contentMediaType })
    assert.same({ "array", 3, "binary" }, { fields.more.type, fields.more.maxItems, fields.more.items.format })
  end)

  it("writes answers as they are declared", function()
    local d = document_of(function(app)
      app:get("/one", { response = article }, nothing)
      app:post("/many", { response = { [201] = article, [204] = "any", [404] = { why = "string" } } }, nothing)
    end)
    assert.equal("#/components/schemas/Article", d.paths["/one"].get.responses["2XX"].content["application/json"].schema["$ref"])
    local many = d.paths["/many"].post.responses
    assert.same({ "201", "204", "404", "default" }, names_of(many))
    assert.same({ "Created", nil }, { many["201"].description, many["204"].content })
    assert.is_not_nil(many["404"].content["application/json"].schema.properties.why)
  end)

  it("does not promise problem+json where app:error has a form of its own", function()
    local d = document_of(function(app)
      app:error(function(err) return { error = err.title }, err.status end)
      app:get("/:id", nothing)
    end)
    assert.is_nil(d.paths["/{id}"].get.responses["404"].content)
    assert.is_nil(d.components)
  end)

  it("gives schemas of one name and different content different names, and equal ones one", function()
    local d = document_of(function(app)
      app:post("/a", { body = article }, nothing)
      app:post("/b", { body = srv.schema({ x = "integer" }, { name = "Article" }) }, nothing)
      app:post("/c", { body = srv.schema({ x = "integer" }, { name = "Article" }) }, nothing)
      app:post("/d", { body = srv.schema({ a = article }, { name = "Problem" }) }, nothing)
      app:post("/e", { body = srv.schema({ y = "integer" }, { name = "Article" }) }, nothing)
    end)
    local function ref_of(path) return d.paths[path].post.requestBody.content["application/json"].schema["$ref"]:match "[^/]+$" end
    assert.same({ "Article", "Article2", "Problem" }, { ref_of "/a", ref_of "/b", ref_of "/d" })
    assert.same({ "Article2", "Article3" }, { ref_of "/c", ref_of "/e" })
    assert.same({ "y" }, names_of(d.components.schemas.Article3.properties))
    assert.equal("#/components/schemas/Problem2", d.components.responses.Invalid.content["application/problem+json"].schema["$ref"])
  end)

  it("follows schemas that hold themselves", function()
    local tree
    tree = srv.schema({ value = "integer", left = srv.schema(srv.schema.lazy(function() return tree end), { optional = true }) }, { name = "Tree" })
    local d = document_of(function(app) app:post("/tree", { body = tree }, nothing) end)
    assert.equal("#/components/schemas/Tree", d.components.schemas.Tree.properties.left["$ref"])
  end)

  it("has mounts, hosts, names, tags and texts", function()
    local d = document_of(function(app)
      local news, tenant = srv.router(), srv.router { host = ":tenant.example.com" }
      news:get("/:id", { name = "news.show", summary = "S", description = "D", tags = { "news" }, deprecated = true }, nothing)
      tenant:get("/home", nothing)
      app:mount("/orgs/:org/news", news)
      app:mount("/", tenant)
    end)
    local get = d.paths["/orgs/{org}/news/{id}"].get
    assert.same({ "news.show", "S", "D", "news", true }, { get.operationId, get.summary, get.description, get.tags[1], get.deprecated })
    assert.is_not_nil(param_of(get, "path", "org"))
    assert.equal("news", d.tags[1].name)
    local server = d.paths["/home"].get.servers[1]
    assert.same({ "//{tenant}.example.com", "tenant" }, { server.url, server.variables.tenant.default })
  end)

  it("leaves out what is hidden, the pages of plugins, and methods that OpenAPI has no word for", function()
    local d = document_of(function(app)
      app:use(srv.health(), srv.metrics())
      app:get("/secret", { hidden = true }, nothing)
      app:route({ "GET", "PURGE" }, "/cache", nothing)
      app:all("/all", nothing)
    end)
    assert.same({ "/all", "/cache" }, names_of(d.paths))
    assert.same({ "get" }, names_of(d.paths["/cache"]))
    assert.same({ "delete", "get", "patch", "post", "put" }, names_of(d.paths["/all"]))
  end)

  it("tells of routes that differ by type alone once, and names the others", function()
    local d = document_of(function(app)
      app:get("/n/:id<int>", { name = "x" }, nothing)
      app:get("/n/:slug", { summary = "By its name", name = "y" }, nothing)
      app:get("/n/:id<int>", { fallback = true }, nothing)
      app:put("/n/:slug", nothing)
    end)
    assert.same({ "/n/{id}" }, names_of(d.paths))
    assert.equal("Also `GET /n/:slug`: By its name", d.paths["/n/{id}"].get.description)
    assert.equal("string", param_of(d.paths["/n/{id}"].put, "path", "id").schema.type)
  end)

  it("knows who asks for credentials", function()
    local d = document_of(function(app)
      app:use("/admin", srv.basic_auth { users = { ann = "x" } })
      app:get("/admin/x", srv.bearer { check = function() return true end }, nothing)
      app:get("/open", nothing)
    end)
    assert.same({ "basic_auth", "bearer" }, names_of(d.paths["/admin/x"].get.security[1]))
    assert.is_not_nil(d.paths["/admin/x"].get.responses["401"])
    assert.is_nil(d.paths["/open"].get.security)
    assert.equal("basic", d.components.securitySchemes.basic_auth.scheme)
  end)

  it("knows the cookies that bring a token, and who may come without one", function()
    local key = ("k"):rep(32)
    local d = document_of(function(app)
      app:get("/a", srv.jwt { key = key, alg = "HS256", cookie = "token" }, nothing)
      app:get("/b", srv.bearer { check = function() return true end, optional = true }, nothing)
      app:get("/c", srv.basic_auth { users = { ann = "x" } }, srv.jwt { key = key, alg = "HS256", cookie = "token" }, nothing)
    end)
    local function security_of(path)
      local list = {}
      for i, one in ipairs(d.paths[path].get.security) do list[i] = table.concat(names_of(one), "+") end
      return list
    end
    assert.same({ "jwt", "cookie_token" }, security_of "/a")
    assert.same({ "bearer", "" }, security_of "/b")
    assert.same({ "basic_auth+jwt", "basic_auth+cookie_token" }, security_of "/c")
    local cookie = d.components.securitySchemes.cookie_token
    assert.same({ "apiKey", "cookie", "token" }, { cookie.type, cookie["in"], cookie.name })
  end)

  it("in a router it tells of that router alone", function()
    local app, v1 = srv.app(), srv.router()
    v1:use(srv.openapi { path = "/api.json", docs = false })
    v1:get("/a", nothing)
    app:mount("/v1", v1)
    app:get("/b", nothing)
    local t = srv.test(app)
    assert.same({ "/v1/a" }, names_of(t:get("/v1/api.json"):expect(200):json().paths))
    t:get("/v1/docs"):expect(404)
  end)

  it("is the same to the byte in each app made of the same files, and 304 to who has it", function()
    local function declare(app)
      app:post("/a", { body = { b = "string", a = "integer", c = { z = "string", y = "any" } }, query = { q = "string?", p = "string?" } }, nothing)
    end
    local t = client_of(declare)
    local first, second = t:get "/openapi.json", client_of(declare):get "/openapi.json"
    assert.equal(first.body, second.body)
    local tag = first.headers.etag
    assert.equal(tag, second.headers.etag)
    t:get("/openapi.json", { headers = { ["If-None-Match"] = tag } }):expect(304)
    t:get("/openapi.json"):expect("content-type", "application/json"):expect("cache-control", "no-cache")
    local page = t:get("/docs"):expect(200)
    t:get("/docs", { headers = { ["If-None-Match"] = page.headers.etag } }):expect(304)
  end)

  it("is held against rules that broken documents do not pass", function()
    local text = client_of(function(app)
      app:post("/n/:id", { body = article, query = { q = "string" }, tags = { "n" } }, nothing)
    end):get("/openapi.json").body
    for fault, broken in pairs {
      ["unknown field"] = text:gsub('"operationId"', '"operationID"'),
      ["must be required"] = text:gsub('"required":true,"schema":{"type":"string"}}', '"required":false,"schema":{"type":"string"}}'),
      ["is not there"] = text:gsub("schemas/Article", "schemas/Artikle"),
      ["do not fit the path"] = text:gsub('"/n/{id}"', '"/n/{key}"'),
      ["is no type"] = text:gsub('"type":"string"', '"type":"text"'),
      ["must be a count"] = text:gsub('"maxLength":200', '"maxLength":-1'),
      ["is no status"] = text:gsub('"2XX"', '"2xx"'),
      ["lacks 'description'"] = text:gsub('"description":"Success"', ""),
      ["must be 3.1.x"] = text:gsub('"3.1.0"', '"3.0.3"'),
    } do
      assert.is_not_nil(faults_of(broken):find(fault, 1, true), fault)
    end
  end)

  it("refuses options that it does not understand", function()
    assert.error_matches(function() srv.openapi { titel = "x" } end, 'did you mean "title"')
    assert.error_matches(function() srv.openapi { servers = {} } end, "at least one URL")
    assert.error_matches(function() srv.openapi { servers = { { uri = "/" } } } end, 'unknown option "uri"')
    assert.error_matches(function() srv.openapi { servers = { "https://a.example; script-src *" } } end, "servers are URLs")
    assert.error_matches(function() srv.openapi { docs = true } end, "docs must be a path, or false")
  end)
end)

describe("the page of srv.openapi", function()
  local EVIL = "</script><img src=x onerror=alert(1)>&\"'<!--"

  it("holds all that it needs, whatever the texts are", function()
    local t = client_of(function(app) app:get("/a", { summary = EVIL, description = EVIL, tags = { EVIL } }, nothing) end,
      { title = EVIL, version = EVIL })
    local html = t:get("/docs"):expect(200):expect("content-type", "text/html; charset=utf-8").body
    assert.is_nil(html:find("<img", 1, true))
    assert.is_nil(html:find("<!--", 1, true))
    local _, scripts = html:gsub("</script>", "")
    assert.equal(2, scripts)
    assert.is_nil(html:find "<link[^>]+stylesheet")
    assert.is_nil(html:find "%ssrc=[\"']")
    local embedded = html:match '<script type="application/json" id="document">(.-)</script>'
    assert.equal(EVIL, srv.json.decode(embedded).paths["/a"].get.summary)
  end)

  it("lets its own script and style run by their hashes, and nothing else, under helmet too", function()
    local app = srv.app()
    app:use(srv.helmet(), srv.openapi { servers = { "https://api.example/v1", "/x" } })
    local page = srv.test(app):get("/docs"):expect(200)
    local csp = page.headers["content-security-policy"]
    local script = page.body:match "<script>(.*)</script>"
    local style = page.body:match "<style>(.-)</style>"
    for directive, text in pairs { ["script-src"] = script, ["style-src"] = style } do
      assert.is_not_nil(csp:find(("%s 'sha256-%s';"):format(directive, srv.crypto.hash("sha256", text, "base64")), 1, true), directive)
    end
    assert.is_not_nil(csp:find("connect-src 'self' https://api.example;", 1, true))
    assert.is_nil(csp:find("unsafe", 1, true))
    assert.equal("nosniff", page.headers["x-content-type-options"])
  end)

  it("finds the document from where it is", function()
    local t = client_of(function() end, { docs = "/help/api/docs", path = "/openapi.json" })
    assert.is_not_nil(t:get("/help/api/docs").body:find('href="../../openapi.json"', 1, true))
  end)
end)
