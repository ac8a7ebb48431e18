local zone_file = require "srv.base.zone_file"

local function u32(n)
  n = n % 2 ^ 32
  return string.char(math.floor(n / 2 ^ 24), math.floor(n / 2 ^ 16) % 256, math.floor(n / 2 ^ 8) % 256, n % 256)
end

local function i64(n) return u32(math.floor(n / 2 ^ 32)) .. u32(n) end

local function header(version, leaps, times, types, chars)
  return "TZif" .. version .. ("\0"):rep(15) .. u32(0) .. u32(0) .. u32(leaps) .. u32(times) .. u32(types) .. u32(chars)
end

--- A file whose second part has these changes ({ moment, index }), types ({ offset, name_at }) and names.
local function file(given)
  local leaps = given.leaps or 0
  local names = given.names or "LMT\0AAA\0"
  local parts = {
    header(given.version or "2", 0, 0, 1, 1), u32(0), "\0\0", "\0",
    header(given.version or "2", leaps, #given.changes, #given.types, #names),
  }
  for _, change in ipairs(given.changes) do parts[#parts + 1] = i64(change[1]) end
  for _, change in ipairs(given.changes) do parts[#parts + 1] = string.char(change[2]) end
  for _, kind in ipairs(given.types) do parts[#parts + 1] = u32(kind[1]) .. "\0" .. string.char(kind[2]) end
  parts[#parts + 1] = names .. ("\0"):rep(leaps * 12) .. (given.footer or "\nBBB-2\n")
  return table.concat(parts)
end

local TYPES = { { -100, 0 }, { 3600, 4 } }
local CHANGES = { { -2 ^ 40, 1 }, { 0, 0 }, { 1000, 1 } }

local function at(parsed, t) return ("%d %s"):format(zone_file.at(parsed, t)) end

describe("files of time zones", function()
  it("tell what holds before, between and after their changes", function()
    local parsed = assert(zone_file.parse(file { types = TYPES, changes = CHANGES }))
    assert.equal("-100 LMT", at(parsed, -2 ^ 40 - 1))
    assert.equal("3600 AAA", at(parsed, -2 ^ 40))
    assert.equal("-100 LMT", at(parsed, 999.5))
    assert.equal("7200 BBB", at(parsed, 1000))
    parsed = assert(zone_file.parse(file { types = TYPES, changes = CHANGES, footer = "\n\n" }))
    assert.equal("3600 AAA", at(parsed, 1e12))
    assert.equal("7200 BBB", at(assert(zone_file.parse(file { types = TYPES, changes = {} })), 0))
  end)

  it("are refused when they are broken", function()
    local function refused(why, given)
      given.types, given.changes = given.types or TYPES, given.changes or CHANGES
      local parsed, message = zone_file.parse(file(given))
      assert.is_nil(parsed)
      assert.matches(why, message, 1, true)
    end
    refused("version 1", { version = "\0" })
    refused("leap seconds", { leaps = 1 })
    refused("not in order", { changes = { { 5, 0 }, { 5, 1 } } })
    refused("not there", { changes = { { 5, 2 } } })
    refused("out of bounds", { types = { { 2 ^ 31 - 1, 0 } }, changes = {} })
    refused("out of bounds", { types = { { 0, 8 } }, changes = {} })
    refused("out of bounds", { names = "LMT\0AAA" })
    refused("no local time", { types = {}, changes = {} })
    refused("no rule", { footer = "\nnonsense\n" })
    refused("no rule", { footer = "\n" })
    refused("cut off", { footer = "" })
    assert.equal("no TZif file", select(2, zone_file.parse "#!/bin/sh"))
    assert.equal("no TZif file", select(2, zone_file.parse ""))
  end)

  it("are refused wherever they are cut off, and never raise", function()
    local whole = file { types = TYPES, changes = CHANGES }
    for length = 0, #whole - 1 do
      local parsed, message = zone_file.parse(whole:sub(1, length))
      assert.is_nil(parsed, length)
      assert.is_string(message)
    end
    for place = 1, #whole do
      for _, byte in ipairs { 0, 1, 127, 128, 255 } do
        zone_file.parse(whole:sub(1, place - 1) .. string.char(byte) .. whole:sub(place + 1))
      end
    end
  end)

  it("have names that stay in their folder", function()
    for _, name in ipairs { "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "EST5EDT" } do
      assert.is_true(zone_file.is_name(name), name)
    end
    for _, name in ipairs { "", "/etc/passwd", "../x", "Europe/../../x", "Europe//Berlin", "Europe/", "a b", "a\0b", ("a"):rep(65) } do
      assert.is_false(zone_file.is_name(name), name)
    end
  end)
end)
