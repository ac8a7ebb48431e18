--- What an upload works with, after the benchmark's own stand-ins: each operation takes `delay` seconds
--- and gives nothing, each query is a new object with four operations.
local srv = require "srv"

local fakes = { account = {}, delay = 0.001, failures = 0 }

local function operation() srv.sleep(fakes.delay) end

local function query()
  return { exec_within = operation, exec = operation, get = operation, all = operation }
end

local ready = query()

fakes.blobs = { create = function() return { put = operation } end }
fakes.db = { begin = function() return { commit = operation, rollback = operation } end }
fakes.Version = { create_hash = function() return 1 end, insert = query }
fakes.FileVersion = { insert = query }
fakes.File = { by_uuid_or_path = query, where_update = query, create_query = function() return ready end }

function fakes.uuid() return nil end

--- `failures` is how likely it is.
function fakes.maybe_fail()
  if math.random() < fakes.failures then error("intentional failure", 0) end
end

return fakes
