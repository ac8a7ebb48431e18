--- @NAME@: a chat. What somebody says comes by a socket and goes to all: srv.bus carries it from worker to worker, and
--- from machine to machine where REDIS_URL is set.
local srv = require "srv"
local history = require "history"

local app = srv.app()

app:use(srv.helmet())

local ROOM = "chat"
local BURST, BURST_SECONDS = 20, 10   -- messages from one address

local message = srv.schema {
  name = "string 1..40 trim",
  text = "string 1..500 trim",
}

local function is_too_fast(ip)
  local count = srv.cache:incr("said:" .. ip, 1, BURST_SECONDS)
  return count ~= nil and count > BURST
end

-- Pages of other sites are refused: only our own may open a socket (the option `origins` names others).
app:ws("/socket", { limit = "8KiB" }, {
  open = function(ws)
    assert(ws:subscribe(ROOM)) -- before the history, so that nothing falls between
    for _, said in ipairs(history.all()) do ws:send(said) end
  end,
  message = function(ws, text)
    local given, err = message:decode(text)
    if not given then
      local fault = err.errors and err.errors[1]
      return ws:send { error = fault and fault.path:sub(2) .. " " .. fault.message or "this is no message" }
    end
    if is_too_fast(ws.req.ip) then return ws:send { error = "not so fast, please" } end
    assert(srv.bus.publish(ROOM, history.add(given)))
  end,
})

app:static("/", "public")

return app
