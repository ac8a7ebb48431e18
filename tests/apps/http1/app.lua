-- What the conversations of tests/http1/cases.json speak to: bodies are raw bytes all the way.
local srv = require "srv"

local app = srv.app()

app:get("/", function() return "ok" end)

app:all("/echo", function(req, res)
  local body = req:bytes() or ""
  return res:header("X-Method", req.method):header("X-Len", #body):bytes(body)
end)

app:get("/q", function(req) return req.query end)

app:get("/h/:name", function(req, res)
  local value = req:header(req.params.name)
  if not value then return nil, 404 end
  return res:bytes(value)
end)

app:get("/p/*rest", function(req, res) return res:bytes(req.params.rest) end)

app:post("/slowread", function(req)
  local read = 0
  for piece in req:stream() do
    read = read + #piece
    srv.sleep "5ms"
  end
  return tostring(read)
end)

local BIG = ("a"):rep(1048576)

app:get("/big", function() return BIG end)

app:get("/stream", function()
  local part = -1
  return function()
    if part == 4 then return nil end
    part = part + 1
    if part > 0 then srv.sleep "10ms" end
    return ("part %d\n"):format(part)
  end
end)

-- What a client chose must never become a line of its own in the head.
app:get("/ext/header", function(req, res) return res:header("X-Out", req.query.v):text("ok") end)
app:get("/ext/redirect", function(req, res) return res:redirect(req.query.to) end)
app:get("/ext/cookie", function(req, res) return res:cookie("a", req.query.v):text("ok") end)

return app
