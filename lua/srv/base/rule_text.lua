--- How rules are said to people: "must have at most 80 characters".
local json = require "srv.core.json"
local types = require "srv.base.types"
local units = require "srv.base.units"

local rule_text = {}

local function shown(value)
  if value == json.null then return "null" end
  return type(value) == "string" and ('"%s"'):format(value) or ("%.17g"):format(value)
end

local function join(words)
  if #words == 1 then return words[1] end
  return table.concat(words, ", ", 1, #words - 1) .. " or " .. words[#words]
end

local describe

local function describe_all(nodes, into)
  for _, node in ipairs(nodes) do
    local words = describe(node)
    for _, word in ipairs(words) do
      if not into[word] then into[word], into[#into + 1] = true, word end
    end
  end
  return into
end

--- The words for what NODE takes, each an alternative.
function describe(node)
  if node.kind == "scalar" then return { types.get(node.type).expected } end
  if node.kind == "object" then return { "an object" } end
  if node.kind == "array" then return { "an array" } end
  if node.kind == "union" then return describe_all(node.alts, {}) end
  if node.kind ~= "literal" then return { "an accepted value" } end
  local words = {}
  for i, value in ipairs(node.values) do words[i] = shown(value) end
  return words
end

--- "must be a whole number".
---@param node table
---@return string
function rule_text.expected(node) return "must be " .. join(describe(node)) end

--- The fault of a value that is of no alternative's type.
---@param node table
---@return srv.Fault
function rule_text.mismatch(node)
  local literal_only = true
  for _, alt in ipairs(node.alts) do literal_only = literal_only and alt.kind == "literal" end
  return { path = "", code = literal_only and "one_of" or "type", message = rule_text.expected(node) }
end

local function quantity(bound, kind)
  if kind == "byte" then return units.bytes_text(bound) end
  return ("%.17g %s%s"):format(bound, kind, bound == 1 and "" or "s")
end

local function measured(node, bound)
  if node.type == "duration" then return units.duration_text(bound) end
  if node.type == "bytes" then return units.bytes_text(bound) end
  return type(bound) == "string" and bound or ("%.17g"):format(bound)
end

--- Code and message for what lies below the lower bound. KIND is what is counted: "character",
--- "item", "field", "byte"; or "value" itself.
---@return string code
---@return string message
function rule_text.too_little(node, kind)
  if kind ~= "value" then return "too_short", "must have at least " .. quantity(node.min, kind) end
  return "too_small", (node.min_open and "must be more than " or "must be at least ") .. measured(node, node.min)
end

---@return string code
---@return string message
function rule_text.too_much(node, kind)
  if kind ~= "value" then return "too_long", "must have at most " .. quantity(node.max, kind) end
  return "too_big", (node.max_open and "must be less than " or "must be at most ") .. measured(node, node.max)
end

---@return string
function rule_text.pattern(node) return ("must match the pattern %s"):format(node.pattern.text) end

---@return string
function rule_text.media(node) return "must be " .. join(node.media) end

return rule_text
