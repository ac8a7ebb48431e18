--- Rules of srv.schema: a text is a rule or its fault is told; a rule that is one judges any value, and what
--- it takes it takes again.
local rule_parse = require "srv.base.rule_parse"
local schema = require "srv.web.schema"

local VALUES = { "", "a", "12", "a@b.c", "2024-02-29", "\255", 0, -1, 1.5, 1e300, true, false }

local function known(text)
  local node, message = rule_parse.parse(text)
  if not node and (type(message) ~= "string" or not message:find("in the rule", 1, true)) then
    error(("%q: %s"):format(text, tostring(message)))
  end
  return node
end

return function(text)
  if not known(text) then return end
  local ok, made = pcall(schema, text)
  if not ok then -- a rule may still name a default that does not fit
    if not tostring(made):find("^srv.schema: ") then error(made, 0) end
    return
  end
  for _, value in ipairs(VALUES) do made:check(value) end
  made:check { "a" }
  made:check { a = 1 }
end
