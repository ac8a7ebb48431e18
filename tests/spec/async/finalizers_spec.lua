-- luacheck: globals newproxy

--- Garbage enough for a cycle, in a loop that is compiled.
local function make_garbage()
  local kept = {}
  for i = 1, 300000 do kept[i % 100] = { i } end
  return #kept
end

describe("a finalizer that raises", function()
  it("of a proxy harms nobody", function()
    local ran = 0
    for _ = 1, 12 do
      local proxy = newproxy(true)
      getmetatable(proxy).__gc = function()
        ran = ran + 1
        error "in a finalizer"
      end
      proxy = nil -- luacheck: ignore 311
      make_garbage()
    end
    collectgarbage()
    assert.equal(12, ran)
  end)

  it("of cdata harms nobody", function()
    local ffi = require "ffi"
    local ran = 0
    local function finalizer() ran = ran + 1 error "in a finalizer" end
    local made = ffi.metatype("struct { int finalizers_spec_field; }", { __gc = finalizer, __index = { seven = 7 } })
    for _ = 1, 6 do
      ffi.gc(ffi.new "int[4]", finalizer)
      assert.equal(7, made().seven)
      make_garbage()
    end
    collectgarbage()
    collectgarbage()
    assert.equal(12, ran)
  end)
end)

describe("finalizers", function()
  it("get their object, and can be taken away", function()
    local ffi = require "ffi"
    local seen
    local object = ffi.gc(ffi.new("int[1]", 42), function(o) seen = o[0] end)
    ffi.gc(object, nil)
    object = ffi.gc(ffi.new("int[1]", 43), function(o) seen = o[0] end) -- luacheck: ignore 311
    object = nil -- luacheck: ignore 311
    collectgarbage()
    collectgarbage()
    assert.equal(43, seen)
  end)

  it("may be C functions", function()
    local ffi = require "ffi"
    ffi.cdef "void *malloc(size_t); void free(void *);"
    assert.not_nil(ffi.gc(ffi.C.malloc(8), ffi.C.free))
    collectgarbage()
  end)
end)
