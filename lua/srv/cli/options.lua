--- The options of a command, written down once: read from its arguments, and told by --help.
---
---     local line = options.new("bench", "URL...", "loads a server and says how it did", {
---       { "c", "connections", "N", "open at once", kind = "count", default = 10 },
---     })
---     local opts, rest = line:read(args)    -- nil: rest is the exit status, and all has been said
---
--- "-c 5", "-c5", "--connections 5" and "--connections=5" are the same; "--" ends options; "--no-x" turns a switch off.
local suggest = require "srv.base.suggest"
local units = require "srv.base.units"

local options = {}

local USAGE = 2 -- the exit status of a line that nobody can mean

---@class srv.cli.Option
---@field [1] string|false  letter
---@field [2] string        name
---@field [3] string|false  what its value is, for the help; false: a switch
---@field [4] string        what it is for
---@field kind string?      text (default) count number duration bytes words, for a switch none
---@field default any?
---@field many boolean?     may be given again: a list
---@field optional boolean? its value may be missing
---@field heading string?   stands over it in the help

---@class srv.cli.Options
---@field name string
---@field form string
---@field about string
---@field list srv.cli.Option[]
---@field examples string?
local Options = {}
Options.__index = Options

local READ = {
  text = function(text) return text end,
  count = function(text)
    local number = tonumber(text)
    if number and number >= 0 and number % 1 == 0 then return number end
    return nil, "a whole number"
  end,
  number = function(text)
    local number = tonumber(text)
    if number and number - number == 0 then return number end -- nan and inf are none that a command can go by
    return nil, "a number"
  end,
  duration = function(text) return units.duration(tonumber(text) or text), 'a duration like "10s" or a number of seconds' end,
  bytes = function(text) return units.bytes(tonumber(text) or text), 'a size like "1MiB"' end,
}

local function is_switch(option) return not option[3] end

local function complain(self, text)
  io.stderr:write("srv ", self.name, ": ", text, "\n     srv ", self.name, " --help tells of all options\n")
  return nil, USAGE
end

--- "max-requests" is "maxRequests" too, as other tools spell theirs.
local function plain(name) return (name:gsub("%-", ""):lower()) end

local function find(self, word)
  for _, option in ipairs(self.list) do
    if option[1] == word or #word > 1 and plain(option[2]) == plain(word) then return option end
  end
  return nil
end

local function names_of(self)
  local names = { "help" }
  for _, option in ipairs(self.list) do names[#names + 1] = option[2] end
  return names
end

local function put(found, option, value)
  if not option.many then
    found[option[2]] = value
    return
  end
  found[option[2]] = found[option[2]] or {}
  table.insert(found[option[2]], value)
end

--- Reads TEXT as OPTION's value. Returns what is wrong with it.
local function take(found, option, text)
  local value, wanted = READ[option.kind or "text"](text)
  if value == nil then return ("%s must be %s, not %q"):format("--" .. option[2], wanted, text) end
  put(found, option, value)
  return nil
end

--- "--connections=5", "--no-progress", "-c5", "-lj" -> option, its value if it stands here, rest of the letters
local function split(self, arg)
  local name, value = arg:match "^%-%-([^=]+)=?(.*)$"
  if name then
    local has_value = arg:find("=", 1, true) ~= nil
    local option = find(self, name)
    if not option and name:sub(1, 3) == "no-" then
      option = find(self, name:sub(4))
      if option and is_switch(option) then return option, false end
    end
    return option, has_value and value or nil, nil, name
  end
  local option = find(self, arg:sub(2, 2))
  local behind = arg:sub(3)
  if behind == "" then return option, nil, nil, arg:sub(2, 2) end
  if option and is_switch(option) then return option, nil, "-" .. behind, arg:sub(2, 2) end
  return option, (behind:gsub("^=", "")), nil, arg:sub(2, 2)
end

--- One argument that begins with "-". Returns how many more were used, or nil and what is wrong.
local function read_one(self, found, args, at)
  local option, value, letters, name = split(self, args[at])
  if not option then return nil, ("unknown option %q"):format(args[at]) .. suggest.names(name or "", names_of(self)) end
  if is_switch(option) then
    found[option[2]] = value == nil or value ~= false and value ~= "false"
    if letters then args[at] = letters return -1 end -- the other letters are looked at as an argument of their own
    return 0
  end
  local used = 0
  if value == nil then
    value, used = args[at + 1], 1
    if option.optional and (not value or value:sub(1, 1) == "-") then value, used = "", 0 end
  end
  if value == nil then return nil, ("--%s wants %s behind it"):format(option[2], option[3]) end
  local wrong = take(found, option, value)
  if wrong then return nil, wrong end
  return used
end

local function defaults(self)
  local found = {}
  for _, option in ipairs(self.list) do found[option[2]] = option.default end
  return found
end

--- `--help` or `-h`, unless the command has another use for the letter.
local function asks_for_help(self, arg)
  return arg == "--help" or arg == "-h" and not find(self, "h")
end

--- Options by their names, and what else stood there; `rest.behind`: what came after "--".
---@param args string[]
---@return table? opts
---@return table|integer rest_or_exit_status
function Options:read(args)
  local found, rest, at = defaults(self), {}, 1
  args = { unpack(args) }
  while at <= #args do
    local arg = args[at]
    if arg == "--" then
      rest.behind = { unpack(args, at + 1) }
      break
    elseif asks_for_help(self, arg) then
      io.stdout:write(self:help())
      return nil, 0
    elseif arg:sub(1, 1) == "-" and arg ~= "-" then
      local used, wrong = read_one(self, found, args, at)
      if not used then return complain(self, wrong) end
      at = at + used
    else
      rest[#rest + 1] = arg
    end
    at = at + 1
  end
  return found, rest
end

--- Says what is wrong with the line as a whole, and gives the exit status for it.
---@param text string
---@return integer
function Options:refuse(text)
  local _, status = complain(self, text)
  return status
end

local function left_side(option)
  local letter = option[1] and ("-" .. option[1] .. ", ") or "    "
  return ("  %s--%s%s"):format(letter, option[2], option[3] and " " .. option[3] or "")
end

local function default_text(option)
  if option.default == nil or option.default == false then return "" end
  return (" (default %s)"):format(tostring(option.default))
end

--- The page that --help shows.
---@return string
function Options:help()
  local lines = { ("srv %s %s - %s"):format(self.name, self.form, self.about) }
  local wide = 0
  for _, option in ipairs(self.list) do wide = math.max(wide, #left_side(option)) end
  wide = math.min(wide, 30)
  for i, option in ipairs(self.list) do
    if option.heading then
      lines[#lines + 1] = ("\n%s\n"):format(option.heading)
    elseif i == 1 then
      lines[#lines + 1] = ""
    end
    local left = left_side(option)
    lines[#lines + 1] = ("%s%s  %s%s"):format(left, (" "):rep(wide - #left), option[4], default_text(option))
  end
  if self.examples then lines[#lines + 1] = "\n" .. self.examples end
  return table.concat(lines, "\n") .. "\n"
end

--- "-W [ -c 1 -d 3 ]" as one value, "[ -c 1 -d 3 ]", which is how it is meant.
---@param args string[]
---@param names table<string, true>  of the options that take such a value
---@return string[]
function options.join_brackets(args, names)
  local joined, inside = {}, nil
  for i, arg in ipairs(args) do
    if not inside and arg == "[" and names[args[i - 1]] then
      inside = {}
    elseif inside and arg == "]" then
      joined[#joined + 1] = "[ " .. table.concat(inside, " ") .. " ]"
      inside = nil
    else
      table.insert(inside or joined, arg)
    end
  end
  return joined
end

--- What stands in such a value.
---@param text string
---@return string[]
function options.words(text)
  local words = {}
  for word in text:gmatch "[^%s%[%]]+" do words[#words + 1] = word end
  return words
end

---@param name string
---@param form string   what stands behind the name: "URL..."
---@param about string  a line that says what the command does
---@param list srv.cli.Option[]
---@param examples string?
---@return srv.cli.Options
function options.new(name, form, about, list, examples)
  return setmetatable({ name = name, form = form, about = about, list = list, examples = examples }, Options)
end

return options
