local options = require "srv.cli.options"

local line = options.new("thing", "URL...", "does it", {
  { "c", "connections", "N", "open at once", kind = "count", default = 10, heading = "Load:" },
  { "d", "duration", "TIME", "for so long", kind = "duration" },
  { "R", "overall-rate", "N", "a second", kind = "number" },
  { "H", "headers", "NAME=VALUE", "a field", many = true },
  { "j", "json", false, "as JSON" },
  { "l", "latency", false, "all of it" },
  { false, "watch", false, "looks again", default = true },
  { "b", "body", "TEXT", "of each" },
  { "o", "open", "NAME", "in a browser", optional = true },
}, "Examples:\n  srv thing URL\n")

--- What was written to stdout and stderr while FN ran, and what it returned.
local function captured(fn)
  local said, out, err = { "", "" }, io.stdout, io.stderr
  local function into(i) return { write = function(_, ...) said[i] = said[i] .. table.concat { ... } end } end
  rawset(io, "stdout", into(1))
  rawset(io, "stderr", into(2))
  local results = { pcall(fn) }
  rawset(io, "stdout", out)
  rawset(io, "stderr", err)
  assert(results[1], results[2])
  return said[1], said[2], results[2], results[3]
end

local function refuses(args)
  local _, err, opts, status = captured(function() return line:read(args) end)
  assert.is_nil(opts)
  assert.equal(2, status)
  assert.matches("^srv thing: .*\n.*srv thing %-%-help", err)
  return err
end

describe("a command's options", function()
  it("are the same with a letter or a name, apart or together", function()
    for _, args in ipairs { { "-c", "5" }, { "-c5" }, { "-c=5" }, { "--connections", "5" }, { "--connections=5" } } do
      assert.equal(5, line:read(args).connections)
    end
    assert.equal(10, line:read({}).connections)
  end)

  it("have names as other tools spell them", function()
    assert.equal(2.5, line:read { "--overallRate", "2.5" }["overall-rate"])
  end)

  it("have switches that stand together and that can be turned off", function()
    local opts = line:read { "-lj" }
    assert.is_true(opts.latency and opts.json and opts.watch)
    assert.is_false(line:read({ "--no-watch" }).watch)
    assert.is_false(line:read({ "--json=false" }).json)
    assert.same({ true, 7 }, { line:read({ "-jc7" }).json, line:read({ "-jc7" }).connections })
  end)

  it("leave what is no option, in any order, and all behind --", function()
    local opts, rest = line:read { "a", "-c", "1", "-", "b", "--", "-x", "--bogus" }
    assert.equal(1, opts.connections)
    assert.same({ "a", "-", "b", behind = { "-x", "--bogus" } }, rest)
  end)

  it("are lists where they may come again, and empty where their value may be missing", function()
    local opts = line:read { "-H", "a=1", "--headers", "b=2", "-o", "-j" }
    assert.same({ "a=1", "b=2" }, opts.headers)
    assert.equal("", opts.open)
    assert.is_true(opts.json)
    assert.equal("name", line:read({ "-o", "name" }).open)
  end)

  it("read durations in words or seconds, and values that begin with a dash", function()
    assert.equal(90, line:read({ "-d", "90" }).duration)
    assert.equal(0.25, line:read({ "-d", "250ms" }).duration)
    assert.equal("-1", line:read({ "-b", "-1" }).body)
    assert.equal("a=b", line:read({ "--body=a=b" }).body)
  end)

  it("are refused if nobody can mean them, with the nearest name", function()
    assert.matches('unknown option "%-%-conections".*connections', refuses { "--conections", "5" })
    assert.matches('unknown option "%-q"', refuses { "-q" })
    assert.matches('must be a whole number, not "many"', refuses { "-c", "many" })
    assert.matches('not "%-5"', refuses { "-c", "-5" })
    assert.matches("must be a duration", refuses { "-d", "soon" })
    for _, text in ipairs { "fast", "nan", "inf", "1e999" } do assert.matches("must be a number", refuses { "-R", text }) end
    assert.matches("%-%-connections wants N behind it", refuses { "-c" })
  end)

  it("are told by --help", function()
    for _, word in ipairs { "--help", "-h" } do
      local out, _, opts, status = captured(function() return line:read { word, "--bogus" } end)
      assert.is_nil(opts)
      assert.equal(0, status)
      assert.matches("^srv thing URL%.%.%. %- does it\n", out)
      assert.matches("does it\n\nLoad:\n\n  %-c, %-%-connections N +open at once %(default 10%)\n", out)
      assert.matches("Examples:", out)
    end
  end)
end)
