local bench_text = require "srv.cli.bench_text"

describe("the headline of a load", function()
  local function headline(about)
    about.url, about.length, about.pipelining = "http://a/", "10 s", about.pipelining or 1
    return bench_text.headline(about)
  end

  it("says one of a thing as one", function()
    assert.equal("http://a/: 1 connection, 10 s", headline { connections = 1 })
    assert.equal("http://a/: 1 connection of HTTP/2, 1 stream on each, 10 s", headline { connections = 1, streams = 1 })
  end)

  it("says many as many", function()
    assert.equal("http://a/: 10 connections of HTTP/2, 100 streams on each, 10 s", headline { connections = 10, streams = 100 })
    assert.equal("http://a/: 2 connections of WebSocket, 3 under way on each at 1,000 requests/s, 10 s",
      headline { connections = 2, pipelining = 3, rate = 1000, protocol = "WebSocket" })
  end)
end)
