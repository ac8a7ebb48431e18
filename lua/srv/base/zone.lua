--- Time zones by name: "UTC", "local", "+02:00", and those of the IANA database on this machine.
--- Files are read when a zone is first asked for and kept as long as the VM.
local errors = require "srv.base.errors"
local getenv = require "srv.core.env".getenv
local zone_file = require "srv.base.zone_file"
local zone_rule = require "srv.base.zone_rule"

local zone = {}

local FILE_BYTES_MAX = 64 * 1024 -- the largest has 4 KiB
local KEPT_MAX = 128
local OFFSET_HOURS_MAX = 23

local FOLDERS = { "/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/etc/zoneinfo" }
local LOCAL_FILE = "/etc/localtime"

---@class srv.Zone
---@field at fun(source: any, t: number): integer, string  offset in seconds, name
---@field source any

local function fixed(offset, name)
  return { at = function() return offset, name end }
end

local UTC = fixed(0, "UTC")

-- Fixed offsets --------------------------------------------------------------------------------------

--- Seconds that "+02:00", "+0200" or "+02" is ahead of UTC, or nil.
---@param text string
---@return integer?
function zone.offset(text)
  local sign, hours, minutes = text:match("^([+-])(%d%d):?([0-5]%d)$")
  if not sign then sign, hours = text:match("^([+-])(%d%d)$") end
  if not sign or tonumber(hours) > OFFSET_HOURS_MAX then return nil end
  return (sign == "-" and -1 or 1) * (hours * 3600 + (minutes or 0) * 60)
end

-- Files ----------------------------------------------------------------------------------------------

--- The bytes of a file of time zones; nil: there is none, or it is a folder.
local function read_file(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local bytes = file:read(FILE_BYTES_MAX)
  file:close()
  return bytes
end

local function parse_file(path, bytes)
  local parsed, message = zone_file.parse(bytes)
  if not parsed then return nil, errors.coded("fs", ("time zone file %s: %s"):format(path, message)) end
  return { at = zone_file.at, source = parsed }
end

local function folders()
  local list = { getenv "TZDIR" }
  for _, folder in ipairs(FOLDERS) do list[#list + 1] = folder end
  return list
end

local function no_zone(name) return errors.coded("invalid", ("there is no time zone %q"):format(name)) end

--- A name that is not there is the asker's mistake, unless nothing is: every database has GMT.
local function missing(name, searched)
  for _, folder in ipairs(searched) do
    if read_file(folder .. "/GMT") then return nil, no_zone(name) end
  end
  return nil, errors.coded("fs", ("time zone %q: this machine has no time zone database (tzdata) in %s")
    :format(name, table.concat(searched, ", ")))
end

local function read_named(name)
  if not zone_file.is_name(name) then return nil, no_zone(name:sub(1, 64)) end
  local searched = folders()
  for _, folder in ipairs(searched) do
    local path = folder .. "/" .. name
    local bytes = read_file(path)
    -- Lists and notes lie beside the zones.
    if bytes and bytes:sub(1, 4) == "TZif" then return parse_file(path, bytes) end
  end
  return missing(name, searched)
end

-- The machine's own ----------------------------------------------------------------------------------

--- As the C library does it: TZ names a file or is a rule itself; without it /etc/localtime holds,
--- and without that UTC.
local function read_local()
  local setting = getenv "TZ"
  if not setting then
    local bytes = read_file(LOCAL_FILE)
    if not bytes then return UTC end
    return parse_file(LOCAL_FILE, bytes)
  end
  setting = setting:gsub("^:", "")
  if setting == "" then return UTC end
  local rule = zone_rule.parse(setting)
  if rule then return { at = zone_rule.at, source = rule } end
  if setting:sub(1, 1) ~= "/" then return read_named(setting) end
  local bytes = read_file(setting)
  if not bytes then return nil, errors.coded("fs", "TZ: cannot read " .. setting) end
  return parse_file(setting, bytes)
end

-- By name --------------------------------------------------------------------------------------------

local function read(name)
  if name == "UTC" or name == "Z" then return UTC end
  if name == "local" then return read_local() end
  local offset = zone.offset(name)
  if offset then return fixed(offset, name) end
  return read_named(name)
end

local kept, kept_count = {}, 0

local function keep(name, found)
  if kept_count == KEPT_MAX then kept, kept_count = {}, 0 end
  kept[name], kept_count = found, kept_count + 1
end

--- The zone of that name. Reads a file of a few KiB the first time, which blocks as `require` does.
---@param name string  "UTC", "local", "+02:00" or "Europe/Berlin"
---@return srv.Zone?
---@return srv.Error? err  invalid: there is none; fs: its file, or the whole database, cannot be read
function zone.find(name)
  local found = kept[name]
  if found then return found end
  local err
  found, err = read(name)
  if found then keep(name, found) end
  return found, err
end

--- What FOUND says of the moment T.
---@param found srv.Zone
---@param t number          seconds since 1970
---@return integer offset   seconds ahead of UTC
---@return string name      "CEST"
function zone.at(found, t) return found.at(found.source, t) end

return zone
