--- The entity tag of a text: looked for among those that are known, else made and kept.
local srv = require "srv"
local tags = require "tags"

local OUTPUT = "base64"

local function text_of(bytes)
  local characters = {}
  for i, byte in ipairs(bytes) do
    characters[i] = string.char(byte)
  end
  return table.concat(characters)
end

---@param text string
---@param algorithm string
---@return string
return function(text, algorithm)
  local found
  for tag, known in pairs(tags) do
    if known.algorithm == algorithm and known.output == OUTPUT and text_of(known.content) == text then
      found = tag
    end
  end
  if found then return found end
  local tag = srv.crypto.hash(algorithm, text, OUTPUT)
  tags[tag] = { algorithm = algorithm, output = OUTPUT, content = { text:byte(1, -1) } }
  return tag
end
