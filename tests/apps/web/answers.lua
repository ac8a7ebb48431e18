-- Of tests/web/cases.json those about files, negotiation, redirects and cookies.
local srv = require "srv"

local routes = srv.router()

-- Files -------------------------------------------------------------------------------------------------
routes:static("/assets", "public", { max_age = "1h", immutable = "%.js$", headers = { ["X-Served"] = "yes" } })
routes:static("/spa", "public", { fallback = "index.html" })
routes:static("/saved", "public", { download = true })
routes:static("/listed", "public", { list = true, index = false })
routes:static("/plain", "public", { etag = false, precompressed = false, dotfiles = true, index = false })
routes:get("/download", function(req, res) return res:download("public/hello.txt", req.query.name) end)
routes:get("/file/404", function(_, res) return res:status(404):file "public/hello.txt" end)
routes:get("/file/tagged", function(_, res) return res:etag("mine"):vary("Origin"):file "public/digits.bin" end)
routes:post("/file/posted", function(_, res) return res:file "public/digits.bin" end)

-- Answers -----------------------------------------------------------------------------------------------
routes:get("/tagged", function(_, res)
  res:etag("v1"):header("Cache-Control", "public, max-age=60"):header("Content-Location", "/tagged.txt"):vary "Accept"
  return "tagged"
end)
routes:post("/tagged", function(_, res)
  res:etag "v1"
  return "posted"
end)
routes:get("/links", function(_, res) return res:links { next = "/p?2", last = "/p?a b" }:text "x" end)
routes:get("/type", function(req, res) return res:type(req.query.t):bytes "x" end)
routes:get("/redirect", function(req, res) return res:redirect(req.query.to, tonumber(req.query.status)) end)

-- What is asked for -------------------------------------------------------------------------------------
routes:get("/accepts", function(req) return { best = req:accepts("json", "html", "text") or srv.null } end)
routes:get("/languages", function(req) return { best = req:accepts_language("en", "de", "de-AT") or srv.null } end)
routes:get("/encodings", function(req) return { best = req:accepts_encoding("gzip", "br", "identity") or srv.null } end)
routes:post("/is", function(req) return { is = req:is("json", "html", "form", "image/*") or srv.null } end)
routes:get("/negotiate", function(_, res)
  local kind = res:negotiate("json", "html")
  return kind == "json" and { kind = kind } or "<p>html</p>"
end)

-- Cookies -----------------------------------------------------------------------------------------------
local COOKIES = {
  plain = { "1" }, none = { "1", { same_site = "none" } }, strict = { "1", { same_site = "strict", path = "/x" } },
  partitioned = { "1", { partitioned = true } }, text = { "é=\";\r\n" }, ["__Host-id"] = { "1" },
  domain = { "1", { domain = "example.com", http_only = false, same_site = false } },
  injected = { "1", { path = "/; Secure\r\nX: 1" } }, ["no name"] = { "1" }, large = { ("x"):rep(5000) },
}
routes:get("/cookies/set/:name", function(req, res)
  local name = req.params.name
  return res:cookie(name, COOKIES[name][1], COOKIES[name][2]):text "set"
end)
routes:get("/cookies/clear", function(_, res) return res:clear_cookie("sid", { path = "/x" }):text "gone" end)
routes:get("/cookies/sent", function(req) return req.cookies end)

return routes
