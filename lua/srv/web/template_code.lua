--- From a template's pieces to Lua. Each piece becomes lines of its own, and a map leads from a
--- line back to the byte of the template that it came from, so that errors can name the place.
---
--- The generator follows two things at once: the places of the page (template_html), and the blocks
--- of the Lua between the tags, for the branches of an `if` must end in the same place, and a loop
--- where it began.
local template_data = require "srv.web.template_data"
local template_html = require "srv.web.template_html"
local template_lexer = require "srv.web.template_lexer"
local template_lua = require "srv.web.template_lua"
local suggest = require "srv.base.suggest"

local template_code = {}

local MACHINES = {
  html = template_html, xml = template_data.xml, json = template_data.json, txt = template_data.txt,
}

template_code.KINDS = { html = true, xml = true, json = true, txt = true }

---@class srv.TemplateFrame
---@field kind "if"|"loop"|"do"|"function"|"block"|"define"
---@field word string        what opened it, for messages
---@field at integer         where
---@field start table        the context there
---@field ended? table       what the branches so far end in
---@field has_else? boolean
---@field name? string       of a block

---@class srv.TemplateBlock
---@field context table    where it stands
---@field within string[]  the blocks around it: whoever replaces one removes it

---@class srv.TemplateBuilder
---@field machine table
---@field context table
---@field frames srv.TemplateFrame[]
---@field lines string[]
---@field map integer[]      for each line the byte of the template
---@field awaits_do? string   the `for` or `while` whose `do` is to come
---@field parent? table      what the template extends, built
---@field blocks table<string, srv.TemplateBlock>  those that may be replaced
---@field includes { name: string, at: integer }[]
local Builder = {}
Builder.__index = Builder

local function fail(at, message, ...)
  error({ at = at, message = select("#", ...) > 0 and message:format(...) or message }, 0)
end

local function copy(context)
  local out = {}
  for field, value in pairs(context) do out[field] = value end
  return out
end

-- ---- output -------------------------------------------------------------------------------------

--- Adds TEXT of Lua that came from byte AT on; every line of it gets its own entry in the map.
function Builder:emit(text, at)
  local from = 1
  repeat
    local newline = text:find("\n", from, true)
    table.insert(self.lines, text:sub(from, newline and newline - 1))
    table.insert(self.map, at + from - 1)
    from = newline and newline + 1
  until not from
end

local function quote(text)
  return (("%q"):format(text):gsub("\\\n", "\\n"):gsub("\r", "\\r"):gsub("%z", "\\000"))
end

--- The first byte of a tag's Lua that is no blank: what an error points at.
local function first_of(piece) return piece.tokens[1] and piece.tokens[1].at or piece.at end

-- ---- frames: blocks of Lua and of the template --------------------------------------------------

function Builder:top() return self.frames[#self.frames] end

function Builder:push_loop(word, at)
  self.machine.begin_loop(self.context)
  self:push("loop", word, at)
end

function Builder:push(kind, word, at, name)
  table.insert(self.frames, { kind = kind, word = word, at = at, start = copy(self.context), name = name })
end

--- The context where one that was in A meets one that is in B. MESSAGE has places for both.
function Builder:join(a, b, at, message)
  local joined = self.machine.join(a, b)
  if joined then return joined end
  fail(at, message, self.machine.describe(a), self.machine.describe(b))
end

function Builder:end_branch(frame, at)
  if not frame.ended then
    frame.ended = copy(self.context)
    return
  end
  frame.ended = self:join(frame.ended, self.context, at, "one branch of this if ends %s, another %s")
end

local ENDS = {}

ENDS["if"] = function(self, frame, at)
  self:end_branch(frame, at)
  if not frame.has_else then
    frame.ended = self:join(frame.start, frame.ended, at, "an if without else begins %s and ends %s")
  end
  self.context = frame.ended
end

function ENDS.loop(self, frame, at)
  if not self.machine.may_repeat(frame.start, self.context) then
    fail(at, "what a loop repeats cannot stand after itself here, %s", self.machine.describe(self.context))
  end
  self.context = self:join(frame.start, self.context, at, "a loop begins %s and ends %s")
end

ENDS["do"] = function() end
ENDS["function"] = function() end

function ENDS.block(self, frame, at)
  self.context = self:join(frame.start, self.context, at, "a block begins %s and ends %s")
  self.machine.end_block(self.context)
end

function ENDS.define(self, frame, at)
  ENDS.block(self, frame, at)
  self.context = self.machine.start()
end

function Builder:pop(at, closer)
  local frame = table.remove(self.frames)
  if not frame then fail(at, "%s closes nothing", closer) end
  ENDS[frame.kind](self, frame, at)
end

function Builder:branch(at, word)
  local frame = self:top()
  if not frame or frame.kind ~= "if" then fail(at, "%s without an if", word) end
  self:end_branch(frame, at)
  frame.has_else = word == "else"
  self.context = copy(frame.start)
end

--- Where a jump leaves from or lands: no text may be cut off in the middle of a tag.
function Builder:check_jump(at, word)
  for i = #self.frames, 1, -1 do
    local frame = self.frames[i]
    if frame.kind == "function" then return end
    if frame.kind == "loop" and word ~= "return" then
      self:join(frame.start, self.context, at, "the loop begins %s, and " .. word .. " stands %s")
      return
    end
  end
  if not self.machine.is_text(self.context) then fail(at, "%s can stand in text only", word) end
end

local WORDS = {
  ["if"] = function(self, at) self:push("if", "if", at) end,
  ["elseif"] = function(self, at) self:branch(at, "elseif") end,
  ["else"] = function(self, at) self:branch(at, "else") end,
  ["for"] = function(self) self.awaits_do = "for" end,
  ["while"] = function(self) self.awaits_do = "while" end,
  ["do"] = function(self, at)
    if self.awaits_do then self:push_loop(self.awaits_do, at) else self:push("do", "do", at) end
    self.awaits_do = nil
  end,
  ["repeat"] = function(self, at) self:push_loop("repeat", at) end,
  ["function"] = function(self, at) self:push("function", "function", at) end,
  ["end"] = function(self, at) self:pop(at, "end") end,
  ["until"] = function(self, at) self:pop(at, "until") end,
  ["break"] = function(self, at) self:check_jump(at, "break") end,
  ["goto"] = function(self, at) self:check_jump(at, "goto") end,
  ["return"] = function(self, at) self:check_jump(at, "return") end,
}

local function has_label(tokens)
  for i = 1, #tokens - 1 do
    if tokens[i].text == ":" and tokens[i + 1].text == ":" and tokens[i + 1].at == tokens[i].at + 1 then return true end
  end
  return false
end

--- Follows the keywords of a code tag.
function Builder:follow(piece)
  if has_label(piece.tokens) then self:check_jump(first_of(piece), "a label") end
  for _, name in ipairs(template_lua.names(piece.tokens)) do
    if WORDS[name] then WORDS[name](self, first_of(piece)) end
  end
  for _, frame in ipairs(self.frames) do
    if frame.kind == "function" then
      fail(frame.at, "a function cannot hold text of the template: make it a template and include it")
    end
  end
end

-- ---- what a machine raises ----------------------------------------------------------------------

--- Runs a machine's function on a piece; its offsets become places in the template.
function Builder:ask(fn, piece, ...)
  local ok, result = pcall(fn, self.context, ...)
  if ok then return result end
  if type(result) ~= "table" then error(result, 0) end
  local at = piece.kind == "text" and template_lexer.origin(piece, math.max(result.offset, 1)) or first_of(piece)
  fail(at, "%s", result.message)
end

-- ---- pieces -------------------------------------------------------------------------------------

--- In a template that extends another only what its blocks hold is shown.
function Builder:is_outside()
  if not self.parent then return false end
  for _, frame in ipairs(self.frames) do
    if frame.kind == "define" then return false end
  end
  return true
end

local NEVER_SHOWN = "%s outside of a block is never shown, since this template extends another"

local BUILD = {}

function BUILD.text(self, piece, is_last)
  if self:is_outside() then
    if piece.text:find("%S") then
      local blank = #piece.text:match("^%s*")
      fail(template_lexer.origin(piece, blank + 1), NEVER_SHOWN, "text")
    end
    return
  end
  self:ask(self.machine.feed, piece, piece.text)
  local text = is_last and piece.text or self.machine.settled(self.context, piece.text)
  self:emit("__o:put(" .. quote(text) .. ")", piece.at)
end

--- `raw(...)` and nothing around it: the one thing that may stand anywhere.
local function is_whole_raw(tokens)
  if tokens[1].text ~= "raw" or not tokens[2] or tokens[2].text ~= "(" then return false end
  local depth = 0
  for i = 2, #tokens do
    local mark = tokens[i].kind == "mark" and tokens[i].text
    depth = depth + (mark == "(" and 1 or mark == ")" and -1 or 0)
    if depth == 0 then return i == #tokens end
  end
  return false
end

--- Lua's own message for a chunk that does not compile, without its place.
local function complaint(message) return (message:gsub("^.-:%d+: ", "")) end

--- A value must be one expression by itself, or it could close what is written around it.
local function check_expression(piece)
  local chunk, message = loadstring(("return (%s\n)"):format(piece.text), "=value")
  if chunk then return end
  fail(first_of(piece), "%s", (complaint(message):gsub("'%)'", "'}}'")))
end

function BUILD.value(self, piece)
  if self:is_outside() then fail(first_of(piece), NEVER_SHOWN, "a value") end
  check_expression(piece)
  self:ask(self.machine.cut, piece)
  local escape = self:ask(self.machine.value, piece, is_whole_raw(piece.tokens))
  local lead = first_of(piece) - piece.at
  self:emit(("__o:put(__e.%s(%s"):format(escape, piece.text:sub(lead + 1)), piece.at + lead)
  self:emit("))", piece.at + lead)
end

-- ---- directives ---------------------------------------------------------------------------------

--- The name that a directive gives as a literal.
local function literal_name(piece)
  local name = template_lua.string_value(piece.tokens[2])
  if not name then
    local word = piece.tokens[1].text
    fail(first_of(piece), '%s wants a name in quotes: {%% %s "name" %%}', word, word)
  end
  if piece.tokens[3] then fail(piece.tokens[3].at, "%q is not understood here", piece.tokens[3].text) end
  return name
end

local function open_blocks(self)
  local names = {}
  for _, frame in ipairs(self.frames) do names[#names + 1] = frame.name end
  return names
end

--- A block that another template may replace: its own text is the default.
local function place_block(self, piece, name)
  if not self.machine.may_hold_block(self.context) then fail(first_of(piece), "a block cannot stand in a URL or a string") end
  if self.blocks[name] then fail(first_of(piece), "a second block %q", name) end
  self.blocks[name] = { context = copy(self.context), within = open_blocks(self) }
  self:push("block", "block", first_of(piece), name)
  self:emit(("if __b[%s] then __b[%s](__o) else"):format(quote(name), quote(name)), piece.at)
end

--- A block that takes the place of the parent's.
local function define_block(self, piece, name)
  local place = self.parent.blocks[name]
  if not place then
    local names = {}
    for known in pairs(self.parent.blocks) do names[#names + 1] = known end
    fail(first_of(piece), "%q has no block %q%s", self.parent.name, name, suggest.hint(name, names))
  end
  if self.defined[name] then fail(first_of(piece), "a second block %q", name) end
  self.defined[name] = true
  self.context = copy(place.context)
  self:push("define", "block", first_of(piece), name)
  self:emit(("__b[%s] = __b[%s] or function(__o)"):format(quote(name), quote(name)), piece.at)
end

local DIRECTIVES = {}

function DIRECTIVES.block(self, piece)
  local name = literal_name(piece)
  self:ask(self.machine.cut, piece)
  if self:is_outside() then return define_block(self, piece, name) end
  return place_block(self, piece, name)
end

function DIRECTIVES.extends(self, piece)
  local name = literal_name(piece)
  if #self.lines > 1 then fail(first_of(piece), "extends must come first") end
  self.parent = self.options.parent(name, first_of(piece))
end

function DIRECTIVES.include(self, piece)
  if self:is_outside() then fail(first_of(piece), NEVER_SHOWN, "an include") end
  self:ask(self.machine.cut, piece)
  if not self.machine.is_text(self.context) then
    fail(first_of(piece), "include can stand in text only, not %s", self.machine.describe(self.context))
  end
  local word = piece.tokens[1]
  local arguments = piece.text:sub(word.at + #word.text - piece.at + 1)
  if not loadstring(("f(%s\n)"):format(arguments)) or not piece.tokens[2] then
    fail(first_of(piece), 'include wants a name and perhaps a table: {%% include "name", { key = value } %%}')
  end
  local after = piece.tokens[3]
  local name = (not after or after.text == ",") and template_lua.string_value(piece.tokens[2])
  if name then table.insert(self.includes, { name = name, at = first_of(piece) }) end
  self:emit(("__include(__o, __d, __n, %s"):format(arguments), word.at)
  self:emit(")", word.at)
end

--- Is it `block "x"`, not a call of a function or a field that bears the name?
local function directive_of(piece)
  local first, second = piece.tokens[1], piece.tokens[2]
  if not first or first.kind ~= "name" or not DIRECTIVES[first.text] then return nil end
  if second and second.kind == "mark" and second.text:find("[=.:,]") then return nil end
  return DIRECTIVES[first.text]
end

function BUILD.code(self, piece)
  local directive = directive_of(piece)
  if directive then return directive(self, piece) end
  self:ask(self.machine.cut, piece)
  self:follow(piece)
  local lead = first_of(piece) - piece.at
  self:emit(piece.text:sub(lead + 1), piece.at + lead)
end

-- ---- the whole ----------------------------------------------------------------------------------

local function check_end(self, text)
  local open = self:top()
  if open then fail(open.at, "this %s has no end", open.word) end
  if not self.machine.is_text(self.context) then
    fail(#text, "the template ends %s", self.machine.describe(self.context))
  end
end

--- Is BLOCK, of what self extends, still shown?
local function is_left(self, block)
  for _, name in ipairs(block.within) do
    if self.defined[name] then return false end
  end
  return true
end

--- What a child may replace: its own blocks and those that are left of what it extends.
local function inherited_blocks(self)
  local blocks = {}
  for name, block in pairs(self.parent and self.parent.blocks or {}) do
    if is_left(self, block) then blocks[name] = block end
  end
  for name, block in pairs(self.blocks) do blocks[name] = block end
  return blocks
end

---@class srv.TemplateCode
---@field source string
---@field map integer[]
---@field blocks table<string, srv.TemplateBlock>
---@field parent? table
---@field includes { name: string, at: integer }[]

--- The pieces of TEXT; blanks before an `extends` are none.
local function pieces_of(text)
  local pieces = template_lexer.pieces(text)
  local first, second = pieces[1], pieces[2]
  if second and second.kind == "code" and directive_of(second) == DIRECTIVES.extends
    and first.kind == "text" and not first.text:find("%S") then
    table.remove(pieces, 1)
  end
  return pieces
end

--- Lua for the template TEXT. Raises { at, message }.
---@param text string
---@param options { kind: string, parent: fun(name: string, at: integer): table }  parent() gives what is extended
---@return srv.TemplateCode
function template_code.generate(text, options)
  local machine = MACHINES[options.kind]
  local self = setmetatable({
    machine = machine, context = machine.start(), options = options, frames = {}, lines = {}, map = {},
    blocks = {}, defined = {}, includes = {},
  }, Builder)
  self:emit("local __e, __include, __parent = ... return function() return function(__o, __d, __b, __n)", 1)
  local pieces = pieces_of(text)
  for i, piece in ipairs(pieces) do BUILD[piece.kind](self, piece, i == #pieces) end
  check_end(self, text)
  if self.parent then self:emit("__parent(__o, __d, __b, __n)", #text) end
  self:emit("end end", #text)
  return {
    source = table.concat(self.lines, "\n"), map = self.map, includes = self.includes,
    parent = self.parent, blocks = inherited_blocks(self),
  }
end

return template_code
