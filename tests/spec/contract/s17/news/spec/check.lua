local parts = dofile(os.getenv "S17_PARTS")
for _, name in ipairs { "helmet", "cors", "openapi" } do parts.stand_in(name) end

local srv = require "srv"
srv.test.env { DATABASE_URL = srv.test.db().url }
local t = srv.test(require "app")

local RELATED = "GET http://127.0.0.1:9000/related"

describe("news", function()
  local function create(url, tag)
    return t:post("/news", { json = { title = " A title ", url = url, tag = tag } }):expect(201):json()
  end

  it("creates, shows, lists and changes articles", function()
    srv.test.upstream { [RELATED] = { json = { { title = "near" } } } }
    local made = t:post("/news", { json = { title = " A title ", url = "https://a.example/1" } }):expect(201)
    local row = made:json()
    made:expect("location", "/news/" .. row.id)
    assert.same({ "A title", "news" }, { row.title, row.tag })
    t:get("/news/" .. row.id):expect(200):expect { item = row, related = { { title = "near" } } }
    create("https://a.example/2", "sport")
    local all = t:get("/news"):expect(200):json()
    assert.same({ "https://a.example/2", "https://a.example/1" }, { all[1].url, all[2].url })
    assert.equal(1, #t:get("/news", { query = { tag = "sport" } }):json())
    assert.equal("[]", t:get("/news?page=2"):expect(200).body)
    t:patch("/news/" .. row.id, { json = { title = "Another" } }):expect(200):expect { id = row.id, title = "Another", tag = "news" }
  end)

  it("asks for both at once, and shows an article without its related ones", function()
    local row = create "https://b.example/1"
    srv.test.upstream { [RELATED] = { status = 500 } }
    local answer = t:get("/news/" .. row.id):expect(200)
    assert.equal(0, #answer:json().related)
    assert.same({ "warn", "no related articles" }, { answer.log[1].level, answer.log[1].message })
    assert.equal("unexpected_status", answer.log[1].fields.err.code)
  end)

  it("answers faults with the status that fits", function()
    srv.test.upstream { [RELATED] = { json = {} } }
    create "https://c.example/1"
    t:post("/news", { json = { title = "x", url = "https://c.example/1" } }):expect(409):expect { code = "unique" }
    t:get("/news/999999"):expect(404):expect { detail = "No documents found" }
    t:patch("/news/999999", { json = { title = "x" } }):expect(404):expect { detail = "No documents found" }
    t:get("/news/abc"):expect(404)
    t:post("/news", { json = { title = "x", url = "no url", more = 1 } }):expect(400):expect { code = "invalid" }
    t:patch("/news/1", { json = {} }):expect(400)
    t:get("/news?page=0"):expect(400)
    t:delete("/news/1"):expect(405)
  end)

  it("serves its folder", function() t:get("/about.txt"):expect(200):expect "This is public.\n" end)
end)
