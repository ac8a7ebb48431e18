local srv = require "srv"
local exec, fs = srv.exec, srv.fs

local function fails(code, v, err)
  assert.is_nil(v)
  assert.equal(code, err.code)
  return err
end

local function misuse_of(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok)
  assert.is_truthy(tostring(message):find("^[^:]*exec_spec.lua:%d+: "), message)
  return (message:gsub("^[^:]*:%d+: ", ""))
end

local function comes_true(claim)
  for _ = 1, 2000 do
    collectgarbage()
    if claim() then return end
    srv.sleep(0.005)
  end
  error("this did not come true within ten seconds", 2)
end

local function is_alive(pid)
  local status = fs.read(("/proc/%d/status"):format(pid))
  return status ~= nil and not status:find "State:%s+Z"
end

--- Processes that were started from here, dead ones that nobody has reaped included.
local function children()
  local own = fs.read("/proc/self/stat"):match "^%d+"
  local count = 0
  for _, name in ipairs(fs.list "/proc") do
    local stat = name:find "^%d+$" and fs.read("/proc/" .. name .. "/stat")
    if stat and stat:match "%) %a (%d+)" == own then count = count + 1 end
  end
  return count
end

describe("srv.exec", function()
  it("runs a program with its arguments, as they are", function()
    local result = assert(exec { "printf", "%s|", "a b", "$HOME", "*", "" })
    assert.same({ status = 0, stdout = "a b|$HOME|*||", stderr = "" }, result)
  end)

  it("tells how it ended", function()
    assert.equal(3, exec({ "sh", "-c", "exit 3" }).status)
    assert.equal("SIGKILL", exec({ "sh", "-c", "kill -9 $$" }).status)
    assert.equal("SIGPIPE", exec({ "sh", "-c", "kill -PIPE $$" }).status)   -- which is ignored here, and not there
    local result = assert(exec { "sh", "-c", "echo out; echo err >&2; exit 1" })
    assert.same({ status = 1, stdout = "out\n", stderr = "err\n" }, result)
  end)

  it("gives it input", function()
    assert.equal("hello", exec({ "cat" }, { input = "hello" }).stdout)
    assert.equal("", exec({ "cat" }).stdout)
    assert.equal("", exec({ "cat" }, { input = "" }).stdout)
    local text = ("0123456789"):rep(200000)
    assert.is_true(text == exec({ "cat" }, { input = text }).stdout)   -- more than pipes hold, both ways
    assert.equal(0, exec({ "true" }, { input = text }).status)         -- and none of it is read
    assert.equal("0123", exec({ "head", "-c", "4" }, { input = text }).stdout)
  end)

  it("runs in the app's folder, or another one", function()
    assert.equal(srv.root .. "\n", exec({ "pwd" }).stdout)
    assert.equal(srv.root .. "/async\n", exec({ "pwd" }, { cwd = "async" }).stdout)
    assert.equal("/\n", exec({ "pwd" }, { cwd = "/" }).stdout)
    assert.is_truthy(fails("not_found", exec({ "pwd" }, { cwd = "none" })).message:find "none: there is no such folder")
    fails("invalid", exec({ "pwd" }, { cwd = "a\0b" }))
  end)

  it("changes the environment", function()
    local result = exec({ "sh", "-c", "echo $ADDED:$HOME:${PATH:+path}" }, { env = { ADDED = "x y", HOME = false } })
    assert.equal("x y::path\n", result.stdout)
    assert.is_truthy(misuse_of(function() exec({ "true" }, { env = { ["A=B"] = "x" } }) end):find "no name of an environment variable")
    misuse_of(function() exec({ "true" }, { env = { A = {} } }) end)
  end)

  it("says what cannot be run", function()
    local err = fails("not_found", exec { "no-such-program" })
    assert.equal("no-such-program: there is no such program in $PATH", err.message)
    fails("not_found", exec { "/no/such/program" })
    fails("denied", exec { "/etc/passwd" })
    fails("invalid", exec { "echo", "a\0b" })
    assert.is_truthy(misuse_of(function() exec {} end):find "a program and its arguments were expected")
    assert.is_truthy(misuse_of(function() exec "ls" end):find "a program and its arguments were expected")
    assert.equal("srv.exec: argument 2 is a table", misuse_of(function() exec { "echo", {} } end))
    assert.is_truthy(misuse_of(function() exec({ "true" }, { timout = 1 }) end):find 'did you mean "timeout"')
  end)

  it("ends what takes too long, with what that has started", function()
    local seconds = 1000000 + math.random(1000000)
    local started = srv.monotonic()
    local err = fails("timeout", exec({ "sh", "-c", ("sleep %d & wait"):format(seconds) }, { timeout = "50ms" }))
    assert.equal("sh took longer than 50ms and was ended", err.message)
    assert.is_true(srv.monotonic() - started < 20)
    comes_true(function() return children() == 0 end)
    fails("timeout", exec({ "sh", "-c", ("sleep %d & exit 0"):format(seconds) }, { timeout = "100ms" }))   -- it has left its output to another
    comes_true(function() return children() == 0 end)
    comes_true(function()
      for _, name in ipairs(fs.list "/proc") do
        local line = name:find "^%d+$" and fs.read("/proc/" .. name .. "/cmdline")
        if line and line:find(seconds, 1, true) then return false end
      end
      return true
    end)
  end)

  it("ends what says too much", function()
    fails("too_large", exec({ "yes" }, { limit = "1MiB" }))
    fails("too_large", exec({ "sh", "-c", "yes >&2" }, { limit = 1000 }))
    comes_true(function() return children() == 0 end)
    assert.equal(1000, #exec({ "head", "-c", "1000", "/dev/zero" }, { limit = 1000 }).stdout)
  end)

  it("ends with its task", function()
    local name = os.tmpname()
    local task = srv.spawn(function() return exec { "sh", "-c", "echo $$ > " .. name .. "; sleep 100" } end)
    comes_true(function() return fs.stat(name).size > 0 end)
    local pid = tonumber(fs.read(name))
    assert.is_true(is_alive(pid))
    task:cancel()
    comes_true(function() return not is_alive(pid) end)
    comes_true(function() return children() == 0 end)
    os.remove(name)
  end)

  it("kills what does not hear", function()
    local name = os.tmpname()
    local task = srv.spawn(function() return exec { "sh", "-c", "trap '' TERM; echo $$ > " .. name .. "; while :; do sleep 1; done" } end)
    comes_true(function() return fs.stat(name).size > 0 end)
    task:cancel()
    comes_true(function() return children() == 0 end)
    os.remove(name)
  end)

  it("leaves nothing behind", function()
    local function descriptors() return tonumber(exec({ "sh", "-c", "ls /proc/$PPID/fd | wc -l" }).stdout) end
    local before = descriptors()
    local numbers = {}
    for i = 1, 300 do numbers[i] = i end
    local results = assert(srv.map(numbers, function(i) return exec { "echo", i } end, { limit = 16 }))
    for i = 1, 300 do assert.equal(i .. "\n", results[i].stdout) end
    for _ = 1, 50 do   -- called off at any moment, also while it is being started
      srv.race(function() return exec { "sleep", "100" } end, function() srv.sleep(math.random() * 0.004) end)
    end
    comes_true(function() return children() == 0 end)
    comes_true(function() return descriptors() <= before end) -- one that was still being started ends on the pool
  end)

  it("has a bound", function()
    local task = srv.spawn(function()
      for _ = 1, 256 do assert(exec.start { "sleep", "100" }) end
      return exec.start { "true" }
    end)
    local err = fails("busy", task:wait())
    assert.equal("this worker has 256 processes, and starts no more", err.message)
    comes_true(function() return children() == 0 end)
    assert.equal(0, exec({ "true" }).status)
  end)
end)

describe("a process", function()
  it("is written to and read from while it runs", function()
    local process = assert(exec.start { "cat" })
    assert.is_true(process.stdin:write "one\ntwo\n")
    assert.equal("one", process.stdout:line())
    assert.equal("two", process.stdout:line())
    assert.is_true(is_alive(process.pid))
    assert.is_true(process.stdin:write "three")
    process.stdin:close()
    process.stdin:close()
    assert.equal("three", process.stdout:all())
    assert.equal("", process.stderr:all())
    assert.equal(0, process:wait())
    assert.equal(0, process:wait())
    fails("closed", process.stdin:write "x")
    assert.is_nil(process.stdout:read())
    assert.is_false(process:kill())
    comes_true(function() return children() == 0 end)
  end)

  it("takes no more than pipes hold where nothing is read", function()
    local process = assert(exec.start { "sleep", "100" })
    local written = false
    local writer = srv.spawn(function()
      local ok, err = process.stdin:write(("x"):rep(1000000))
      written = true
      return ok, err
    end)
    srv.sleep(0.02)
    assert.is_false(written)
    process:kill "SIGKILL"
    fails("closed", writer:wait "10s")
    assert.equal("SIGKILL", process:wait())
  end)

  it("hears signals, and so do its own children", function()
    local process = assert(exec.start { "sh", "-c", "trap 'echo usr1; exit 5' USR1; echo ready; while :; do sleep 0.01; done" })
    assert.equal("ready", process.stdout:line())
    fails("timeout", process:wait "10ms")
    assert.is_true(process:kill "SIGUSR1")
    assert.equal("usr1", process.stdout:line())
    assert.equal(5, process:wait())
    assert.is_truthy(misuse_of(function() process:kill "SIGTREM" end):find 'did you mean "SIGTERM"')
    process = assert(exec.start { "sh", "-c", "sleep 100 & echo $!; wait" })
    local grandchild = tonumber(process.stdout:line())
    process:kill()
    assert.equal("SIGTERM", process:wait())
    comes_true(function() return not is_alive(grandchild) end)
  end)

  it("is over with its task, for whoever else has it", function()
    local process = srv.spawn(function() return assert(exec.start { "sleep", "100" }) end):wait()
    fails("closed", process:wait())
    assert.is_nil(process.stdout:read())
    fails("closed", process.stdin:write "x")
    assert.is_false(process:kill())
    comes_true(function() return children() == 0 end)
  end)

  it("wakes whoever waits for it when its task ends", function()
    local process
    local owner = srv.spawn(function()
      process = assert(exec.start { "sleep", "100" })
      srv.sleep(100)
    end)
    comes_true(function() return process end)
    local waiters = {
      srv.spawn(function() return process:wait() end),
      srv.spawn(function() return process.stdout:read() end),
      srv.spawn(function() return process.stderr:all() end),
    }
    srv.sleep(0.001)
    owner:cancel()
    fails("closed", waiters[1]:wait "10s")
    assert.is_nil((waiters[2]:wait "10s"))
    assert.equal("", waiters[3]:wait "10s")
  end)

  it("that is forgotten is reaped when it exits", function()
    for _ = 1, 100 do assert(exec.start { "true" }) end
    collectgarbage()
    collectgarbage()
    comes_true(function() return children() == 0 end)
  end)

  it("has a pipe for one task at a time", function()
    local process = assert(exec.start { "sleep", "100" })
    local reader = srv.spawn(function() return process.stdout:read() end)
    srv.sleep(0.001)
    assert.equal("process.stdout: another task is using it", misuse_of(function() process.stdout:read() end))
    reader:cancel()
    assert.is_nil(process.stdout:read())   -- what was waited for is closed
    process:kill()
  end)
end)
