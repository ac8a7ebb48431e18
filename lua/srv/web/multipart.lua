--- Forms with files (API, section 3): req:multipart() and req:parts().
---
--- C finds the parts (srv.core.multipart); here they become fields, files and readers. Little stays in
--- memory, the rest of a file goes to the disk as it comes, by jobs of the pool's threads for files.
local core = require "srv.core.multipart"
local disk = require "srv.core.fs_file"
local errors = require "srv.base.errors"
local http = require "srv.core.http"
local json = require "srv.core.json"
local new_upload = require "srv.web.upload"
local options = require "srv.base.options"
local reader = require "srv.base.reader"
local units = require "srv.base.units"

local multipart = {}

local FILES, FIELDS = 10, 1000
local MEMORY_BYTES = 256 * 1024
--- All fields together: they are texts, and stay in memory.
local FIELDS_BYTES = 8 * 1024 * 1024
local READ_BYTES = 64 * 1024
--- To a file at a time: each is a job of its own.
local WRITE_BYTES = 256 * 1024

-- Sources: what comes next --------------------------------------------------------------------------

---@class srv.web.Source
---@field private parser userdata
---@field private read fun(): string?, srv.Error?  the next piece of the body
---@field private chunk string?    of which
---@field private at integer       bytes were taken
---@field private held string?     content that was looked at already
---@field private err srv.Error?   how it ended
local Source = {}
Source.__index = Source

local function fault(status, message, code)
  return errors.new(status, message, { code = code or "bad_multipart" })
end

function Source:fail(err)
  self.err = err
  return nil, err
end

--- "part", part; "data", bytes; "end"; "over"; or nil, err.
function Source:pull()
  while not self.err do
    if not self.chunk then
      local chunk, err = self.read()
      if err then return self:fail(err) end
      if not chunk then
        local whole, status, why = core.finish(self.parser)
        if whole then return "over" end
        return self:fail(fault(status, why))
      end
      self.chunk, self.at = chunk, 0
    end
    local what, at, value = core.next(self.parser, self.chunk, self.at)
    if what == false then return self:fail(fault(at, value)) end
    if what then
      self.at = at
      return what, value
    end
    self.chunk = nil
  end
  return nil, self.err
end

--- The content of the part that was begun: a piece; nil at its end; nil, err.
---@return string?
---@return srv.Error?
function Source:content()
  local held = self.held
  self.held = nil
  if held then return held end
  local what, value = self:pull()
  if what == "data" then return value end
  if what == nil then return nil, value end
end

--- The next part; nil behind the last; nil, err. A browser whose user chose no file sends an empty one
--- without a name: that is none.
---@return srv.core.Part?
---@return srv.Error?
function Source:part()
  while true do
    local what, part = self:pull()
    if what == "over" then return nil end
    if what == nil then return nil, part end
    if not part.unnamed then return part end
    local bytes, err = self:content()
    if err then return nil, err end
    if bytes then
      self.held = bytes
      return part
    end
  end
end

--- Pieces of TEXT, which is there already.
local function read_text(text)
  return function()
    local piece = text
    text = nil
    return piece ~= "" and piece or nil
  end
end

local function read_stream(stream)
  return function() return stream:read(READ_BYTES) end
end

--- Small bodies are read as a whole, so that they can be asked for in other ways too.
local function body_of(req, whole_bytes_max)
  local state, announced = http.body_state(req)
  if state == "whole" then return read_text(req:bytes()) end
  if announced and announced <= whole_bytes_max and not http.header(req, "content-encoding") then
    return read_text(req:bytes())
  end
  return read_stream(req:stream())
end

local function open_source(req, whole_bytes_max)
  local parser, status, why = core.new(http.header(req, "content-type"))
  if not parser then error(fault(status, why), 0) end
  return setmetatable({ parser = parser, read = body_of(req, whole_bytes_max) }, Source)
end

-- All at once -----------------------------------------------------------------------------------------

--- What one call gathers, and what it may still take.
---@class srv.web.Form
---@field source srv.web.Source
---@field fields table
---@field files srv.Upload[]
---@field files_left integer
---@field fields_left integer
---@field fields_bytes integer
---@field memory integer
---@field file_limit integer

local function raise(err) error(err, 0) end

local function too_large(what, bytes)
  raise(fault(413, ("%s is over %s"):format(what, units.bytes_text(bytes)), "content_too_large"))
end

local function add_field(fields, name, value)
  local there = fields[name]
  if there == nil then
    fields[name] = value
  elseif type(there) == "table" then
    there[#there + 1] = value
  else
    fields[name] = json.array { there, value }
  end
end

local function take_field(form, part)
  form.fields_left = form.fields_left - 1
  if form.fields_left < 0 then raise(fault(413, "the form has too many fields")) end
  local pieces = {}
  for bytes in form.source.content, form.source do
    pieces[#pieces + 1] = bytes
    form.fields_bytes = form.fields_bytes - #bytes
    if form.fields_bytes < 0 then too_large("the text of the fields", FIELDS_BYTES) end
  end
  if form.source.err then raise(form.source.err) end
  local value = table.concat(pieces)
  if not http.is_utf8(value) then raise(fault(400, ("the field %q is no UTF-8"):format(part.name))) end
  add_field(form.fields, part.name, value)
end

--- A disk that does not take it is our fault, not the client's, and nothing of it is shown to him.
local function check_disk(result, err)
  if result then return result, err end
  if err.code == "busy" then raise(err) end
  local is_full = err.code == "no_space"
  raise(errors.new(is_full and 507 or 500, "an upload could not be put on the disk: " .. err.message,
    { code = is_full and "no_space" or "fs", cause = err }))
end

--- What came of a file that is not on the disk yet.
---@class srv.web.Pending
---@field pieces string[]
---@field bytes integer    of the pieces
---@field size integer     of the file so far
---@field handle userdata? its temporary file
---@field path string?

local function write_out(pending)
  if not pending.handle then pending.handle, pending.path = check_disk(disk.temp("", true)) end
  check_disk(disk.write(pending.handle, table.concat(pending.pieces)))
  pending.pieces, pending.bytes = {}, 0
end

local function take_piece(form, part, pending, bytes)
  pending.size = pending.size + #bytes
  if pending.size > form.file_limit then too_large(("the file %q"):format(part.filename), form.file_limit) end
  pending.pieces[#pending.pieces + 1] = bytes
  pending.bytes = pending.bytes + #bytes
  if pending.bytes > (pending.handle and WRITE_BYTES or form.memory) then write_out(pending) end
end

local function take_file(form, part)
  form.files_left = form.files_left - 1
  if form.files_left < 0 then raise(fault(413, "the form has too many files")) end
  local pending = { pieces = {}, bytes = 0, size = 0 }
  for bytes in form.source.content, form.source do take_piece(form, part, pending, bytes) end
  if form.source.err then raise(form.source.err) end
  if pending.handle then
    if pending.bytes > 0 then write_out(pending) end
    check_disk(disk.close(pending.handle))
  else
    form.memory = form.memory - pending.bytes
  end
  form.files[#form.files + 1] = new_upload(part, pending.size, pending.path, table.concat(pending.pieces))
end

local function gather(form)
  while true do
    local part, err = form.source:part()
    if err then raise(err) end
    if not part then return end
    local take = part.filename and take_file or take_field
    take(form, part)
  end
end

local MULTIPART_OPTIONS = { file_limit = "bytes", files = "0..10000", fields = "0..1000000", memory = "bytes" }

--- On the request's view: what was read, or how that failed.
local KEPT = {}

local function read_form(req, opts)
  local memory = opts.memory or MEMORY_BYTES
  local form = {
    source = open_source(req, memory),
    fields = json.object {}, files = json.array {},
    files_left = opts.files or FILES, fields_left = opts.fields or FIELDS,
    fields_bytes = FIELDS_BYTES, memory = memory, file_limit = opts.file_limit or math.huge,
  }
  gather(form)
  return { fields = form.fields, files = form.files }
end

-- One by one ------------------------------------------------------------------------------------------

--- A part as it arrives.
---@class srv.Part: srv.Reader
---@field name string
---@field filename string?               safe; nil: no file
---@field type string?                   "image/png"
---@field headers table<string, string>  by lower-case names
local Part = reader.extend "srv.Part"
Part.__index = Part

local PARTS_OPTIONS = { part_limit = "bytes" }

---@class srv.web.Walk
---@field source srv.web.Source
---@field limit integer
---@field part srv.Part?  not read to its end yet

local function pull_part(walk, part)
  if walk.part ~= part then
    return nil, errors.coded("closed", ("the part %q has passed: read it before the loop goes on"):format(part.name))
  end
  local bytes, err = walk.source:content()
  if not bytes then
    walk.part = nil
    return nil, err
  end
  part.size = part.size + #bytes
  if part.size <= walk.limit then return bytes end
  local text = ("the part %q is over %s"):format(part.name, units.bytes_text(walk.limit))
  return walk.source:fail(fault(413, text, "content_too_large"))
end

local function new_part(walk, found)
  local part = setmetatable({
    name = found.name, filename = found.filename, type = found.type, headers = found.headers,
    size = 0, rest = "", at = 1, ended = false, closed = false,
  }, Part)
  function part.pull() return pull_part(walk, part) end
  walk.part = part
  return part
end

--- What the app did not read of the last part is passed over.
local function next_part(walk)
  while walk.part do
    local bytes, err = walk.source:content()
    if err then raise(err) end
    if not bytes then walk.part = nil end
  end
  local found, err = walk.source:part()
  if err then raise(err) end
  return found and new_part(walk, found)
end

local function no_part() end

-- Methods ---------------------------------------------------------------------------------------------

--- The methods for requests. CHECK_TYPE raises 415 for a body of another type.
---@param check_type fun(req: srv.Request)
---@return table<string, function>
function multipart.methods(check_type)
  local methods = {}

  --- Fields, flat as those of req:form(), and files in the order they came.
  ---@param req srv.Request
  ---@param opts { file_limit?: integer|string, files?: integer, fields?: integer, memory?: integer|string }?
  ---@return table<string, string|string[]>?
  ---@return srv.Upload[]? files
  function methods.multipart(req, opts)
    opts = options.check("req:multipart", opts, MULTIPART_OPTIONS)
    if not http.has_body(req) then return nil end
    local kept = rawget(req, KEPT)
    if not kept then
      check_type(req)
      local ok, result = pcall(read_form, req, opts)
      kept = ok and result or { err = result }
      if ok or errors.is(result) then req[KEPT] = kept end
    end
    if kept.err then error(kept.err, 0) end
    return kept.fields, kept.files
  end

  --- A loop of parts as they arrive.
  ---@param req srv.Request
  ---@param opts { part_limit?: integer|string }?
  ---@return fun(): srv.Part?
  function methods.parts(req, opts)
    local limit = options.check("req:parts", opts, PARTS_OPTIONS).part_limit or math.huge
    if not http.has_body(req) then return no_part end
    check_type(req)
    local walk = { source = open_source(req, 0), limit = limit }
    return function() return next_part(walk) end
  end

  return methods
end

return multipart
