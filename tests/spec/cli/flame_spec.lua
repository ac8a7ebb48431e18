--- What srv flame makes of a server's answer: sums, exports, comparisons, and the columns of the page.
local crypto = require "srv.core.crypto"
local gzip = require "srv.core.gzip"
local json = require "srv.base.json"
local flame_diff = require "srv.cli.flame_diff"
local flame_export = require "srv.cli.flame_export"
local flame_pack = require "srv.cli.flame_pack"
local flame_page = require "srv.cli.flame_page"
local flame_profile = require "srv.cli.flame_profile"
local flame_text = require "srv.cli.flame_text"

local function read_lines(lines)
  local profile = flame_profile.new()
  for _, line in ipairs(lines) do assert(profile:take(line)) end
  profile.app = "/srv/apps/slow"
  return profile
end

local function read_sample(change)
  local lines = {}
  for text in io.lines "tests/support/profile_sample.jsonl" do
    lines[#lines + 1] = assert(json.decode((change or function(t) return t end)(text)))
  end
  return read_lines(lines)
end

--- A profile of STACKS: { "root;child;leaf", count, state?, worker? }, of Lua functions of the app.
local function profile_of(stacks)
  local lines, ids, count = { { profiling = true, hz = 1000, workers = 1 } }, {}, 0
  for _, stack in ipairs(stacks) do
    local places = {}
    for name in stack[1]:gmatch "[^;]+" do
      if not ids[name] then
        ids[name], count = count, count + 1
        lines[#lines + 1] = { frame = ids[name], name = name, file = "a.lua", line = 2, defined = 1, kind = "app" }
      end
      places[#places + 1] = ids[name]
    end
    lines[#lines + 1] = { worker = stack[4] or 0, state = stack[3] or "lua", stack = places, count = stack[2] }
  end
  local samples = 0
  for _, stack in ipairs(stacks) do samples = samples + stack[2] end
  lines[#lines + 1] = { done = true, samples = samples, waits = 0, lost = 0, seconds = 1, hz = 1000, wait_ms = 10, silent = {} }
  return read_lines(lines)
end

local function find(list, name)
  for _, entry in ipairs(list) do
    if entry.name == name then return entry end
  end
  error("no " .. name)
end

describe("a profile", function()
  it("takes a server's answer whole", function()
    local profile = read_sample()
    assert.equal(3826, profile.samples)
    assert.equal(2424, profile.waits)
    assert.equal(2, profile.workers)
    assert.is_true(profile.is_complete)
  end)

  it("puts the lines of a function together, the one with the most time of its own first", function()
    local hottest = read_sample():functions()[1]
    assert.same({ "find", "cache.lua:14", "app" }, { hottest.name, hottest.place, hottest.kind })
    assert.equal(1411 + 1390 + 203, hottest.self)
    assert.same({ [17] = 1411 + 1390, [18] = 203 }, hottest.lines)
    assert.same({ jit = 2801, lua = 203 }, hottest.states)
    assert.equal(1411 + 1390 + 203 + 97 + 44 + 3, hottest.total)
  end)

  it("counts a function that calls itself once", function()
    local profile = profile_of { { "a;b;a;b", 10 }, { "a", 5 } }
    assert.same({ 5, 15 }, { find(profile:functions(), "a").self, find(profile:functions(), "a").total })
    assert.same({ 10, 10 }, { find(profile:functions(), "b").self, find(profile:functions(), "b").total })
  end)

  it("calls a function that nobody has named by its place", function()
    assert.equal(0, find(read_sample():functions(), "routes/a.lua:10").self)
  end)

  it("knows what the compiler and the collector do as theirs", function()
    local functions = read_sample():functions()
    assert.equal("compile", find(functions, "lj_trace_ins").kind)
    assert.equal("gc", find(functions, "gc_sweep").kind)
    assert.equal("c", find(functions, "lj_str_new").kind)
  end)

  it("keeps what C called before the collector as C", function()
    local profile = read_lines {
      { frame = 0, name = "f", file = "a.lua", line = 1, defined = 1, kind = "app" },
      { frame = 1, name = "lj_str_new", kind = "c" }, { frame = 2, name = "lj_gc_step", kind = "gc" },
      { frame = 3, name = "free", kind = "c" },
      { worker = 0, state = "gc", stack = { 0, 1, 2, 3 }, count = 4 },
      { worker = 0, state = "c", stack = { 0, 3 }, count = 1 },
    }
    local kinds = {}
    for _, entry in ipairs(profile:functions()) do kinds[#kinds + 1] = entry.name .. " " .. entry.kind .. " " .. entry.self end
    table.sort(kinds)
    assert.same({ "f app 0", "free c 1", "free gc 4", "lj_gc_step gc 0", "lj_str_new c 0" }, kinds)
  end)

  it("shows the collector where no function of it was seen", function()
    local profile = profile_of { { "f", 7, "gc" }, { "g", 3, "compile" } }
    assert.equal(7, find(profile:functions(), "(garbage collector)").self)
    assert.equal(3, find(profile:functions(), "(JIT compiler)").self)
    assert.equal(0, find(profile:functions(), "f").self)
  end)

  it("names the line of the app, with all that it has called", function()
    local lines = read_sample():app_lines()
    assert.same({ place = "cache.lua:17", name = "find", count = 2801 }, lines[1])
    assert.same({ place = "cache.lua:18", name = "find", count = 203 + 97 + 44 + 3 }, lines[2])
  end)

  it("names where tasks wait, for what and for how long", function()
    local sites = read_sample():wait_sites()
    assert.same({ wait = "postgres", place = "routes/b.lua:7", task = "GET /b", count = 2304, seconds = 23.04 }, sites[1])
    assert.same({ "sleep", "routes/a.lua:12", "GET /a" }, { sites[2].wait, sites[2].place, sites[2].task })
  end)

  it("passes on what the server says is wrong", function()
    local taken, problem = flame_profile.new():take { error = "busy: somebody else profiles" }
    assert.is_nil(taken)
    assert.equal("busy: somebody else profiles", problem)
  end)

  it("takes no stack with a frame that was not told", function()
    local taken, problem = flame_profile.new():take { worker = 0, state = "lua", stack = { 3 }, count = 1 }
    assert.is_nil(taken)
    assert.truthy(problem:find("frame 3", 1, true))
  end)
end)

describe("folded stacks", function()
  it("are a line for each distinct stack, of functions, without waits", function()
    local text = flame_export.folded(read_sample())
    assert.truthy(text:find("GET /a;call (srv/web/call.lua:71);routes/a.lua:10;find (cache.lua:14) 3004\n", 1, true))
    assert.is_nil(text:find("postgres", 1, true))
    local sum = 0
    for line in text:gmatch "[^\n]+" do sum = sum + tonumber(line:match " (%d+)$") end
    assert.equal(3826, sum)
  end)

  it("have no separator in a name", function()
    local profile = read_sample(function(text) return (text:gsub('"name":"find"', '"name":"fi;nd\\nx"')) end)
    assert.truthy(flame_export.folded(profile):find("fi,nd x (cache.lua:14) 3004", 1, true))
  end)
end)

--- What speedscope's schema asks of a file with sampled profiles.
local function check_speedscope(all)
  assert.equal("https://www.speedscope.app/file-format-schema.json", all["$schema"])
  local frames = #all.shared.frames
  for _, frame in ipairs(all.shared.frames) do
    assert.equal("string", type(frame.name))
    assert.truthy(frame.file == nil or type(frame.file) == "string")
    assert.truthy(frame.line == nil or frame.line > 0)
  end
  assert.truthy(all.activeProfileIndex < #all.profiles)
  for _, profile in ipairs(all.profiles) do
    assert.equal("sampled", profile.type)
    assert.equal("seconds", profile.unit)
    assert.equal("string", type(profile.name))
    assert.equal(#profile.samples, #profile.weights)
    local sum = 0
    for i, sample in ipairs(profile.samples) do
      sum = sum + profile.weights[i]
      for _, place in ipairs(sample) do assert.truthy(place >= 0 and place < frames and place % 1 == 0) end
    end
    assert.truthy(math.abs(profile.endValue - profile.startValue - sum) < 1e-9)
  end
end

describe("speedscope's JSON", function()
  it("follows its schema, one profile for each worker and one for its waits", function()
    local all = assert(json.decode(flame_export.speedscope(read_sample())))
    check_speedscope(all)
    local names = {}
    for i, profile in ipairs(all.profiles) do names[i] = profile.name end
    assert.same({ "worker 0", "worker 0, waiting", "worker 1", "worker 1, waiting" }, names)
    assert.truthy(math.abs(all.profiles[1].endValue - 2.137) < 1e-9)
    assert.truthy(math.abs(all.profiles[4].endValue - 23.04) < 1e-9)
  end)
end)

describe("our own JSON", function()
  it("is read again as it was", function()
    local profile = read_sample()
    profile.title = "a title"
    local again = assert(flame_export.read_json(flame_export.json(profile)))
    assert.same(profile:functions(), again:functions())
    assert.same(profile:wait_sites(), again:wait_sites())
    assert.same({ "a title", 3826, 2.004 }, { again.title, again.samples, again.seconds })
  end)

  it("is refused when it is another program's, or broken", function()
    local sound = flame_export.json(read_sample())
    for _, text in ipairs {
      "", "[]", "{}", "null", '{"format":1}', '{"format":2,"frames":[],"stacks":[]}', sound:sub(1, -2),
      (sound:gsub('"kind":"app"', '"kind":"x"', 1)), (sound:gsub('"frames":%[1,', '"frames":[99999,', 1)),
      (sound:gsub('"state":"c"', '"state":"wait"', 1)), (sound:gsub('"count":%d+', '"count":"x"', 1)),
    } do
      local profile, problem = flame_export.read_json(text)
      assert.is_nil(profile, text:sub(1, 80))
      assert.equal("string", type(problem))
    end
  end)
end)

describe("a comparison", function()
  it("is of shares, so that a run of twice the length is the same", function()
    for _, row in ipairs(flame_diff.compare(profile_of { { "a;b", 30 }, { "a", 10 } }, profile_of { { "a;b", 60 }, { "a", 20 } })) do
      assert.equal(0, row.change)
    end
  end)

  it("has the largest change first, and says what is new and what is gone", function()
    local rows = flame_diff.compare(profile_of { { "a;old", 80 }, { "a;b", 20 } }, profile_of { { "a;new", 40 }, { "a;b", 60 } })
    assert.same({ "old", "gone", -0.8 }, { rows[1].name, rows[1].state, rows[1].change })
    assert.same({ "b", 0.2, 0.6 }, { find(rows, "b").name, find(rows, "b").old, find(rows, "b").new })
    assert.equal("new", find(rows, "new").state)
    assert.is_nil(find(rows, "a").state)
  end)

  it("knows a function that has moved in its file by its name, and one without a name as well", function()
    local new = read_sample()
    local old = read_sample(function(text)
      return (text:gsub('"defined":(%d+)', function(n) return ('"defined":%d'):format(n + 5) end))
    end)
    flame_diff.align(old, new)
    for _, row in ipairs(flame_diff.compare(old, new)) do assert.same({ 0, nil }, { row.change, row.state }) end
  end)

  it("leaves functions without a name apart where it cannot tell which is which", function()
    local function of(...)
      local lines = {}
      for i, defined in ipairs { ... } do
        lines[#lines + 1] = { frame = i, file = "a.lua", line = defined, defined = defined, kind = "app" }
        lines[#lines + 1] = { worker = 0, state = "lua", stack = { i }, count = 10 }
      end
      local profile = read_lines(lines)
      profile.samples = 10 * select("#", ...)
      return profile
    end
    local old, new = of(1, 20), of(1, 24, 30)
    flame_diff.align(old, new)
    assert.equal("gone", find(flame_diff.compare(old, new), "a.lua:20").state)
  end)

  it("is told in words", function()
    local text = flame_text.changes(profile_of { { "a;slow", 80 }, { "a", 20 } }, profile_of { { "a", 100 } })
    assert.truthy(text:find("%-80%.0 .*slow.*gone"))
  end)
end)

--- Stacks of a packed profile as they were: { "worker state wait: root;leaf" = count }.
local function unpack_stacks(packed)
  local stacks, open, at, places = {}, {}, 0, { [0] = "" }
  local tree = packed.tree
  for n, up in ipairs(tree.up) do
    for _ = 1, up do open[#open] = nil end
    local frame = packed.frames[tree.frame[n] + 1]
    open[#open + 1] = ("%s %s:%d"):format(tostring(frame[2]), tostring(frame[3]), frame[5])
    places[n] = table.concat(open, ";")
  end
  for i, further in ipairs(tree.at) do
    at = at + further
    local sort = packed.sorts[tree.sort[i] + 1]
    local key = ("%d %s %s: %s"):format(sort[1], sort[2], tostring(sort[3]), places[at])
    stacks[key] = (stacks[key] or 0) + tree.count[i]
  end
  return stacks
end

local function stacks_of(profile)
  local stacks = {}
  for _, stack in ipairs(profile.stacks) do
    local names = {}
    for i, id in ipairs(stack.frames) do
      local frame = profile.frames[id]
      names[i] = ("%s %s:%d"):format(frame.name or "0", frame.file or "0", frame.line)
    end
    local key = ("%d %s %s: %s"):format(stack.worker, stack.state, stack.wait or "0", table.concat(names, ";"))
    stacks[key] = (stacks[key] or 0) + stack.count
  end
  return stacks
end

describe("a packed profile", function()
  it("holds every stack", function()
    local profile = read_sample()
    assert.same(stacks_of(profile), unpack_stacks(flame_pack.pack(profile)))
  end)

  it("holds stacks that end within others, and those without a frame", function()
    local profile = profile_of { { "a;b;c", 1 }, { "a", 2 }, { "d", 3, "lua", 1 }, { "a;b", 4 }, { "", 5 } }
    assert.same(stacks_of(profile), unpack_stacks(flame_pack.pack(profile)))
  end)

  it("puts together what is rare where it was called, and loses no sample", function()
    local profile = profile_of { { "a;b", 50 }, { "a;c;x", 1 }, { "a;d", 2 }, { "a", 9 } }
    local stacks = unpack_stacks(flame_pack.pack(profile, 10))
    assert.same({ ["0 lua 0: a a.lua:2"] = 9, ["0 lua 0: a a.lua:2;b a.lua:2"] = 50, ["0 lua 0: a a.lua:2;(rare) 0:0"] = 3 }, stacks)
  end)
end)

--- What gzip makes of PACKED.
local function unpack_text(packed)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  file:write(packed)
  file:close()
  local pipe = assert(io.popen("gzip -dc < " .. path))
  local text = pipe:read "*a"
  pipe:close()
  os.remove(path)
  return text
end

describe("a packed text", function()
  it("is what it was, be it empty, long or without any order", function()
    local random = crypto.random(65536, "raw")
    for _, text in ipairs { "", "a", ("srv "):rep(1e6), random:rep(2), random .. crypto.random(65536, "raw") .. random:reverse() } do
      local packed = gzip.pack(text)
      assert.is_true(unpack_text(packed) == text)
    end
  end)
end)

describe("the page", function()
  it("asks nobody for anything, and is small", function()
    local html = flame_page.write(read_sample(), read_sample())
    assert.truthy(html:find("default-src 'none'", 1, true))
    assert.is_nil(html:find("<!%-%- include"))
    assert.is_nil(html:find "https?://")
    assert.is_nil(html:find "eval%(")
    assert.truthy(#html < 150 * 1024)
  end)

  it("stays small with more distinct stacks than it has room for", function()
    local stacks, random = {}, 1
    for i = 1, 20000 do
      local names = {}
      for depth = 1, 12 do
        random = (random * 1103515245 + 12345) % 2 ^ 31
        names[depth] = ("f%d_%d"):format(depth, math.floor(random / 65536) % 40)
      end
      stacks[i] = { table.concat(names, ";"), 1 + (i % 50 == 0 and 400 or 0) }
    end
    local html = flame_page.write(profile_of(stacks))
    assert.truthy(#html < 150 * 1024, #html)
  end)
end)

describe("the summary", function()
  it("points at the guilty function, its line, and the place that waits", function()
    local text = flame_text.summary(read_sample())
    assert.truthy(text:find("78.5 %   82.3 %  find", 1, true), text)
    assert.truthy(text:find("73.2 %  cache.lua:17", 1, true), text)
    assert.truthy(text:find("23.0 s  postgres   routes/b.lua:7", 1, true), text)
    assert.truthy(text:find("compiled Lua 73.2 %", 1, true), text)
  end)
end)
