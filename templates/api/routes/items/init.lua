--- /items: what each route takes and gives.
local srv = require "srv"
local items = require "routes.items.controllers"

local router = srv.router()

local fields = {
  title = "string 1..200 trim -- what is to be done",
  done = "boolean = false",
}

local item = srv.schema({
  id = "integer",
  title = "string",
  done = "boolean",
  created_at = "string -- UTC",
}, { name = "Item", order = { "id", "title", "done", "created_at" } })

local new_item = srv.schema(fields, { name = "NewItem", order = { "title", "done" } })
local changes = srv.schema(new_item, { partial = true, min = 1 })

router:get("/", {
  summary = "Lists items, the newest first", tags = { "items" },
  query = { limit = "integer 1..100 = 20", done = "boolean?" },
  response = { item },
}, items.list)

router:post("/", {
  summary = "Creates an item", tags = { "items" },
  body = new_item, response = { [201] = item },
}, items.create)

router:get("/:id<int>", { name = "items.show", summary = "Shows an item", tags = { "items" }, response = item }, items.show)

router:patch("/:id<int>", {
  summary = "Changes what is sent", tags = { "items" },
  body = changes, response = item,
}, items.update)

router:delete("/:id<int>", { summary = "Removes an item", tags = { "items" } }, items.remove)

return router
