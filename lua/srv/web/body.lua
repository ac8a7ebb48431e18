--- The ways to read a request's body (API, section 3). The client's faults are raised as their 4xx.
---
--- C collects the bytes within the limit and keeps them until the request ends, so asking twice is
--- fine; only stream(), parts() and, if it is large, multipart() hand them out as they come.
local errors = require "srv.base.errors"
local http = require "srv.core.http"
local json = require "srv.core.json"
local misuse = require "srv.core.task".misuse
local multipart = require "srv.web.multipart"
local negotiate = require "srv.web.negotiate"
local options = require "srv.base.options"
local reader = require "srv.base.reader"
local utf8 = require "srv.base.utf8"

local body = {}

--- Methods of requests.
local methods = {}

local FORM_FIELDS, FORM_DEPTH = 1000, 32
local CHUNK_BYTES, CHUNK_BYTES_MAX = 64 * 1024, 2 ^ 30

local function raise(code, status, message)
  error(errors.new(status, message, { code = code }), 0)
end

local UNDERSTOOD = { ["Accept-Encoding"] = http.READ_CODINGS }

--- From now on the body is read inflated, if it comes compressed (RFC 9110, 12.5.3).
local function undo_coding(req)
  local coding = http.header(req, "content-encoding")
  if not coding or coding == "" or http.decode_body(req, coding) then return end
  error(errors.new(415, ("the content coding %q is not understood: send %s"):format(coding, http.READ_CODINGS),
    { code = "bad_encoding", headers = UNDERSTOOD }), 0)
end

--- The charset a body is written in; UTF-8 unless it says something else.
local function charset_of(content_type)
  return content_type and negotiate.parameter(content_type, "charset") or "utf-8"
end

--- Which bodies are taken, and the Content-Type that says so.
local KINDS = {
  json = { what = "JSON", type = "application/json", is = "json" },
  form = { what = "an urlencoded form", type = "application/x-www-form-urlencoded", is = "application/x-www-form-urlencoded" },
  multipart = { what = "a multipart form", type = "multipart/form-data", is = "multipart/form-data" },
}

local function instead_of(content_type)
  return content_type and "it is " .. content_type or "it has no Content-Type"
end

--- 415: what is taken, how to say that it is that, and what came.
---@param req srv.Request
---@param names string[]  of "json", "form", "multipart"
function body.refuse_type(req, names)
  local taken = {}
  for i, name in ipairs(names) do
    taken[i] = ("%s (Content-Type: %s)"):format(KINDS[name].what, KINDS[name].type)
  end
  raise(nil, 415, ("the body must be %s; %s"):format(table.concat(taken, " or "), instead_of(http.header(req, "content-type"))))
end

local function check_type(req, name)
  local content_type = http.header(req, "content-type")
  if not negotiate.is(content_type, { KINDS[name].is }) then body.refuse_type(req, { name }) end
  return content_type
end

local CHARSETS = {
  ["utf-8"] = "utf-8", utf8 = "utf-8", ["us-ascii"] = "utf-8", ["iso-8859-1"] = "latin1", latin1 = "latin1",
}

--- "utf-8" or "latin1"; 415 for another, or one that is not among ALLOWED.
local function known_charset(content_type, allowed)
  local charset = CHARSETS[charset_of(content_type)]
  if charset == "utf-8" or charset and allowed == charset then return charset end
  raise(nil, 415, ("the charset %q is not understood: send UTF-8"):format(charset_of(content_type)))
end

--- All bytes, or nil without a body: one that turns out empty is none, as one that says so is. Waits.
local function read_all(req)
  undo_coding(req)
  local bytes, err = http.read_body(req)
  if err then error(err, 0) end
  return bytes ~= "" and bytes or nil
end

---@return string?
function methods:bytes() return http.has_body(self) and read_all(self) or nil end

local function utf8_of_latin1(char)
  local byte = char:byte()
  return string.char(0xC0 + math.floor(byte / 64), 0x80 + byte % 64)
end

--- As UTF-8.
---@return string?
function methods:text()
  if not http.has_body(self) then return nil end
  local charset = known_charset(http.header(self, "content-type"), "latin1")
  local bytes = read_all(self)
  if bytes and charset == "latin1" then return (bytes:gsub("[\128-\255]", utf8_of_latin1)) end
  if bytes and not http.is_utf8(bytes) then raise("bad_encoding", 400, "the body is no UTF-8") end
  return bytes
end

local JSON_OPTIONS = { strict = "boolean", depth = "1..256" } -- bind/ljson.h

--- Content types that were found to be JSON in UTF-8. Clients send few different ones.
local known_json, known_count = {}, 0
local KNOWN_MAX = 64

---@param content_type string?
---@return boolean
function body.is_json(content_type)
  return content_type ~= nil and known_json[content_type] == true
end

local function check_json_type(req)
  local content_type = http.header(req, "content-type")
  if body.is_json(content_type) then return end
  known_charset(check_type(req, "json"))
  if known_count == KNOWN_MAX then known_json, known_count = {}, 0 end
  known_json[content_type], known_count = true, known_count + 1
end

local function read_json(req, depth, strict)
  local bytes = read_all(req)
  if not bytes then return nil end
  local value, err = json.decode(bytes, depth, strict)
  if err then error(err, 0) end
  return value
end

--- The body as any JSON value.
---@param req srv.Request
---@return any
function body.read_json(req)
  check_json_type(req)
  return read_json(req, nil, false)
end

--- JSON and +json types. `strict = false` takes texts, numbers, booleans and null too.
---@param opts { strict?: boolean, depth?: integer }?
---@return any
function methods:json(opts)
  if opts then opts = options.check("req:json", opts, JSON_OPTIONS) end
  if not http.has_body(self) then return nil end
  check_json_type(self)
  if not opts then return read_json(self, nil, true) end
  return read_json(self, opts.depth, opts.strict ~= false)
end

-- Nested forms --------------------------------------------------------------------------------------
-- The flat form has forgotten in which order its names came, so nothing here may depend on it: what only an order could
-- decide (a name that is a value and a group, `[]` before other brackets) is the client's fault.

local NAME_SHOWN_BYTES_MAX = 100

local function refuse_name(name, what)
  raise("bad_form", 400, ('the field "%s" %s'):format(utf8.head(name, NAME_SHOWN_BYTES_MAX), what))
end

local function refuse_list(name) refuse_name(name, "has [] before other brackets: number the items, as in a[0][b]") end

--- "a[b][]" as { "a", "b", "" }. A name whose brackets do not pair is one plain name.
local function steps_of(name)
  local first, rest = name:match "^([^%[%]]+)(%[.*%])$"
  if not first or rest:gsub("%[[^%[%]]*%]", "") ~= "" then return { name } end
  local steps = { first }
  for inner in rest:gmatch "%[([^%[%]]*)%]" do steps[#steps + 1] = inner end
  return steps
end

local function is_list(value) return type(value) == "table" and getmetatable(value) == json.array_mark end

local function as_list(value) return is_list(value) and value or json.array { value } end

---@class srv.web.Nesting
---@field groups table<table, boolean>  the tables that brackets made, as opposed to values
---@field depth_max integer

local function group_at(nesting, at, key, name)
  if key == "" then refuse_list(name) end
  local there = at[key]
  if there == nil then
    there = json.object {}
    at[key], nesting.groups[there] = there, true
  elseif not nesting.groups[there] then
    refuse_name(name, "is a value and a group")
  end
  return there
end

local function put(nesting, form, name, value)
  local steps = steps_of(name)
  if #steps - 1 > nesting.depth_max then refuse_name(name, ("is nested more than %d deep"):format(nesting.depth_max)) end
  if #steps > 1 and steps[#steps] == "" then steps[#steps], value = nil, as_list(value) end
  local at = form
  for i = 1, #steps - 1 do at = group_at(nesting, at, steps[i], name) end
  local key = steps[#steps]
  if #steps > 1 and key == "" then refuse_list(name) end
  if at[key] ~= nil then refuse_name(name, "is there in two ways") end
  at[key] = value
end

--- GROUP's items if its keys are 0, 1, 2 ... without a gap; else nil.
local function items_of(group)
  local count, items = 0, {}
  for _ in pairs(group) do count = count + 1 end
  for i = 1, count do
    items[i] = group[tostring(i - 1)]
    if items[i] == nil then return nil end
  end
  return json.array(items)
end

--- Groups that are numbered become arrays, from the inside out.
local function settle(nesting, at)
  for key, value in pairs(at) do
    if nesting.groups[value] then
      settle(nesting, value)
      at[key] = items_of(value) or value
    end
  end
end

local function has_brackets(flat)
  for name in pairs(flat) do
    if name:find("[", 1, true) then return true end
  end
  return false
end

--- The tables that the names of FLAT speak of. 400 `bad_form` beyond DEPTH_MAX brackets and where names contradict
--- each other.
---@param flat table<string, any>
---@param depth_max integer
---@return table<string, any>
function body.nest(flat, depth_max)
  if not has_brackets(flat) then return json.object(flat) end
  local nesting, form = { groups = {}, depth_max = depth_max }, json.object {}
  for name, value in pairs(flat) do put(nesting, form, name, value) end
  settle(nesting, form)
  return form
end

local FORM_OPTIONS = { nested = "boolean", depth = "1..256", fields = "1..1000000" }

--- Urlencoded fields; repeats make an array.
---@param opts { nested?: boolean, depth?: integer, fields?: integer }?
---@return table?
function methods:form(opts)
  opts = options.check("req:form", opts, FORM_OPTIONS)
  local fields_max, depth_max = opts.fields or FORM_FIELDS, opts.depth or FORM_DEPTH
  if not http.has_body(self) then return nil end
  local charset = known_charset(check_type(self, "form"), "latin1")
  local bytes = read_all(self)
  if not bytes then return nil end
  local form, fault = http.parse_form(self, bytes, charset, fields_max)
  if fault == "too_many" then raise("bad_form", 413, ("more than %d fields"):format(fields_max)) end
  if fault then raise("bad_form", 400, "the form is malformed") end
  return opts.nested and body.nest(form, depth_max) or form
end

--- At most BYTES_MAX of a body that was opened as a stream; nil at its end.
---@param p number|srv.Request
---@param bytes_max integer
---@return string?
---@return srv.Error?
function body.read_some(p, bytes_max)
  local piece, err
  repeat piece, err = http.read_some(p, bytes_max) until piece ~= ""
  return piece, err
end

local STREAM_OPTIONS = { chunk = "bytes" }

--- The body as it comes; nil without one. Nothing else can read it then.
---@param opts { chunk?: integer|string }?
---@return srv.Reader?
function methods:stream(opts)
  local chunk_max = options.check("req:stream", opts, STREAM_OPTIONS).chunk or CHUNK_BYTES
  if chunk_max < 1 or chunk_max > CHUNK_BYTES_MAX then misuse 'req:stream: option "chunk" must be from 1 byte to 1GiB' end
  if not http.has_body(self) then return nil end
  undo_coding(self)
  http.open_stream(self)
  local p = self[1]
  return reader.new(function(bytes) return body.read_some(p, math.min(bytes, chunk_max)) end)
end

for name, method in pairs(multipart.methods(function(req) check_type(req, "multipart") end)) do methods[name] = method end

body.methods = methods

return body
