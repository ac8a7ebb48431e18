local srv = require "srv"

describe("the site", function()
  local t

  before_each(function() t = srv.test(require "app") end)

  it("has a first page, and one about it", function()
    t:get("/"):expect(200):expect("content-type", "^text/html")
    t:get("/about"):expect(200)
    t:get("/style.css"):expect(200):expect("content-type", "^text/css")
  end)

  it("keeps what the form was given, for this visitor alone", function()
    t:post("/notes", { form = { text = "<b>tea</b>" } }):expect(303):expect("location", "/")
    local page = t:get("/"):expect(200).body
    assert.is_truthy(page:find("&lt;b&gt;tea&lt;/b&gt;", 1, true))
    assert.is_truthy(page:find("Noted.", 1, true))
    assert.is_nil(t:get("/").body:find("Noted.", 1, true)) -- said once
    assert.is_nil(srv.test(require "app"):get("/").body:find("tea", 1, true))
  end)

  it("says what is wrong with an empty note", function()
    t:post("/notes", { form = { text = " " } }):expect(303)
    assert.is_truthy(t:get("/").body:find("1 to 200", 1, true))
  end)

  it("forgets", function()
    t:post("/notes", { form = { text = "tea" } })
    t:post("/forget"):expect(303)
    assert.is_nil(t:get("/").body:find("<li>", 1, true))
  end)

  it("takes no form of another site", function()
    t:post("/notes", { form = { text = "x" }, headers = { Origin = "https://elsewhere.example" } }):expect(403)
  end)

  it("has a page for what is not there", function()
    t:get("/none"):expect(404):expect("content-type", "^text/html")
  end)
end)
