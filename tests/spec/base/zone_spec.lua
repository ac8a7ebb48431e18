local zone = require "srv.base.zone"
local ffi = require "ffi"

ffi.cdef "int setenv(const char *name, const char *value, int overwrite); int unsetenv(const char *name);"

--- Runs FN with an environment variable set.
local function with_env(name, value, fn)
  local before = os.getenv(name)
  ffi.C.setenv(name, value, 1)
  local ok, err = pcall(fn)
  if before then ffi.C.setenv(name, before, 1) else ffi.C.unsetenv(name) end
  if not ok then error(err, 0) end
end

local function at(name, t) return ("%d %s"):format(zone.at(assert(zone.find(name)), t)) end

--- The modules as they are in a VM that has read no zone yet.
local function fresh()
  package.loaded["srv.base.zone"] = nil
  local module = require "srv.base.zone"
  package.loaded["srv.base.zone"] = zone
  return module
end

describe("zones", function()
  it("may be UTC or a fixed offset", function()
    assert.equal("0 UTC", at("UTC", 0))
    assert.equal("7200 +02:00", at("+02:00", 0))
    assert.equal("-16200 -0430", at("-0430", 0))
    assert.equal("3600 +01", at("+01", 0))
    for _, wrong in ipairs { "+24:00", "+02:60", "+2", "+02:", "+02:0", "02:00", "+02:00:00", "+ 2:00" } do
      assert.is_nil(zone.offset(wrong), wrong)
    end
  end)

  it("are read from the machine's database", function()
    assert.equal("3600 CET", at("Europe/Berlin", 1711846799))
    assert.equal("7200 CEST", at("Europe/Berlin", 1711846800))
    assert.equal("7200 CEST", at("Europe/Berlin", 1711846800.5))
    assert.equal("-14400 EDT", at("America/New_York", 4118065200)) -- 2100: by the rule at the end
    assert.equal("20700 +0545", at("Asia/Kathmandu", 1e9))
    assert.equal("-12600 NST", at("America/St_Johns", 0))
    assert.equal(zone.find "Europe/Berlin", zone.find "Europe/Berlin")
  end)

  it("that are not there are told from a machine without any", function()
    for _, name in ipairs { "Mars/Olympus", "Europe", "../../etc/passwd", "", "leapseconds", ("x"):rep(100) } do
      local found, err = zone.find(name)
      assert.is_nil(found)
      assert.equal("invalid", err.code)
      assert.matches("there is no time zone", err.message, 1, true)
    end
    local open = io.open
    io.open = function() return nil end -- luacheck: ignore 122
    local found, err = fresh().find "Europe/Berlin"
    io.open = open -- luacheck: ignore 122
    assert.is_nil(found)
    assert.equal("fs", err.code)
    assert.matches("no time zone database (tzdata) in /usr/share/zoneinfo", err.message, 1, true)
  end)

  it("that cannot be read say which file", function()
    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder) == 0)
    local file = assert(io.open(folder .. "/Broken", "w"))
    file:write "TZif2 and no more"
    file:close()
    with_env("TZDIR", folder, function()
      local found, err = fresh().find "Broken"
      assert.is_nil(found)
      assert.equal("fs", err.code)
      assert.matches(folder .. "/Broken: no TZif file", err.message, 1, true)
    end)
    os.execute("rm -r " .. folder)
  end)

  it("are bounded in number", function()
    for minutes = 0, 500 do
      local name = ("+%02d:%02d"):format(minutes / 60, minutes % 60)
      assert.equal(minutes * 60, (zone.at(assert(zone.find(name)), 0)))
    end
  end)

  it("may be the machine's own, which TZ names", function()
    local function here(setting)
      local name
      with_env("TZ", setting, function()
        local module = fresh()
        name = ("%d %s"):format(module.at(assert(module.find "local"), 1720000000))
      end)
      return name
    end
    assert.equal("7200 CEST", here "Europe/Berlin")
    assert.equal("7200 CEST", here ":Europe/Berlin")
    assert.equal("7200 CEST", here "/usr/share/zoneinfo/Europe/Berlin")
    assert.equal("7200 CEST", here "CET-1CEST,M3.5.0,M10.5.0/3")
    assert.equal("0 UTC", here "")
    with_env("TZ", "/nowhere", function()
      local _, err = fresh().find "local"
      assert.equal("TZ: cannot read /nowhere", err.message)
    end)
  end)
end)
