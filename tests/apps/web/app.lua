-- What the cases of tests/web/cases.json speak to: each route is one that a case names.
local srv = require "srv"

local app = srv.app { body_limit = "100KiB" }

-- Routing ---------------------------------------------------------------------------------------------
app:get("/hello", function(_, res)
  res:etag "hello-1"
  return "hello world"
end)
app:get("/json", function() return { hello = "world" } end)
app:get("/users/:id", function(req) return { id = req.params.id } end)
app:get("/files/*path", function(req) return { path = req.params.path } end)
app:get("/opt/:name?", function(req) return { name = req.params.name or srv.null } end)
app:get("/num/:n<int>", function(req) return { n = req.params.n } end)
app:get("/rev/:p", function(req) return "param:" .. req.params.p end)
app:get("/rev/static", function() return "static" end)
app:get("/rev/*rest", function(req) return "wild:" .. req.params.rest end)
app:get("/near/:lat-:lng", function(req) return req.params end)
app:get("/img/:file.png", function(req) return req.params end)
app:get("/query", function(req) return req.query end)

app:get("/items", function() return {} end)
app:post("/items", function() return nil, 201 end)
app:delete("/items", function(_, res)
  res:status(204)
  return "not sent"
end)

local function where(req)
  return { org = req.params.org, m = req.params.m, baseUrl = req.base_url, url = req.url, originalUrl = req.original_url }
end
local members, alone = srv.router(), srv.router { merge_params = false }
members:get("/members/:m", where)
alone:get("/members/:m", function(req) return req.params end)
app:mount("/orgs/:org", members)
app:mount("/iso/:org", alone)

app:get("/state-before", function(_, res, next)
  res:append("X-Trace", "a")
  return next()
end, function(_, res, next)
  res:append("X-Trace", "b")
  return next()
end, function() return "ok" end)

-- Answers ---------------------------------------------------------------------------------------------
app:get("/res/buffer", function(_, res) return res:bytes "\1\2\3" end)
app:get("/res/typed", function(_, res) return res:type("text/plain"):text "x" end)
app:get("/res/redirect301", function(_, res) return res:redirect("/hello", 301) end)
app:get("/res/redirect-xss", function(_, res) return res:redirect '/x?"><script>alert(1)</script>' end)
app:get("/res/neg", function(_, res)
  local kind = res:negotiate("json", "html", "text")
  if kind == "json" then return { f = "json" } end
  return kind == "html" and "<p>html</p>" or "text"
end)
app:get("/res/stream", function()
  local left = 3
  return function()
    left = left - 1
    return left >= 0 and "part\n" or nil
  end
end)
app:get("/res/sse", function(_, res)
  local events = res:sse()
  events:send({ n = 1 }, { id = 1, event = "tick" })
  events:send "bye"
end)
app:get("/res/lm", function(_, res)
  res:last_modified(1700000000)
  return "dated"
end)
app:get("/res/etag-custom", function(_, res)
  res:etag "v1"
  return "custom"
end)
app:get("/res/crlf", function(_, res) return res:header("X-Test", "a\r\nInjected: 1"):text "never" end)
app:get("/res/double", function(_, res)
  res:send "first"
  res:send "second"
end)

local compressed = srv.router()
compressed:use(srv.compress(), srv.etag())
compressed:get("/text/:n<int>", function(req) return ("repeated "):rep(req.params.n / 9 + 1):sub(1, req.params.n) end)
app:mount("/z", compressed)

-- Bodies ----------------------------------------------------------------------------------------------
local function shown(body) return { body = body == nil and "<undefined>" or body } end
app:post("/body/json", function(req) return shown(req:json()) end)
app:post("/body/json-loose", function(req) return shown(req:json { strict = false }) end)
app:post("/body/form", function(req) return shown(req:form()) end)
app:post("/body/form-ext", function(req) return shown(req:form { nested = true }) end)
app:post("/body/multipart", function(req)
  local fields, files = req:multipart { files = 1, file_limit = 1024 }
  return { fields = fields, file = { name = files[1].name, type = files[1].type, size = files[1].size } }
end)
app:post("/body/text", function(req) return shown(req:text()) end)
app:use("/guarded", function() srv.error(401) end)
app:post("/guarded", { body = { n = "integer" } }, function() return "never" end)
app:post("/validate", {
  body = srv.schema({ name = "string 2..", age = "integer", ["*"] = "drop" }, { coerce = true }),
  response = srv.schema({ name = "string", age = "integer" }, { order = { "name", "age" } }),
}, function(req)
  local body = req.valid.body
  return { name = body.name, age = body.age, secret = "s" }, 201
end)

-- Rules -----------------------------------------------------------------------------------------------
local booking = { from = "date", to = "date" }
local tree
tree = srv.schema { name = "string", children = srv.schema({ srv.schema.lazy(function() return tree end) }, { optional = true }) }
local function checked(req) return req.valid.body end

app:post("/v/:id<int>", {
  params = { id = "integer 1.." }, query = { page = "integer>=1 = 1", tag = "slug[]?" }, headers = { ["x-limit"] = "integer?" },
  cookies = { dark = "boolean?" },
  body = srv.schema({
    title = "string 1..80 trim", url = "url", state = "draft|published = draft", tags = "slug[] ..8 unique = []",
  }, { order = { "title", "url", "state", "tags" } }),
}, function(req)
  local valid = req.valid
  return { params = valid.params, query = valid.query, headers = valid.headers, cookies = valid.cookies, body = valid.body }
end)
app:post("/v/number", { body = { n = "integer" } }, checked)
app:post("/v/shape", {
  body = srv.schema.any_of(
    { kind = "'circle'", radius = "number >0" },
    { kind = "'box'", width = "number >0", height = "number >0" }),
}, checked)
app:post("/v/tree", { body = tree }, checked)
app:post("/v/list", { body = { "integer" } }, checked)
app:post("/v/word", { body = "string ..3" }, function(req) return { word = req.valid.body } end)
app:post("/v/booking", {
  body = srv.schema(booking, {
    check = function(v)
      if v.to < v.from then return nil, "must not lie before from", "/to" end
      return v
    end,
  }),
}, checked)
app:patch("/v/booking", { body = srv.schema(booking, { partial = true }) }, checked)
app:post("/v/order", { body = { buyer = { name = "string" }, rows = { { n = "integer" } } } }, checked)
app:get("/v/rows", { response = { { id = "integer" } } }, function()
  local rows = {}
  for i = 1, 250 do rows[i] = { id = i, secret = "s" } end
  return rows
end)

-- Errors ----------------------------------------------------------------------------------------------
app:get("/err/async", function()
  srv.sleep "1ms"
  srv.error(503, "try later", { headers = { ["Retry-After"] = 7 } })
end)
app:get("/err/reject-empty", function() error() end)
app:get("/timeout/hang", { timeout = "150ms" }, function() srv.sleep "1h" end)

local api = srv.router()
api:error(function(err) return { error = err.expose and err.message or err.title } end)
api:get("/async", function()
  srv.sleep "1ms"
  srv.error(422, "bad thing")
end)
api:get("/plain", function() error "secret detail" end)
app:mount("/api", api)

local scope = srv.router()
scope:use(function(_, res, next)
  res:header("X-Inner", "1")
  return next()
end)
scope:not_found(function() return { scoped = true } end)
app:mount("/scope", scope)

app:mount("/", require "answers")
app:mount("/", require "policies")

-- Files, cookies, addresses -----------------------------------------------------------------------------
app:static("/static", "public")
app:get("/sendfile/:f", function(req, res) return res:file(req.params.f, { root = "public" }) end)

app:get("/cookie/set", function(_, res)
  return res:cookie("sid", "a b;c", { secure = true, max_age = 60 }):text "set"
end)
app:get("/cookie/session", function(_, res)
  local plain = { http_only = false, same_site = false }
  return res:cookie("a", "1", plain):cookie("b", { x = 1 }, plain):text "set"
end)
app:get("/cookie/signed", function(_, res) return res:cookie("name", "tobi", { signed = true }):text "set" end)
app:get("/cookie/get", function(req)
  return { cookies = req.cookies, signed = { name = req:cookie("name", { signed = true }) } }
end)

local function whose(req)
  return { ip = req.ip, ips = req.ips, proto = req.proto, host = req.host, hostname = req.hostname, secure = req.secure }
end
local behind = srv.router()
behind:use(srv.proxy_trust { "loopback" })
behind:get("/ip", whose)
app:mount("/proxy", behind)
app:get("/noproxy/ip", whose)

-- Pages of other sites, names and passwords ---------------------------------------------------------------
local function cors_of(opts)
  local router = srv.router()
  router:use(srv.cors(opts))
  for _, method in ipairs { "get", "put" } do router[method](router, "/ok", function() return { ok = true } end) end
  return router
end
app:mount("/cors/default", cors_of())
app:mount("/cors/stardcred", cors_of { credentials = true })
app:mount("/cors/list", cors_of {
  origins = { "https://a.example", "https://*.b.example" }, credentials = true, expose = { "X-Total", "X-Page" },
  max_age = 600,
})

app:get("/auth", srv.basic_auth { users = { u = "p" } }, function(req) return "hi " .. req.state.user end)

app:get("/session", srv.session(), function(req)
  req.session.n = (req.session.n or 0) + 1
  return { n = req.session.n }
end)

return app
