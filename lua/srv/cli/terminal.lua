--- What a terminal can do: colours, and lines that are written over; nothing of it where output is no terminal.
local core = require "srv.core.terminal"

local terminal = {}

local CODES = { bold = "1", dim = "2", red = "31", green = "32", yellow = "33", blue = "34", cyan = "36" }

---@class srv.cli.Terminal
---@field file file*
---@field is_one boolean
local Terminal = {}
Terminal.__index = Terminal

--- TEXT in COLOUR, or as it is.
---@param colour string
---@param text string
---@return string
function Terminal:paint(colour, text)
  if not self.has_colours then return text end
  return ("\27[%sm%s\27[0m"):format(CODES[colour], text)
end

--- What takes away the lines that were drawn.
local function eraser(self)
  local drawn = self.drawn or 0
  if drawn == 0 then return "" end
  return "\r" .. (drawn > 1 and ("\27[%dA"):format(drawn - 1) or "") .. "\27[J"
end

--- Takes the place of what the last call has drawn, in one write: nothing flickers.
---@param lines string[]
function Terminal:draw(lines)
  if not self.is_one then return end
  local wide, kept = core.width(self.number) or 80, {}
  for i, line in ipairs(lines) do kept[i] = terminal.cut(line, wide) .. "\27[K" end
  self.file:write(eraser(self) .. table.concat(kept, "\n"))
  self.file:flush()
  self.drawn = #lines
end

--- Takes away what was drawn.
function Terminal:erase()
  self.file:write(eraser(self))
  self.file:flush()
  self.drawn = 0
end

--- TEXT without what goes beyond WIDE columns; escape sequences have none.
---@param text string
---@param wide integer
---@return string
function terminal.cut(text, wide)
  local out, column, at = {}, 0, 1
  while at <= #text do
    local escape = text:match("^\27%[[%d;]*m", at)
    local piece = escape or text:match("^[%z\1-\127\194-\244][\128-\191]*", at) or text:sub(at, at)
    if not escape then
      column = column + 1
      if column >= wide then break end
    end
    out[#out + 1] = piece
    at = at + #piece
  end
  return table.concat(out) .. (at <= #text and "\27[0m" or "")
end

--- "1 worker", "2 workers".
---@param number integer
---@param word string
---@return string
function terminal.counted(number, word) return ("%d %s%s"):format(number, word, number == 1 and "" or "s") end

local function new(file, number)
  local is_one = core.is_terminal(number) and os.getenv "TERM" ~= "dumb" -- which shows escape sequences as they are
  return setmetatable({
    file = file, number = number, is_one = is_one,
    has_colours = is_one and not os.getenv "NO_COLOR",
  }, Terminal)
end

terminal.out = new(io.stdout, 1)
terminal.err = new(io.stderr, 2)

return terminal
