local srv = require "srv"

describe("items", function()
  local t

  setup(function()
    srv.test.env { DATABASE_URL = srv.test.db().url }
    t = srv.test(require "app")
  end)

  local function create(title)
    return t:post("/items", { json = { title = title } }):expect(201):json()
  end

  it("are created, and shown at their address", function()
    local answer = t:post("/items", { json = { title = "  Water the plants " } }):expect(201)
    answer:expect { title = "Water the plants", done = false }
    t:get(answer.headers.location):expect(200):expect { title = "Water the plants" }
  end)

  it("are listed, the newest first", function()
    local first, second = create "first", create "second"
    local list = t:get("/items?limit=2"):expect(200):json()
    assert.same({ second.id, first.id }, { list[1].id, list[2].id })
  end)

  it("are changed by what is sent alone", function()
    local item = create "Call Ann"
    t:patch("/items/" .. item.id, { json = { done = true } }):expect(200):expect { title = "Call Ann", done = true }
    t:get("/items?done=true"):expect(200):expect { { id = item.id } }
    t:patch("/items/" .. item.id, { json = {} }):expect(400)
  end)

  it("are gone when they are removed", function()
    local item = create "Forget"
    t:delete("/items/" .. item.id):expect(204)
    t:get("/items/" .. item.id):expect(404):expect { code = "no_item" }
    t:delete("/items/" .. item.id):expect(404)
  end)

  it("need a title", function()
    t:post("/items", { json = { title = " " } }):expect(400):expect { errors = { { path = "/title" } } }
  end)
end)

describe("the description", function()
  it("is at /docs", function()
    local t = srv.test(require "app")
    t:get("/"):expect(302):expect("location", "/docs")
    local document = t:get("/openapi.json"):expect(200):json()
    assert.is_table(document.paths["/items/{id}"].patch)
  end)
end)
