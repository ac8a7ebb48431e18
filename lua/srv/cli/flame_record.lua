--- Sampling a server from outside: its admin socket begins and ends it, and gives what was seen.
local admin = require "srv.cli.admin"
local flame_profile = require "srv.cli.flame_profile"

local flame_record = {}

---@class srv.cli.FlameRecord
---@field profile srv.cli.FlameProfile
---@field private talk srv.cli.AdminTalk
local Record = {}
Record.__index = Record

--- The next line of the answer goes into the profile.
local function take_line(self)
  local line, err = self.talk:line()
  if not line then return nil, err and err.message or "the server ended before it gave its samples" end
  local taken, problem = self.profile:take(line)
  if not taken then return nil, "the server says: " .. problem end
  return true
end

--- Samples the server of process PID from here on.
---@param pid integer
---@param hz integer
---@return srv.cli.FlameRecord?
---@return string? problem
function flame_record.start(pid, hz)
  local talk, problem = admin.open(pid, ("profile %d"):format(hz))
  if not talk then return nil, problem end
  local self = setmetatable({ talk = talk, profile = flame_profile.new() }, Record)
  local begun
  begun, problem = take_line(self)
  if begun then return self end
  talk:close()
  return nil, problem
end

--- Ends sampling. What was seen until then.
---@return srv.cli.FlameProfile?
---@return string? problem
function Record:stop()
  self.talk:say "stop"
  local taken, problem
  repeat taken, problem = take_line(self) until not taken or self.profile.is_complete
  self.talk:close()
  if not taken then return nil, problem end
  return self.profile
end

return flame_record
