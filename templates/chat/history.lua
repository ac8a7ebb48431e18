--- The last messages, in a dictionary that all workers share.
local srv = require "srv"

local KEPT = 100

local shared = srv.shared "chat"

local M = {}

---@param message { name: string, text: string }
---@return { id: integer, name: string, text: string, at: number }
function M.add(message)
  local id = assert(shared:incr "last")
  local said = { id = id, name = message.name, text = message.text, at = srv.now() }
  assert(shared:set("message:" .. id, said))
  shared:delete("message:" .. id - KEPT)
  return said
end

--- Those after number ID, the oldest first.
---@param id integer
function M.since(id)
  local list, last = {}, shared:get "last" or 0
  for number = math.max(id + 1, last - KEPT + 1), last do
    list[#list + 1] = shared:get("message:" .. number)
  end
  return list
end

return M
