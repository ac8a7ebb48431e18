--- The Doxbee benchmark as an app of srv: GET /sequential and /parallel run it on the worker that
--- answers. bench/run doxbee asks.
---
--- Like the original: 350 uploads to warm up, then all N started in one loop, the resident size read at
--- every EVERYth completion.
local ffi = require "ffi"
local srv = require "srv"

local fakes = require "fakes"

ffi.cdef [[
  struct timespec_doxbee { long s, ns; };
  int clock_gettime(int clock, struct timespec_doxbee *at);
  int open(const char *path, int flags);
  long pread(int fd, void *buffer, size_t bytes, long offset);
]]

local WARM_UP, MONOTONIC, PAGE_MIB = 350, 1, 4096 / 2 ^ 20
local UPLOADS = { sequential = require "sequential", parallel = require "parallel" }

local statm, buffer, now = ffi.C.open("/proc/self/statm", 0), ffi.new "char[256]", ffi.new "struct timespec_doxbee"

local function ms()
  ffi.C.clock_gettime(MONOTONIC, now)
  return tonumber(now.s) * 1e3 + tonumber(now.ns) / 1e6
end

local function resident_mib()
  local text = ffi.string(buffer, ffi.C.pread(statm, buffer, 255, 0))
  return tonumber(text:match "^%d+ (%d+)") * PAGE_MIB
end

--- Starts COUNT uploads in one loop and waits until the last is over; calls on_each(left) at each end.
local function run(upload, parts, count, on_each)
  local left, over, errors = count, srv.event(), 0
  local function one()
    if not pcall(upload, parts, "stream", "a/b") then errors = errors + 1 end
    left = left - 1
    on_each(left)
    if left == 0 then over:set() end
  end
  for _ = 1, count do srv.spawn(one) end
  over:wait()
  return errors
end

local app = srv.app({ timeout = "60s" })

app:get("/:kind<sequential|parallel>", {
  query = {
    n = "integer 1..1000000 = 10000", t = "number 0..10000 = 1", p = "integer 1..1000 = 25", e = "number 0..1 = 0",
    every = "integer 1..1000000 = 1",
  },
}, function(req)
  local query, upload, parts = req.valid.query, UPLOADS[req.params.kind], {}
  for i = 1, query.p do parts[i] = i end
  fakes.delay, fakes.failures = query.t / 1000, query.e

  run(upload, parts, WARM_UP, function() end)
  local before = resident_mib()
  local most, began, every = before, ms(), query.every
  local errors = run(upload, parts, query.n, function(left)
    if left % every == 0 then most = math.max(most, resident_mib()) end
  end)
  return { ms = ms() - began, mib = most - before, errors = errors }
end)

return app
