local srv = require "srv"

describe("hello", function()
  local t

  setup(function() t = srv.test(require "app") end)

  it("greets", function() t:get("/"):expect(200):expect("content-type", "text/plain; charset=utf-8"):expect "Hello, world!" end)

  it("tells the user's id, decoded", function() t:get("/users/a%2Fb"):expect(200):expect '{"id":"a/b"}' end)
end)
