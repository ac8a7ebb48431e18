--- Templates (API, section 11): views that escape by place.
---
---   template         the app's views          template_html     places of HTML
---   template_lexer   text to pieces           template_raw      where <script> and others end
---   template_lua     the Lua inside tags      template_content  what stands in attributes and those
---   template_code    pieces to Lua            template_url, template_js   two kinds of that
---   template_names   what a template sees     template_data     places of JSON, XML, text
---   template_escape  values for places        template_bytes    its loops
---
--- A template is compiled once for each generation. What is wrong in it is raised with its name,
--- line and column, when it is compiled; what fails while it runs is told with them too.
local errors = require "srv.base.errors"
local misuse = require "srv.core.task".misuse
local options = require "srv.base.options"
local template_code = require "srv.web.template_code"
local template_escape = require "srv.web.template_escape"
local template_lexer = require "srv.web.template_lexer"
local template_names = require "srv.web.template_names"
local buffer = require "string.buffer"

local template_engine = {}

local INCLUDE_DEPTH_MAX = 100 -- views in each other

---@class srv.TemplateUnit
---@field name string    as messages tell it: "views/news/show.html"
---@field kind string    html, xml, json or txt
---@field text string
---@field map integer[]  a line of the generated Lua -> byte of the text
---@field blocks table<string, table>
---@field parent? srv.TemplateUnit
---@field factory fun(): fun(out: string[], data: table, blocks: table)

---@class srv.TemplateEngine
---@field private read fun(file: string): string?, string?
---@field private units table<string, srv.TemplateUnit>
---@field private environment fun(data: table): table
local Engine = {}
Engine.__index = Engine

-- ---- places in messages -------------------------------------------------------------------------

-- Generated chunks are called "view#7"; by the number their maps are found again.
local units_by_number = setmetatable({}, { __mode = "v" })
local unit_count = 0

local function place_of(unit, line)
  return ("%s:%d:%d"):format(unit.name, template_lexer.place(unit.text, unit.map[line] or 1))
end

--- TEXT of an error or a traceback with every line of generated code told as its template's place.
---@param text string
---@return string
function template_engine.locate(text)
  return (text:gsub("view#(%d+):(%d+)", function(number, line)
    local unit = units_by_number[tonumber(number)]
    return unit and place_of(unit, tonumber(line))
  end))
end

--- The place in the innermost template that is running, from the stack of an error.
local function running_place()
  for level = 3, 200 do
    local info = debug.getinfo(level, "Sl")
    if not info then return nil end
    local number = info.source:match("^=view#(%d+)$")
    local unit = number and units_by_number[tonumber(number)]
    if unit then return place_of(unit, info.currentline) end
  end
end

--- The message handler of a render. Error objects pass as they are: srv.error(404) stays one.
local function on_error(raised)
  if type(raised) ~= "string" then return raised end
  raised = raised:gsub("^%S*template_escape%.lua:%d+: ", "")
  local located = template_engine.locate(raised)
  if located == raised then
    local place = running_place()
    located = place and place .. ": " .. raised or raised
  end
  return errors.adopt(located, template_engine.locate(debug.traceback(located, 2)))
end

-- ---- compiling ----------------------------------------------------------------------------------

local function raise_at(unit, at, message)
  local line, column = template_lexer.place(unit.text, at)
  error(("%s:%d:%d: %s"):format(unit.name, line, column, message), 0)
end

local function load_source(unit, code)
  unit_count = unit_count + 1
  unit.map = code.map
  units_by_number[unit_count] = unit
  local chunk, message = loadstring(code.source, "=view#" .. unit_count)
  if chunk then return chunk end
  -- "'end' expected (to close 'for' at line 7)" counts lines of ours too.
  message = message:gsub("at line (%d+)", function(line)
    return "at line " .. template_lexer.place(unit.text, unit.map[tonumber(line)] or 1)
  end)
  error(template_engine.locate(message), 0)
end

--- Compiles UNIT, which has its name, kind and text, and all that it extends and includes. LOADING has
--- the files for which that is under way: this compilation's own, for one that was cancelled amid its
--- work (slice_limit) must not leave marks to others.
function Engine:build(unit, loading)
  local function parent(name, at)
    local ok, loaded = pcall(self.unit, self, name, unit.kind, loading)
    if not ok then raise_at(unit, at, type(loaded) == "string" and loaded or tostring(loaded)) end
    return loaded
  end
  local ok, code = pcall(template_code.generate, unit.text, { kind = unit.kind, parent = parent })
  if not ok then
    if type(code) ~= "table" then error(code, 0) end
    raise_at(unit, code.at, code.message)
  end
  unit.blocks, unit.parent = code.blocks, code.parent
  local chunk = load_source(unit, code)
  unit.factory = chunk(template_escape, self:includer(unit), code.parent and self:renderer(code.parent))
  for _, include in ipairs(code.includes) do
    if not loading[self.file_of(include.name, unit.kind)] then parent(include.name, include.at) end
  end
  return unit
end

-- ---- finding ------------------------------------------------------------------------------------

local function extension_of(name) return name:match("%.(%a+)$") end

--- The file of the view NAME: an extension that names a kind is its own, else KIND's is added.
function Engine.file_of(name, kind)
  local extension = extension_of(name)
  if extension and template_code.KINDS[extension] then return name end
  return name .. "." .. (kind or "html")
end

--- Is FILE one of ours, by its extension?
---@param file string
---@return boolean
function template_engine.is_view(file) return template_code.KINDS[extension_of(file)] == true end

local function check_name(name)
  local fine = type(name) == "string" and name:find("^[%w_][%w_./-]*$") and not name:find("..", 1, true)
  if not fine then error(("template: %q is no name of a view"):format(tostring(name)), 0) end
end

--- The compiled view NAME; KIND is wanted by what extends or includes it.
---@param name string
---@param kind string?
---@param loading table<string, true>?  those that wait for it
---@return srv.TemplateUnit
function Engine:unit(name, kind, loading)
  check_name(name)
  local file = self.file_of(name, kind)
  if kind and extension_of(file) ~= kind then error(("%q is no %s template"):format(name, kind), 0) end
  local known = self.units[file]
  if known then return known end
  loading = loading or {}
  if loading[file] then error(("%s extends itself"):format(file), 0) end
  local text, message = self.read(file)
  text = text and text:gsub("^\239\187\191", "") -- a byte order mark
  if not text then error(("there is no view %q (%s)"):format(name, message or file), 0) end
  loading[file] = true
  local given = { name = self.label .. file, kind = extension_of(file), text = text }
  local ok, unit = pcall(self.build, self, given, loading)
  loading[file] = nil
  if not ok then error(unit, 0) end
  self.units[file] = unit
  return unit
end

-- ---- rendering ----------------------------------------------------------------------------------

--- Runs UNIT in a fresh closure, so that its environment is this render's alone. DEPTH includes lie
--- around it.
function Engine:run(unit, out, data, blocks, depth)
  local fn = setfenv(unit.factory(), self.environment(data))
  return fn(out, data, blocks, depth)
end

--- What a child calls to show its parent, with the blocks that it replaces.
function Engine:renderer(unit)
  return function(out, data, blocks, depth) return self:run(unit, out, data, blocks, depth) end
end

--- What `include` calls: another view into the same output, with DATA or that of the includer.
function Engine:includer(unit)
  local found = {} -- of each name, as many as there are views
  return function(out, own_data, depth, name, data)
    if data ~= nil and type(data) ~= "table" then error("include: the data is a table, not " .. type(data), 2) end
    if depth >= INCLUDE_DEPTH_MAX then error(("include: more than %d views in each other"):format(depth), 2) end
    local included = found[name]
    if not included then
      included = self:unit(name, unit.kind)
      found[name] = included
    end
    self:run(included, out, data or own_data, {}, depth + 1)
  end
end

local function fill(self, unit, data)
  local out = buffer.new()
  self:run(unit, out, data, {}, 0)
  return out:get()
end

--- The text of UNIT, filled with DATA.
function Engine:show(unit, data)
  if data ~= nil and type(data) ~= "table" then misuse("template: the data is a table, not " .. type(data)) end
  local ok, result = xpcall(function() return fill(self, unit, data or {}) end, on_error)
  if not ok then error(result, 0) end
  return result
end

--- The view NAME filled with DATA.
---@param name string
---@param data table?
---@return string
function Engine:render(name, data)
  local unit = self:unit(name)
  return self:show(unit, data)
end

--- A function from data to text, of a template that is no file.
---@param text string
---@param opts { kind?: "html"|"xml"|"json"|"txt", name?: string }?
---@return fun(data: table?): string
function Engine:compile(text, opts)
  local given = options.check("template.compile", opts, { kind = "html|xml|json|txt", name = "string" })
  if type(text) ~= "string" then misuse("template.compile: a text was expected, not " .. type(text)) end
  local unit = self:build({ name = given.name or "template", kind = given.kind or "html", text = text }, {})
  return function(data) return self:show(unit, data) end
end

--- Compiles the views NAMES, so that what is wrong in them is known at start. Returns the messages.
---@param names string[]
---@return string[]
function Engine:check(names)
  local messages = {}
  for _, name in ipairs(names) do
    local ok, message = pcall(self.unit, self, name)
    if not ok then messages[#messages + 1] = tostring(message) end
  end
  return messages
end

local MEDIA_TYPES = {
  html = "text/html; charset=utf-8",
  xml = "application/xml",
  json = "application/json",
  txt = "text/plain; charset=utf-8",
}

--- The Content-Type of the view NAME.
---@param name string
---@return string
function template_engine.media_type(name) return MEDIA_TYPES[extension_of(Engine.file_of(name))] end

---@class srv.TemplateOptions
---@field read fun(file: string): string?, string?  the text of a view's file; nil and why not
---@field label? string              before file names in messages: "views/"
---@field strict? boolean            are unknown names errors
---@field helpers? table<string, any>  url, asset

--- An engine: the views of one app.
---@param opts srv.TemplateOptions
---@return srv.TemplateEngine
function template_engine.engine(opts)
  return setmetatable({
    read = opts.read, label = opts.label or "", units = {},
    environment = template_names.environments(opts.helpers or {}, opts.strict == true),
  }, Engine)
end

return template_engine
