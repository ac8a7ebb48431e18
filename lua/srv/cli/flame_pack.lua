--- A profile small enough for a page: all stacks as one tree, in columns of small numbers, which gzip likes.
---
--- `frames`: { kind, name or 0, file or 0, defined, line }. The tree in the order of a walk: node n goes `up[n]` levels up from
--- the one before it and down into `frame[n]` (0: where all begin is not told). Samples: `at` says how many nodes further
--- than the last ones they lie, `sort` what they are (`sorts`: { worker, state, wait or 0 }), `count` how many.
local flame_export = require "srv.cli.flame_export"

local flame_pack = {}

--- In the order in which pages/flame.js knows them.
local KINDS = { "task", "app", "srv", "c", "gc", "compile", "rare" }
local KIND_NUMBERS = {}
for i, kind in ipairs(KINDS) do KIND_NUMBERS[kind] = i - 1 end

local RARE = { name = "(rare)", line = 0, defined = 0, kind = "rare" }

-- The tree --------------------------------------------------------------------------------------------

local function new_node(frame) return { frame = frame, children = {}, by_frame = {}, samples = {}, total = 0 } end

local function child_of(node, frame)
  local child = node.by_frame[frame]
  if not child then
    child = new_node(frame)
    node.by_frame[frame] = child
    node.children[#node.children + 1] = child
  end
  return child
end

local function sort_of(sorts, stack)
  local key = ("%d %s %s"):format(stack.worker, stack.state, stack.wait or "")
  if not sorts[key] then
    sorts.list[#sorts.list + 1] = { stack.worker, stack.state, stack.wait or 0 }
    sorts[key] = #sorts.list
  end
  return sorts[key]
end

local function tree_of(profile)
  local root, sorts = new_node(0), { list = {} }
  for _, stack in ipairs(profile.stacks) do
    local node, sort = root, sort_of(sorts, stack)
    root.total = root.total + stack.count
    for _, frame in ipairs(stack.frames) do
      node = child_of(node, frame)
      node.total = node.total + stack.count
    end
    node.samples[sort] = (node.samples[sort] or 0) + stack.count
  end
  return root, sorts.list
end

local function collect(node, samples)
  for sort, count in pairs(node.samples) do samples[sort] = (samples[sort] or 0) + count end
  for _, child in ipairs(node.children) do collect(child, samples) end
end

--- Puts what has fewer samples than LEAST together, beside the other children of where it was called.
local function join_rare(node, least, rare)
  local kept, joined = {}, nil
  for _, child in ipairs(node.children) do
    if child.total >= least then
      kept[#kept + 1] = child
      join_rare(child, least, rare)
    else
      joined = joined or new_node(rare)
      collect(child, joined.samples)
    end
  end
  kept[#kept + 1] = joined
  node.children = kept
end

-- Columns ---------------------------------------------------------------------------------------------

--- Frames that come often get small numbers.
local function number_frames(root)
  local uses, order, numbers = {}, {}, {}
  local function count(node)
    for _, child in ipairs(node.children) do
      if not uses[child.frame] then order[#order + 1] = child.frame end
      uses[child.frame] = (uses[child.frame] or 0) + 1
      count(child)
    end
  end
  count(root)
  table.sort(order, function(a, b)
    if uses[a] ~= uses[b] then return uses[a] > uses[b] end
    return a < b
  end)
  for number, frame in ipairs(order) do numbers[frame] = number - 1 end
  return order, numbers
end

local function add_samples(out, node, place)
  local sorts = {}
  for sort in pairs(node.samples) do sorts[#sorts + 1] = sort end
  table.sort(sorts)
  for _, sort in ipairs(sorts) do
    out.at[#out.at + 1] = place - out.last
    out.sort[#out.sort + 1] = sort - 1
    out.count[#out.count + 1] = node.samples[sort]
    out.last = place
  end
end

--- Node 0 is the root, where stacks without a frame end.
local function write_tree(root, numbers)
  local out, depth_before, place = { up = {}, frame = {}, at = {}, sort = {}, count = {}, last = 0 }, 0, 0
  add_samples(out, root, 0)
  local function write(node, depth)
    place = place + 1
    out.up[place] = depth_before - depth + 1
    out.frame[place] = numbers[node.frame]
    depth_before = depth
    add_samples(out, node, place)
    for _, child in ipairs(node.children) do write(child, depth + 1) end
  end
  for _, child in ipairs(root.children) do write(child, 1) end
  out.last = nil
  return out
end

local function write_frames(frames, order)
  local rows = {}
  for i, id in ipairs(order) do
    local frame = frames[id] or RARE
    rows[i] = { KIND_NUMBERS[frame.kind], frame.name or 0, frame.file or 0, frame.defined, frame.line }
  end
  return rows
end

--- LEAST: stacks with fewer samples are put together where they were called; 1 keeps all.
---@param profile srv.cli.FlameProfile
---@param least integer?
---@return table
function flame_pack.pack(profile, least)
  local root, sorts = tree_of(profile)
  if least and least > 1 then join_rare(root, least, #profile.frames + 1) end
  local order, numbers = number_frames(root)
  return {
    about = flame_export.about(profile), kinds = KINDS, sorts = sorts, least = least,
    frames = write_frames(profile.frames, order), tree = write_tree(root, numbers),
  }
end

return flame_pack
