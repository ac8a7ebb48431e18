--- srv.cache (API, section 10): a dictionary of 64 MiB that is there without being made.
local shared = require "srv.async.shared"

local cache, err = shared.local_cache()
if not cache then error(err, 0) end
return cache
