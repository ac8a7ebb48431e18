--- The last messages, in a dictionary that all workers share.
local srv = require "srv"

local KEPT = 100

local shared = srv.shared "chat"

local M = {}

---@param message { name: string, text: string }
---@return { id: string, name: string, text: string, at: number }
function M.add(message)
  local number = assert(shared:incr "last")
  -- Ids grow with time and are nobody else's, another machine's neither.
  local said = { id = srv.crypto.uuid(), name = message.name, text = message.text, at = srv.now() }
  assert(shared:set("message:" .. number, said))
  shared:delete("message:" .. number - KEPT)
  return said
end

--- The oldest first.
function M.all()
  local list, last = {}, shared:get "last" or 0
  for number = math.max(1, last - KEPT + 1), last do
    list[#list + 1] = shared:get("message:" .. number)
  end
  return list
end

return M
