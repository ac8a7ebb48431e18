--- Parts of srv that these apps name and that are not there yet, as far as they need them; one that is there is
--- left as it is.
local srv = require "srv"

local parts = {}

--- srv.NAME(opts) is a plugin that does nothing, or what MAKE gives.
function parts.stand_in(name, make)
  if pcall(function() return srv[name] end) then return end
  rawset(srv, name, make or function() return { name = name, use = function(_, _, next) return next() end } end)
end

--- app:ws takes a route and forgets it.
function parts.no_websocket()
  local router = getmetatable(srv.router()).__index
  router.ws = router.ws or function(self) return self end
end

return parts
