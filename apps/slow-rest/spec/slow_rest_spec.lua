local srv = require "srv"
local entity = require "entity"

local hash = srv.crypto.hash

describe("slow-rest", function()
  local t

  setup(function() t = srv.test(require "app") end)

  for path, algorithm in pairs { ["/a"] = "md5", ["/b"] = "sha256", ["/c"] = "sha512" } do
    it("tags " .. path .. " with " .. algorithm .. ", the first time and the second", function()
      local tag = '"' .. hash(algorithm, entity, "base64") .. '"'
      t:get(path):expect(200):expect("etag", tag)
      t:get(path):expect(200):expect("etag", tag)
    end)
  end

  it("has an entity as long as the original's", function() assert.equal(486, #entity) end)

  it("knows 2,500 tags from the start, and keeps those that it makes", function()
    package.loaded.tags, package.loaded.etag = nil, nil
    local count = 0
    for tag, known in pairs(require "tags") do
      count = count + 1
      assert.equal(tag, hash("md5", string.char(unpack(known.content)), "base64"))
    end
    assert.equal(2500, count)
  end)
end)
