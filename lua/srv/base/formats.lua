--- The formats of text that rules know: each a function from a string to whether it is one.
--- None runs a pattern that could backtrack: classes stand alone or are anchored and bounded, so
--- every check is linear in the length of the text.
local formats = {}

local find, match, byte, sub = string.find, string.match, string.byte, string.sub

-- ---- names of hosts, addresses of networks ------------------------------------------------------

local HOST_BYTES_MAX = 253
local LABEL_BYTES_MAX = 63

--- Calls EACH with every piece between the SEPARATORs; false as soon as it says so.
local function all_pieces(s, separator, each)
  local from = 1
  repeat
    local at = find(s, separator, from, true)
    if not each(sub(s, from, at and at - 1)) then return false end
    from = at and at + 1
  until not at
  return true
end

local function is_label(label)
  return #label >= 1 and #label <= LABEL_BYTES_MAX
    and not find(label, "[^%w-]")
    and byte(label) ~= 45 and byte(label, -1) ~= 45 -- no hyphen at either end
end

--- RFC 1123, 2.1: letters, digits and inner hyphens in labels of 1..63, 253 in all, no final dot.
function formats.host(s)
  return #s <= HOST_BYTES_MAX and all_pieces(s, ".", is_label)
end

local function is_octet(piece)
  if not find(piece, "^%d%d?%d?$") then return false end
  if #piece > 1 and byte(piece) == 48 then return false end -- 010 is 8 to some and 10 to others
  return tonumber(piece) <= 255
end

--- RFC 6943, 3.1.1 "strict": four decimal numbers without leading zeros.
function formats.ipv4(s)
  if #s > 15 then return false end
  local pieces = 0
  return all_pieces(s, ".", function(piece)
    pieces = pieces + 1
    return pieces <= 4 and is_octet(piece)
  end) and pieces == 4
end

--- Groups of 16 bits in the colon-separated S (one side of a "::"); nil if one is wrong. Only the
--- last may be an IPv4 address, which counts two.
local function count_groups(s, may_end_in_ipv4)
  if s == "" then return 0 end
  local groups, ended = 0, false
  local fine = all_pieces(s, ":", function(piece)
    if ended then return false end
    if find(piece, "^%x%x?%x?%x?$") then
      groups = groups + 1
    elseif may_end_in_ipv4 and formats.ipv4(piece) then
      groups, ended = groups + 2, true
    else
      return false
    end
    return true
  end)
  return fine and groups or nil
end

--- RFC 4291, 2.2: eight groups, at most one "::", the last 32 bits perhaps dotted. No zone.
function formats.ipv6(s)
  if #s > 45 then return false end
  local at = find(s, "::", 1, true)
  if not at then return count_groups(s, true) == 8 end
  local tail = sub(s, at + 2)
  local before, after = count_groups(sub(s, 1, at - 1), false), count_groups(tail, true)
  return before ~= nil and after ~= nil and before + after <= 7
end

function formats.ip(s) return formats.ipv4(s) or formats.ipv6(s) end

--- RFC 4632, 3.1 and RFC 4291, 2.3: an address and the length of its prefix.
function formats.cidr(s)
  if #s > 49 then return false end
  local slash = find(s, "/", 1, true)
  if not slash then return false end
  local address, length = sub(s, 1, slash - 1), sub(s, slash + 1)
  if not find(length, "^%d%d?%d?$") or (#length > 1 and byte(length) == 48) then return false end
  if formats.ipv4(address) then return tonumber(length) <= 32 end
  return formats.ipv6(address) and tonumber(length) <= 128
end

-- ---- mail and web addresses ---------------------------------------------------------------------

local EMAIL_BYTES_MAX = 254
local LOCAL_PART_BYTES_MAX = 64

--- RFC 5322, 3.2.3: one or more characters of an atom.
local function is_atom(piece)
  return piece ~= "" and not find(piece, "[^%w!#$%%&'*+/=?^_`{|}~-]")
end

--- RFC 5321, 4.1.2: Dot-string "@" Domain, with the lengths of 4.5.3.1. Quoted local parts and
--- address literals are left out as forms do; a domain has a dot, for mail crosses the Internet.
function formats.email(s)
  if #s > EMAIL_BYTES_MAX then return false end
  local at = find(s, "@", 1, true)
  if not at or at - 1 > LOCAL_PART_BYTES_MAX then return false end
  local domain = sub(s, at + 1)
  return all_pieces(sub(s, 1, at - 1), ".", is_atom) and find(domain, ".", 1, true) ~= nil
    and formats.host(domain)
end

local URL_BYTES_MAX = 8192 -- what a request line may hold, so what a URL can be used for

--- Only CHARACTERS (the inside of a set) and whole percent-escapes.
local function has_only(s, characters)
  if find(s, "[^" .. characters .. "%%]") then return false end
  local at = find(s, "%", 1, true)
  while at do
    if not find(s, "^%x%x", at + 1) then return false end
    at = find(s, "%", at + 3, true)
  end
  return true
end

local UNRESERVED_AND_SUB_DELIMS = "%w%-._~!$&'()*+,;="

local function is_url_host(host)
  if byte(host) == 91 then return byte(host, -1) == 93 and formats.ipv6(sub(host, 2, -2)) end
  return host ~= "" and #host <= HOST_BYTES_MAX and has_only(host, UNRESERVED_AND_SUB_DELIMS)
end

local function is_port(port)
  return port == "" or (find(port, "^%d%d?%d?%d?%d?$") ~= nil and tonumber(port) <= 65535)
end

--- RFC 3986, 3.2: [ userinfo "@" ] host [ ":" port ].
local function is_authority(authority)
  local at = find(authority, "@", 1, true)
  if at then
    if not has_only(sub(authority, 1, at - 1), UNRESERVED_AND_SUB_DELIMS .. ":") then return false end
    authority = sub(authority, at + 1)
  end
  local port_at = find(authority, ":", (find(authority, "]", 1, true) or 0) + 1, true)
  local host = port_at and sub(authority, 1, port_at - 1) or authority
  return is_url_host(host) and (not port_at or is_port(sub(authority, port_at + 1)))
end

--- RFC 3986, absolute, of the schemes http and https, ASCII; what follows the authority is any
--- path, query and fragment of the characters allowed there.
function formats.url(s)
  if #s > URL_BYTES_MAX then return false end
  local rest = match(s, "^[hH][tT][tT][pP][sS]?://()")
  if not rest then return false end
  local path_at = find(s, "[/?#]", rest) or #s + 1
  local hash = find(s, "#", path_at, true)
  local tail = UNRESERVED_AND_SUB_DELIMS .. ":@/?"
  return is_authority(sub(s, rest, path_at - 1))
    and has_only(sub(s, path_at, hash and hash - 1), tail)
    and (not hash or has_only(sub(s, hash + 1), tail))
end

-- ---- dates and times: RFC 3339, 5.6 -------------------------------------------------------------

local MONTH_DAYS = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

local function days_in(year, month)
  local leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
  return month == 2 and leap and 29 or MONTH_DAYS[month]
end

--- full-date.
function formats.date(s)
  if #s ~= 10 then return false end
  local year, month, day = match(s, "^(%d%d%d%d)-(%d%d)-(%d%d)$")
  if not year then return false end
  year, month, day = tonumber(year), tonumber(month), tonumber(day)
  return month >= 1 and month <= 12 and day >= 1 and day <= days_in(year, month)
end

--- Minutes that the time-offset is ahead of UTC, or nil.
local function offset_minutes(s)
  if s == "Z" or s == "z" then return 0 end
  local sign, hours, minutes = match(s, "^([+-])(%d%d):(%d%d)$")
  if not sign or tonumber(hours) > 23 or tonumber(minutes) > 59 then return nil end
  return (sign == "-" and -1 or 1) * (tonumber(hours) * 60 + tonumber(minutes))
end

local DAY_MINUTES = 24 * 60
local TIME_BYTES_MAX = 64 -- RFC 3339 puts no bound on the digits of a fraction

--- full-time: with its offset. A leap second (5.7) ends a UTC day only.
function formats.time(s)
  if #s > TIME_BYTES_MAX then return false end
  local hour, minute, second, rest = match(s, "^(%d%d):(%d%d):(%d%d)(.+)$")
  if not hour then return false end
  local offset = offset_minutes(match(rest, "^%.%d+(.+)$") or rest)
  if not offset then return false end
  hour, minute, second = tonumber(hour), tonumber(minute), tonumber(second)
  if hour > 23 or minute > 59 or second > 60 then return false end
  return second < 60 or (hour * 60 + minute - offset) % DAY_MINUTES == DAY_MINUTES - 1
end

--- date-time: full-date "T" full-time.
function formats.datetime(s)
  return find(s, "^[Tt]", 11) ~= nil and formats.date(sub(s, 1, 10)) and formats.time(sub(s, 12))
end

-- ---- identifiers and encodings ------------------------------------------------------------------

--- RFC 9562, 4: 8-4-4-4-12 hexadecimal digits, of any version.
function formats.uuid(s)
  return #s == 36 and not find(s, "[^%x-]")
    and find(s, "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$") ~= nil
end

function formats.slug(s) return s ~= "" and not find(s, "[^a-z0-9-]") end

function formats.hex(s) return s ~= "" and not find(s, "[^%x]") end

--- RFC 4648, 4: whole groups of four, padded.
function formats.base64(s)
  if #s % 4 ~= 0 then return false end
  local pad = find(s, "=", 1, true)
  if pad and pad < #s - 1 then return false end
  if pad and not find(s, "^==?$", pad) then return false end
  return not find(sub(s, 1, pad and pad - 1), "[^%w+/]")
end

return formats
