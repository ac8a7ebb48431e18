--- One upload of PARTS inserts at once, and a commit.
local fakes = require "fakes"
local srv = require "srv"

return function(parts)
  local tx = fakes.db.begin()
  srv.map(parts, function(part) return fakes.FileVersion.insert({ index = part }):exec_within(tx) end, { limit = #parts })
  tx:commit()
end
