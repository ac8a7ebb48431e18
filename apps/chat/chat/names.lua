--- Names that can be told apart by looking at them.
local names = {}

local CHARACTERS_MAX = 24

-- What takes no room, or looks like a space, or turns the direction of what follows: with it two names that look
-- the same would be different. In UTF-8.
local UNSEEN = {
  "\194[\128-\160\173]",                -- controls, no-break space, soft hyphen
  "\205\143", "\216\156", "\225\133[\159\160]", "\225\154\128", "\225\158[\180\181]", "\225\160[\139-\143]",
  "\226\128[\128-\143\168-\175]", "\226\129[\159-\175]", "\226\160\128", "\227\128\128", "\227\133\164",
  "\239\184[\128-\143]", "\239\187\191", "\239\190\160", "\239\191[\176-\191]", "\243\160",
}

local function has_unseen(name)
  for _, pattern in ipairs(UNSEEN) do
    if name:find(pattern) then return true end
  end
  return false
end

local function length(name) return select(2, name:gsub("[^\128-\191]", "")) end

--- "  Ann   Lee " -> "Ann Lee" | nil and what is wrong with it.
---@param given any
---@return string? name
---@return string? fault
function names.tidy(given)
  if type(given) ~= "string" then return nil, "is missing" end
  local name = given:gsub("%s+", " "):match "^ ?(.-) ?$"
  if name == "" then return nil, "is missing" end
  if length(name) > CHARACTERS_MAX then return nil, ("has more than %d characters"):format(CHARACTERS_MAX) end
  if not name:find "[%w\128-\255]" then return nil, "needs a letter or a digit" end
  if name:find "[%c<>&\"]" or has_unseen(name) then return nil, "has characters that no name has" end
  return name
end

--- How names are compared: "ANN" is "ann".
---@param name string
---@return string
function names.fold(name) return (name:lower()) end

return names
