--- Random trees of tasks, and what must hold in each of them: no task outlives the call or the task that
--- started it, children end before their parent's defers run, defers run once and backwards, nothing goes
--- on after its end, and what was held is free again. SEED=n runs one tree alone.
local sync = require "srv.async.sync"
local task = require "srv.async.task"

local random, sleep = math.random, task.sleep

local TREES, NODES, DEPTH = 20, 400, 6

--- One tree and all that its nodes share.
local function new_tree()
  return {
    nodes = 0, faults = {}, handles = {}, permits = 3, finished = 0,
    semaphore = sync.semaphore(3), mutex = sync.mutex(), channel = sync.channel(2), event = sync.event(),
  }
end

local function fault(tree, text) tree.faults[#tree.faults + 1] = text end

--- Three defers that know their order; the one booked first runs last, and closes the books.
local function watch(tree, node)
  for i = 1, 3 do
    task.defer(function(err)
      if node.ended ~= 3 - i then fault(tree, "a defer ran out of order, or again") end
      node.ended = node.ended + 1
      if err ~= nil and type(err) == "table" and err.code == "cancelled" then node.cancelled = true end
      if node.open > 0 then fault(tree, "a child was there when its parent's defers ran") end
      if random(6) == 1 then sleep(random(0, 1) / 1000) end
      if i > 1 then return end
      tree.finished = tree.finished + 1
      node.parent.open = node.parent.open - 1
      node.scope.open = node.scope.open - 1
    end)
  end
end

local act

--- What each task runs. PARENT is the node that started it, SCOPE counts those of one call.
local function body(tree, parent, scope, depth)
  local node = { parent = parent, scope = scope, open = 0, ended = 0 }
  tree.nodes = tree.nodes + 1
  parent.open, scope.open = parent.open + 1, scope.open + 1
  watch(tree, node)
  for _ = 1, random(4) do
    act(tree, node, depth)
    if node.ended > 0 then fault(tree, "a task went on after its end") end
  end
  local way = random(8)
  if way == 1 then error("raised", 0) end
  if way == 2 then return nil, "failed" end
  return way
end

--- A function for a child of NODE.
local function child(tree, node, scope, depth)
  return function() return body(tree, node, scope, depth + 1) end
end

--- Runs CALL(scope) and holds it to its promise: when it comes back, its children are gone.
local function scoped(tree, call)
  local scope = { open = 0 }
  pcall(call, scope)
  if scope.open > 0 then fault(tree, "a child outlived the call that started it") end
end

--- Nobody may ask for its error, which would be logged.
local function spawn(tree, node, depth)
  local handle = task.spawn(pcall, body, tree, node, { open = 0 }, depth + 1)
  tree.handles[random(50)] = handle
  return handle
end

local ACTIONS = {
  function() sleep(random(0, 2) / 1000) end,
  function(tree) tree.channel:send(1, random(0, 1) / 1000) end,
  function(tree) tree.channel:receive(random(0, 1) / 1000) end,
  function(tree) tree.event:wait(random(0, 1) / 1000) end,
  function(tree) tree.event:set() tree.event:clear() end,
  function(tree, node, depth) -- in time: three that hold one and want another would wait for ever
    task.timeout("5ms", tree.semaphore.with, tree.semaphore, act, tree, node, depth + 1)
  end,
  function(tree) if tree.semaphore:acquire(0.001) then sleep(0) end end,
  function(tree) if tree.mutex:lock(0.001) then sleep(0) tree.mutex:unlock() end end,
  function(tree, node, depth) scoped(tree, function(scope)
    task.all(child(tree, node, scope, depth), child(tree, node, scope, depth), child(tree, node, scope, depth)) end) end,
  function(tree, node, depth) scoped(tree, function(scope)
    task.race(child(tree, node, scope, depth), child(tree, node, scope, depth)) end) end,
  function(tree, node, depth) scoped(tree, function(scope)
    task.map({ 1, 2, 3, 4, 5 }, child(tree, node, scope, depth), { limit = random(3) }) end) end,
  function(tree, node, depth) scoped(tree, function(scope)
    task.timeout(random(0, 2) / 1000, child(tree, node, scope, depth)) end) end,
  spawn,
  function(tree, node, depth) pcall(function() spawn(tree, node, depth):wait(random(0, 1) / 1000) end) end,
  function(tree, node, depth) spawn(tree, node, depth):cancel() end,
  function(tree, node, depth) coroutine.wrap(function() coroutine.wrap(act)(tree, node, depth + 1) end)() end,
  function(tree) local other = tree.handles[random(50)] if other then other:cancel() end end,
  function() error "raised in the middle" end,
}

function act(tree, node, depth)
  if depth > DEPTH or tree.nodes > NODES then return sleep(0) end
  return ACTIONS[random(#ACTIONS)](tree, node, depth)
end

local function grow(seed)
  local tree = new_tree()
  math.randomseed(seed)
  while tree.nodes < NODES do
    scoped(tree, function(scope)
      local root = { open = 0 }
      local handle = task.spawn(body, tree, root, scope, 0)
      if random(3) == 1 then sleep(random(0, 3) / 1000) handle:cancel() end
      handle:wait()
    end)
  end
  return tree
end

describe("a tree of tasks", function()
  local only = tonumber(os.getenv "SEED")
  for seed = only or 1, only or TREES do
    it("leaves no orphan and nothing held, seed " .. seed, function()
      local tree = grow(seed)
      assert.same({}, tree.faults)
      assert.equal(tree.nodes, tree.finished)
      for _ = 1, 3 do assert.is_true(tree.semaphore:acquire "1s") end
      assert.is_true(tree.mutex:lock "1s")
    end)
  end
end)
