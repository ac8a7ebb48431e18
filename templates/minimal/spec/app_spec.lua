local srv = require "srv"

describe("@NAME@", function()
  local t

  setup(function() t = srv.test(require "app") end)

  it("greets", function()
    t:get("/"):expect(200):expect { hello = "world" }
    t:get("/?name=Ann"):expect { hello = "Ann" }
  end)

  it("refuses a name that is none", function()
    t:get("/", { query = { name = ("x"):rep(41) } }):expect(400)
  end)
end)
