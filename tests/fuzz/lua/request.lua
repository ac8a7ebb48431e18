--- A whole request through an app with most plugins: whatever a client sends, the fault is never ours (5xx),
--- and no field of the answer has bytes in it that a field cannot have.
---
--- The input is "METHOD target", lines of fields, an empty line, the body: as the wire lets them through
--- (tests/fuzz/http1_conn_fuzz.c is about that).
local srv = require "srv"

local VALUES_MAX = 40

local app = srv.app { body_limit = "4KiB" }

app:use(srv.request_id { trust = { "loopback" } }, srv.helmet(), srv.etag(), srv.compress { min = 64 })
app:use(srv.cors { origins = { "https://a.example" }, credentials = true })
app:use(srv.proxy_trust { "loopback" })
app:use("/session", srv.session { store = "cookie" }, srv.csrf())
app:use("/basic", srv.basic_auth { users = { ann = "secret" } })
app:use("/jwt", srv.jwt { key = ("k"):rep(32), alg = "HS256" })
app:use("/bearer", srv.bearer { check = function(token) return token == "t" and { name = "t" } or nil end })

--- All that can be asked about a request without reading its body.
local function seen(req)
  return {
    method = req.method, path = req.path, url = req.url, query = req.query, cookies = req.cookies, ip = req.ip, ips = req.ips,
    host = req.host, hostname = req.hostname, proto = req.proto, params = req.params,
    media = req:accepts("json", "html", "image/png"), language = req:accepts_language("en", "de"),
    encoding = req:accepts_encoding("gzip", "br"), is = req:is("json", "form", "multipart", "text/*"),
  }
end

app:all("/all/:id<int>", seen)
app:all("/all/:id<int>/*rest", seen)
app:all("/basic", seen)
app:all("/jwt", seen)
app:all("/bearer", seen)

app:all("/session", function(req)
  req.session.visits = (req.session.visits or 0) + 1
  return { visits = req.session.visits }
end)

local READERS = {
  json = function(req) return req:json { strict = false } end,
  form = function(req) return req:form { nested = true, fields = VALUES_MAX } end,
  multipart = function(req) return (req:multipart { fields = VALUES_MAX }) end,
  text = function(req) return req:text() end,
  bytes = function(req) return req:bytes() and "bytes" end,
}

app:post("/body/:how", function(req)
  local read = READERS[req.params.how] or srv.error(404)
  local value = read(req)
  return { value = value == nil and srv.null or value }
end)

app:post("/valid", {
  query = { page = "integer 1.. = 1", tag = "string[] ..3" },
  headers = { ["x-count"] = "integer?" },
  body = { title = "string 1..20 trim", tags = "string[] ..5 unique = []", at = "datetime?", mail = "email?", size = "bytes?" },
}, function(req) return { req.valid.query, req.valid.headers, req.valid.body } end)

app:get("/tagged", function(_, res)
  res:etag "one"
  res:last_modified(1700000000)
  return ("text "):rep(40)
end)

app:get("/file", function(_, res) return res:file("README.md", { root = srv.root }) end)

app:get("/cookie", function(req, res)
  res:cookie("copy", req:cookie("a", { json = true }) or req:cookie("a") or "none", { signed = true })
  return { signed = tostring(req:cookie("copy", { signed = true })) }
end)

app:get("/go", function(req, res) return res:redirect(req.query.to or "/") end)

local client = srv.test(app)

local METHODS = { GET = true, HEAD = true, POST = true, PUT = true, PATCH = true, DELETE = true, OPTIONS = true }

--- The fields that the wire would take, by name: an array of values each.
local function read_fields(lines)
  local fields = {}
  for name, value in lines:gmatch("([^\n:]+):[ \t]*([^\n]*)") do
    name, value = name:lower(), value:gsub("[ \t]+$", "")
    if name:find("^[%w!#$&'*+.^_`|~-]+$") and not value:find("[%z\1-\8\10-\31\127]") and name ~= "host" then
      local values = fields[name] or {}
      values[#values + 1], fields[name] = value, values
    end
  end
  return fields
end

local function check(answer, line)
  if answer.status >= 500 then
    local logged = answer.log[1]
    error(("%s: %d: %s"):format(line, answer.status, tostring(logged and logged.fields.err or answer.body)), 0)
  end
  for name, value in pairs(answer.headers) do
    if tostring(value):find("[%z\1-\8\10-\31\127]") then error(("%s: %s: %q"):format(line, name, value), 0) end
  end
end

return function(bytes)
  local head, body = bytes:match("^(.-)\n\n(.*)$")
  head = head or bytes
  local line, lines = head:match("^([^\n]*)\n?(.*)$")
  local method, target = line:match("^(%u+) (/[%w%p]*)$")
  if not METHODS[method] or target:find("#", 1, true) then return end
  client.cookies = {}
  check(client:request(method, target, { headers = read_fields(lines), body = body }), line)
end
