--- What async code asks of the machines that run the app together; lua/srv/boot.lua introduces them, since what
--- links them is a database's (lua/srv/db/machines.lua).
local linked = {}

--- The bus of all machines (lua/srv/db/bus.lua); from the first call on, this one hears the others. nil: there are none.
---@type (fun(): { tell: fun(topic: string, v: any) })?
linked.bus = nil

return linked
