--- Three routes that send a number with its entity tag, and are slower than they look: docs/tutorial/slow-rest.md
--- finds out why with srv bench, srv doctor and srv flame. After nearform/slow-rest-api.
local srv = require "srv"
local etag = require "etag"
local entity = require "entity"

local app = srv.app()

local function payload()
  local sum = 0
  for _ = 1, 100 do sum = sum + os.time() * math.random() end
  return tostring(sum)
end

local function tagged_with(algorithm)
  return function(_, res)
    res:header("etag", '"' .. etag(entity, algorithm) .. '"')
    return payload()
  end
end

app:get("/a", tagged_with "md5")
app:get("/b", tagged_with "sha256")
app:get("/c", tagged_with "sha512")

return app
