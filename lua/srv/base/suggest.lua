--- "Did you mean": the known word nearest to one that was misspelt.
local suggest = {}

-- Longer words are no slips of the finger, and the comparison costs length times length.
local WORD_CHARS_MAX = 64

--- Edits (insert, delete, replace, swap of neighbours) from A to B.
---@param a string
---@param b string
---@return integer
local function distance(a, b)
  local before, last, row = {}, {}, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    row[0] = i
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      local edits = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same and 0 or 1))
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        edits = math.min(edits, before[j - 2] + 1)
      end
      row[j] = edits
    end
    before, last, row = last, row, before
  end
  return last[#b]
end

--- The known word that WORD was probably meant to be: at most a third of its characters differ, or
--- one of two.
--- Of equally near ones the first in byte order, so that a message is the same in every worker.
---@param word string
---@param known string[]
---@return string?
function suggest.nearest(word, known)
  if #word > WORD_CHARS_MAX or #word < 2 then return nil end
  local best, best_edits = nil, math.max(1, math.floor(#word / 3)) + 1
  for _, candidate in ipairs(known) do
    if #candidate <= WORD_CHARS_MAX then
      local edits = distance(word:lower(), candidate:lower())
      if edits < best_edits or (edits == best_edits and best and candidate < best) then
        best, best_edits = candidate, edits
      end
    end
  end
  return best
end

--- `, did you mean "timeout"?`, or "" where no known word is near.
---@param word string
---@param known string[]
---@return string
function suggest.hint(word, known)
  local nearest = suggest.nearest(word, known)
  return nearest and (', did you mean "%s"?'):format(nearest) or ""
end

--- The same for a few names that can be told in full: `, did you mean "live"?`, or `; known: live, ready`.
---@param word string
---@param known string[]
---@return string
function suggest.names(word, known)
  local hint = suggest.hint(word, known)
  if hint ~= "" or #known == 0 then return hint end
  local sorted = { unpack(known) }
  table.sort(sorted)
  return "; known: " .. table.concat(sorted, ", ")
end

return suggest
