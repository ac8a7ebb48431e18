local srv = require "srv"
local fs = srv.fs

local ROOT = os.tmpname()
os.remove(ROOT)

local function path(name) return ROOT .. "/" .. name end

local function fails(code, v, err)
  assert.is_nil(v)
  assert.equal(code, err.code)
  return err
end

local function misuse_of(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok)
  assert.is_truthy(tostring(message):find("^[^:]*fs_spec.lua:%d+: "), message)
  return (message:gsub("^[^:]*:%d+: ", ""))
end

--- Numbers of descriptors that this process has open.
local function open_descriptors()
  local pipe = assert(io.popen "ls /proc/$PPID/fd | wc -l")
  local count = pipe:read "*n"
  pipe:close()
  return count
end

--- What nobody waits for any more ends on a thread of the pool, in its own time.
local function comes_true(claim)
  for _ = 1, 2000 do
    collectgarbage()
    if claim() then return end
    srv.sleep(0.002)
  end
  error("this did not come true within four seconds", 2)
end

before_each(function() assert(fs.mkdir(ROOT)) end)
after_each(function() assert(fs.remove(ROOT, { recursive = true })) end)

describe("srv.fs", function()
  it("reads what it has written, whole", function()
    for _, text in ipairs { "", "hello\n", "a\0b", ("x"):rep(3 * 1024 * 1024 + 7) } do
      assert.is_true(fs.write(path "a", text))
      assert.is_true(text == fs.read(path "a"))
    end
    assert.same({ "a" }, fs.list(ROOT))   -- and leaves nothing else behind
  end)

  it("begins relative paths in the app's folder", function()
    assert.is_truthy(fs.read "async/fs_spec.lua":find "begins relative paths")
    assert.equal("folder", fs.stat(".").kind)
  end)

  it("reads files that do not know their size", function()
    assert.is_truthy(fs.read "/proc/self/status":find "Pid:")
  end)

  it("reads no more than the limit", function()
    fs.write(path "a", ("x"):rep(1000))
    assert.equal(1000, #fs.read(path "a", 1000))
    assert.equal(1000, #fs.read(path "a", "1KiB"))
    fails("too_large", fs.read(path "a", 999))
    fails("too_large", fs.read(path "a", 0))
    fails("too_large", fs.read("/proc/self/status", 10))
    local file = assert(fs.open(path "large", "w"))
    file:seek("set", 10 * 1024 * 1024)
    assert(file:write "x")
    file:close()
    fails("too_large", fs.read(path "large"))
  end)

  it("says what went wrong, with the path", function()
    local err = fails("not_found", fs.read(path "none"))
    assert.equal(404, err.status)
    assert.equal(path "none" .. ": No such file or directory", err.message)
    fs.write(path "a", "")
    fails("not_found", fs.read(path "a/b"))
    fails("not_found", fs.write(path "none/a", ""))
    fails("not_found", fs.list(path "none"))
    fails("not_found", fs.rename(path "none", path "b"))
    fails("not_found", fs.copy(path "none", path "b"))
    fails("not_found", fs.remove(path "none"))
    fails("not_found", fs.remove(path "none", { recursive = true }))
    assert.equal(ROOT .. ": is a folder", fails("fs", fs.read(ROOT)).message)
    assert.equal(ROOT .. ": is a folder", fails("fs", fs.write(ROOT, "")).message)
    fails("exists", fs.mkdir(path "a"))
    fails("exists", fs.open(path "a", "wx"))
  end)

  it("opens no pipe and no device, where a thread could be stuck", function()
    assert(os.execute("mkfifo " .. path "pipe") == 0)
    assert.equal(path "pipe" .. ": is no regular file", fails("fs", fs.read(path "pipe")).message)
    fails("fs", fs.write(path "pipe", "x"))
    fails("fs", fs.append(path "pipe", "x"))
    fails("fs", fs.open(path "pipe", "r+"))
    fails("fs", fs.write("/dev/null", "x"))
    assert.equal("other", fs.stat(path "pipe").kind)
  end)

  it("takes no path that C would cut short", function()
    for _, bad in ipairs { "a\0b", "", ("a/"):rep(3000) } do
      for _, fn in ipairs { fs.read, fs.stat, fs.list, fs.mkdir, fs.remove, fs.touch, fs.open } do
        assert.equal(400, fails("invalid", fn(bad)).status)
      end
      fails("invalid", fs.write(bad, ""))
      fails("invalid", fs.rename(path "a", bad))
      fails("invalid", fs.copy(bad, path "a"))
    end
  end)

  it("replaces in one step: who reads meanwhile reads one or the other", function()
    local texts = { ("a"):rep(200000), ("b"):rep(300000) }
    fs.write(path "a", texts[1])
    srv.all(function()
      for i = 1, 20 do assert(fs.write(path "a", texts[i % 2 + 1])) end
    end, function()
      for _ = 1, 60 do
        local text = assert(fs.read(path "a"))
        assert.is_true(text == texts[1] or text == texts[2])
      end
    end)
    assert.same({ "a" }, fs.list(ROOT))
  end)

  it("keeps the mode of what it replaces, and the link to it", function()
    fs.write(path "script", "1")
    os.execute("chmod 750 " .. path "script" .. "; ln -s script " .. path "link")
    assert(fs.write(path "link", "2"))
    assert.equal("2", fs.read(path "script"))
    assert.equal("0750", fs.stat(path "script").mode)
    assert.equal(0, os.execute("test -L " .. path "link"))
  end)

  it("appends", function()
    assert.is_true(fs.append(path "log", "a\n"))
    assert.is_true(fs.append(path "log", "b\n"))
    assert.equal("a\nb\n", fs.read(path "log"))
  end)

  it("looks at files and folders", function()
    fs.write(path "a", "12345")
    local st = assert(fs.stat(path "a"))
    assert.equal(5, st.size)
    assert.equal("file", st.kind)
    assert.is_true(math.abs(st.mtime - srv.now()) < 60)
    assert.is_truthy(st.mode:find "^0[0-7][0-7][0-7]$")
    assert.equal("folder", fs.stat(ROOT).kind)
  end)

  it("lists in order, hidden ones too", function()
    for _, name in ipairs { "b", "a", ".c", "B" } do fs.touch(path(name)) end
    fs.mkdir(path "d")
    assert.same({ ".c", "B", "a", "b", "d" }, fs.list(ROOT))
    assert.same({}, fs.list(path "d"))
  end)

  it("makes folders with those above, and removes them", function()
    assert.is_true(fs.mkdir(path "a/b/c"))
    assert.is_true(fs.mkdir(path "a/b/c"))
    fs.write(path "a/b/f", "")
    assert.equal(409, fails("not_empty", fs.remove(path "a")).status)
    assert.is_true(fs.remove(path "a/b/c"))
    assert.is_true(fs.remove(path "a", { recursive = true }))
    assert.same({}, fs.list(ROOT))
  end)

  it("removes links, not what they point to", function()
    fs.mkdir(path "kept")
    fs.write(path "kept/file", "x")
    fs.mkdir(path "a")
    os.execute(("ln -s %s %s; ln -s %s %s"):format(path "kept", path "a/link", path "kept", path "link"))
    assert.is_true(fs.remove(path "a", { recursive = true }))
    assert.is_true(fs.remove(path "link", { recursive = true }))
    assert.equal("x", fs.read(path "kept/file"))
  end)

  it("renames over files, not over what is in a folder", function()
    fs.write(path "a", "1")
    fs.write(path "b", "2")
    assert.is_true(fs.rename(path "a", path "b"))
    assert.equal("1", fs.read(path "b"))
    fs.mkdir(path "c/d")
    fs.mkdir(path "e")
    fails("not_empty", fs.rename(path "e", path "c"))
  end)

  it("copies with the mode", function()
    local text = ("x"):rep(2500000)
    fs.write(path "a", text)
    os.execute("chmod 640 " .. path "a")
    assert.is_true(fs.copy(path "a", path "b"))
    assert.is_true(text == fs.read(path "b"))
    assert.equal("0640", fs.stat(path "b").mode)
    fs.write(path "empty", "")
    assert.is_true(fs.copy(path "empty", path "b"))
    assert.equal("", fs.read(path "b"))
    assert.is_true(fs.copy("/proc/self/status", path "c"))
    assert.is_true(#fs.read(path "c") > 100)
    fails("fs", fs.copy(ROOT, path "d"))
  end)

  it("touches", function()
    assert.is_true(fs.touch(path "a"))
    assert.equal("", fs.read(path "a"))
    os.execute("touch -d '2001-01-01' " .. path "a")
    assert.is_true(fs.touch(path "a"))
    assert.is_true(fs.touch(ROOT))
    assert.is_true(srv.now() - fs.stat(path "a").mtime < 60)
  end)

  it("blames the caller's line for what it cannot mean", function()
    assert.equal("srv.fs.read: the path must be a string, not a nil", misuse_of(function() fs.read() end))
    assert.equal("srv.fs.write: what is written must be a string, not a table", misuse_of(function() fs.write("a", {}) end))
    assert.is_truthy(misuse_of(function() fs.read("a", "much") end):find "the limit must be a size")
    assert.is_truthy(misuse_of(function() fs.remove("a", { recurse = true }) end):find 'did you mean "recursive"')
    assert.is_truthy(misuse_of(function() fs.open("a", "rw") end):find 'unknown mode "rw"')
  end)

  it("lets others run meanwhile", function()
    local turns = 0
    srv.race(function()
      for _ = 1, 50 do assert(fs.write(path "a", ("x"):rep(100000))) end
    end, function()
      while true do
        srv.sleep(0)
        turns = turns + 1
      end
    end)
    assert.is_true(turns > 10)
  end)

  it("leaves nothing open or half written when it is called off", function()
    srv.spawn(fs.temp):wait()   -- the folder of all temporary files stays open
    collectgarbage()
    local before = open_descriptors()
    fs.write(path "large", ("x"):rep(9000000))
    local file = assert(fs.open(path "large"))
    for i = 1, 60 do
      srv.race(function() fs.write(path("w" .. i), ("y"):rep(2000000)) end, function() end)
      srv.race(function() fs.copy(path "large", path("c" .. i)) end, function() srv.sleep(0.0005) end)
      srv.race(function() return fs.open(path "large") end, function() end)
      srv.race(function() return fs.temp() end, function() end)
    end
    srv.race(function() return file:read() end, function() end)
    fails("closed", file:read())   -- what was waited for is closed
    comes_true(function() return open_descriptors() <= before end)
    for _, name in ipairs(fs.list(ROOT)) do
      assert.is_truthy(name:find "^%a", name)   -- no draft
      assert.is_true(fs.stat(path(name)).size >= 2000000, name)
    end
  end)
end)

describe("an open file", function()
  it("is a reader", function()
    fs.write(path "a", "one\ntwo\r\nthree")
    local file = assert(fs.open(path "a"))
    assert.equal("one", file:line())
    assert.equal("tw", file:read(2))
    assert.equal("o\r\nthree", file:all())
    assert.is_nil(file:read())
    assert.is_true(file:close())
    assert.is_true(file:close())
    fs.write(path "a", ("x"):rep(200000))
    local length = 0
    for chunk in assert(fs.open(path "a")) do length = length + #chunk end
    assert.equal(200000, length)
    fails("too_large", assert(fs.open(path "a")):all { limit = 199999 })
  end)

  it("writes where it stands, also behind a line that was read", function()
    fs.write(path "a", "one\ntwo\nthree\n")
    local file = assert(fs.open(path "a", "r+"))
    assert.equal("one", file:line())
    assert.equal(4, file:seek())
    assert.is_true(file:write "TWO")
    assert.equal("\nthree\n", file:all())
    assert.equal(14, file:seek "end")
    assert.equal(0, file:seek "set")
    assert.equal("one\nTWO\nthree\n", file:all())
    assert.equal(2, file:seek("end", -12))
    assert.equal("e", file:read(1))
    fails("fs", file:seek("set", -1))
    assert.equal(3, file:seek())
    file:close()
  end)

  it("has modes", function()
    local file = assert(fs.open(path "a", "w"))
    assert.is_true(file:write "12345")
    fails("fs", file:read())
    file:close()
    file = assert(fs.open(path "a", "a+"))
    assert.equal("123", file:read(3))
    assert.is_true(file:write "6")
    assert.equal(6, file:seek())
    file:seek("set", 1)
    assert.equal("23456", file:all())
    file:close()
    file = assert(fs.open(path "a", "w+"))
    assert.equal(0, file:seek "end")
    file:close()
    file = assert(fs.open(path "a"))
    fails("fs", file:write "x")
    file:close()
    fails("closed", file:write "x")
    assert.is_nil(file:read())
    assert(fs.open(path "b", "wx")):close()
    fails("not_found", fs.open(path "none", "r+"))
  end)

  it("is for one task at a time", function()
    fs.write(path "a", "x")
    local file = assert(fs.open(path "a"))
    local message
    srv.all(function() return file:read() end, function()
      local ok, err = pcall(file.read, file)
      assert.is_false(ok)
      message = err
      return true
    end)
    assert.is_truthy(message:find "another task is using this file")
    file:close()
  end)

  it("ends with who forgets it", function()
    collectgarbage()
    local before = open_descriptors()
    fs.write(path "a", "x")
    for _ = 1, 50 do assert(fs.open(path "a")) end
    comes_true(function() return open_descriptors() <= before end)
  end)
end)

describe("a temporary file", function()
  it("goes with its task", function()
    local name = srv.spawn(function()
      local file = assert(fs.temp { suffix = ".txt" })
      assert.is_true(file:write "hello")
      file:seek "set"
      assert.equal("hello", file:all())
      file:close()
      assert.equal("hello", fs.read(file.path))
      return file.path
    end):wait()
    assert.is_truthy(name:find "%.txt$")
    comes_true(function() return fs.stat(name) == nil end)
    assert.is_truthy(misuse_of(function() fs.temp { suffix = "/../x" } end):find "a suffix")
  end)

  it("may be kept under another name", function()
    srv.spawn(function()
      local file = assert(fs.temp())
      assert(file:write "kept")
      assert(fs.copy(file.path, path "kept"))
    end):wait()
    assert.equal("kept", fs.read(path "kept"))
  end)

  it("is its owner's alone", function()
    assert.equal("0600", fs.stat(assert(fs.temp()).path).mode)
  end)

  describe("a file and the task that opened it", function()
    local function open_now()
      local count, pipe = 0, assert(io.popen(("ls -l /proc/%d/fd"):format(srv.fs.read("/proc/self/stat"):match "^%d+")))
      for line in pipe:lines() do count = count + (line:find("kept.txt", 1, true) and 1 or 0) end
      pipe:close()
      return count
    end

    before_each(function() assert(srv.fs.write("kept.txt", "abc")) end)
    after_each(function() srv.fs.remove "kept.txt" end)

    it("closes when that is cancelled", function()
      local file
      local task = srv.spawn(function()
        file = assert(srv.fs.open "kept.txt")
        srv.sleep "1h"
      end)
      repeat srv.sleep "1ms" until file
      assert.equal(1, open_now())
      task:cancel()
      repeat srv.sleep "1ms" until open_now() == 0
      local bytes, err = file:read()
      assert.is_nil(bytes)
      assert.equal("closed", err.code)
    end)

    it("stays open when that returns: whoever was given it reads on, and closes it with his own end", function()
      local file
      local outer = srv.spawn(function()
        file = srv.all { function() return (assert(srv.fs.open "kept.txt")) end }
        srv.sleep "1h"
      end)
      repeat srv.sleep "1ms" until file
      assert.equal("abc", file:all())
      outer:cancel()
      repeat srv.sleep "1ms" until open_now() == 0
    end)
  end)
end)
