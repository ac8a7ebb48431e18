--- The tags of earlier days: 2,500 of them, each with what it stands for as the numbers of its bytes. The original reads
--- them from a file of 568 KB; here they are made from a seed, the same each time.
local srv = require "srv"

local COUNT, SEED = 2500, 20161001

local state = SEED

--- Park and Miller's generator: exact in a double, so the same on every machine.
local function byte()
  state = state * 16807 % 2147483647
  return 32 + state % 95
end

local tags = {}
while COUNT > 0 do
  local bytes = { byte(), byte(), byte(), byte() }
  local tag = srv.crypto.hash("md5", string.char(unpack(bytes)), "base64")
  if not tags[tag] then
    tags[tag] = { algorithm = "md5", output = "base64", content = bytes }
    COUNT = COUNT - 1
  end
end

return tags
