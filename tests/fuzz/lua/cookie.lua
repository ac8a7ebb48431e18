--- Cookies: a Cookie header is read as by a parser that is slow and simple; what is written reads back,
--- carries no more attributes than it was told to, and is signed under its own name only.
---
--- The input is "name LF value LF attribute", and all of it is a header too.
local cookie = require "srv.web.cookie"

local function fail(what, ...) error(what:format(...), 0) end

local function trim(text) return text:match("^%s*(.-)%s*$") end

local function decode(value)
  return (value:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

--- name -> value; the first of a name counts, names have no blanks in them.
local function read_naively(header)
  local found = {}
  for pair in (header .. ";"):gmatch("([^;]*);") do
    local equals = pair:find("=", 1, true)
    local name = equals and trim(pair:sub(1, equals - 1)) or ""
    if name ~= "" and not name:find("%s") and not found[name] then
      local value = trim(pair:sub(equals + 1))
      if #value > 1 and value:byte(1) == 34 and value:byte(#value) == 34 then value = value:sub(2, -2) end
      found[name] = decode(value)
    end
  end
  return found
end

local function check_header(header)
  local found, wanted = cookie.parse_all(header), read_naively(header)
  for name, value in pairs(wanted) do
    if found[name] ~= value then fail("%q: %q should be %q, not %q", header, name, value, tostring(found[name])) end
  end
  for name in pairs(found) do
    if wanted[name] == nil then fail("%q has no cookie %q", header, name) end
  end
  for name, value in pairs(cookie.parse(header)) do
    if value:sub(1, 2) == "s:" then fail("%q: %q is signed, and passes for a plain one", header, name) end
  end
end

--- What a browser would take from FIELD: the pair and the number of attributes.
local function judge(field)
  if field:find("[%z\1-\31\127]") then fail("%q has control characters", field) end
  local _, attributes = field:gsub(";", ";")
  return field:match("^[^;]*"), attributes
end

--- The field, or nil where the caller is told that he misuses it.
local function write(name, value, opts)
  local ok, field = pcall(cookie.write, name, value, opts, true)
  if ok then return field end
  if not tostring(field):find("res:cookie: ", 1, true) then error(field, 0) end
end

local function check_written(name, value, signed)
  local field = write(name, value, { signed = signed })
  if not field then return end
  local pair, attributes = judge(field)
  if attributes ~= 4 then fail("%q: Path, HttpOnly, Secure, SameSite are four", field) end
  local all = cookie.parse_all("a=b; " .. pair)
  local wanted = name == "a" and "b" or value
  if not signed and all[name] ~= wanted then fail("%q reads as %q", pair, tostring(all[name])) end
  if not signed or name == "a" then return end
  if cookie.read(all, name, { signed = true }) ~= value then fail("%q: its signature is not taken", pair) end
  if cookie.read({ other = all[name] }, "other", { signed = true }) then fail("%q is good under another name", pair) end
  if cookie.read({ [name] = all[name] .. "A" }, name, { signed = true }) then fail("%q: a forged one is taken", pair) end
  if cookie.parse(pair)[name] then fail("%q: a signed one is read as a plain one", pair) end
end

local function check_attribute(text)
  for _, option in ipairs { "domain", "path" } do
    local field = write("n", "v", { [option] = text })
    local _, attributes = judge(field or "")
    if field and attributes ~= (option == "domain" and 5 or 4) then fail("%q: %s adds attributes", field, option) end
  end
end

return function(bytes)
  local name, value, attribute = bytes:match("^([^\n]*)\n?([^\n]*)\n?(.*)$")
  check_header(bytes)
  check_written(name, value, false)
  check_written("n", value, true)
  check_attribute(attribute)
  for _, sent in pairs(cookie.parse_all(bytes)) do
    if cookie.read({ n = sent }, "n", { signed = true }) then fail("%q: who has signed that?", sent) end
    cookie.read({ n = sent }, "n", { json = true })
  end
end
