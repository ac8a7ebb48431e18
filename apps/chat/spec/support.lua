--- What the specs share: the app with a database of its own, and people who are signed in.
local srv = require "srv"

local support = {}

--- Every module of the app anew, so that each file begins with empty rooms.
function support.app()
  srv.test.env { DATABASE_URL = srv.test.db().url }
  for name in pairs(package.loaded) do
    if name == "app" or name:find "^chat%." or name:find "^routes%." then package.loaded[name] = nil end
  end
  return require "app"
end

local clients = 0

--- A browser of its own, signed in as NAME.
function support.come_in(app, name)
  clients = clients + 1
  local t = srv.test(app)
  t:post("/sign-in", { form = { name = name }, ip = "192.0.2." .. clients % 250 }):expect(303)
  return t
end

function support.say(t, text, nonce, room)
  local body = { text = text, nonce = nonce }
  return t:post("/rooms/" .. (room or "lobby") .. "/messages", { json = body }):expect(201):json()
end

return support
