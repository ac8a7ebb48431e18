--- API, section 11: templates.
local srv = require "srv"

local function show(text, data, kind) return srv.template.compile(text, kind and { kind = kind })(data or {}) end

local function fault(text, data, kind)
  local ok, raised = pcall(show, text, data, kind)
  return not ok and tostring(raised) or "no error"
end

describe("templates", function()
  it("escape by place", function()
    assert.equal("&lt;&amp;&gt;&quot;&#39;", show("{{ v }}", { v = [[<&>"']] }))
    assert.equal('<a title="&quot;x">', show('<a title="{{ v }}">', { v = '"x' }))
    assert.equal('<a href="#">', show('<a href="{{ v }}">', { v = "javascript:alert(1)" }))
    for _, url in ipairs { "https://a/", "http://a/", "mailto:a@b", "tel:1", "/x", "x/y", "?a=1", "#f" } do
      assert.equal('<a href="' .. url .. '">', show('<a href="{{ v }}">', { v = url }))
    end
    assert.equal('<a href="/x?q=a%26b%3D%22">', show('<a href="/x?q={{ v }}">', { v = 'a&b="' }))
    assert.is_nil(show("<script>var x = {{ v }}</script>", { v = "</script>" }):find("</script>.*</script>"))
    assert.is_truthy(fault("<{{ v }}>", { v = "b" }):find("1"))
    assert.are_not.equal("no error", fault("<a title={{ v }}>", { v = "b" }))
    assert.equal("<b>", show("{{ raw(v) }}", { v = "<b>" }))
    assert.equal("", show("{{ v }}", { v = nil }))
    assert.equal("false0", show("{{ v }}{{ n }}", { v = false, n = 0 }))
  end)

  it("run Lua, trim, leave verbatim and notes alone", function()
    assert.equal("1,2,", show("{% for i = 1, 2 do %}{{ i }},{% end %}"))
    assert.equal("ab", show("a  {%- if true then -%}  b{% end %}"))
    assert.equal("a {{ b }} {% c %}", show("a {% verbatim %}{{ b }} {% c %}{% end %}"))
    assert.equal("ab", show("a{# {{ no }} #}b"))
    assert.equal("a", show("{{ upper('A'):lower() }}", { upper = function(s) return s end }))
    assert.equal("3", show("{{ math.max(1, 3) }}"))
  end)

  it("name template, line and column in errors", function()
    local broken = fault("line\n  {% if %}\n")
    assert.is_truthy(broken:find(":2:%d+"), broken)
    local running = fault("a\nb {{ v.x.y }}", { v = {} })
    assert.is_truthy(running:find(":2:%d+"), running)
    local open = fault("a\n{% if true then %}")
    assert.is_truthy(open:find(":%d+:%d+"), open)
  end)

  it("see no impure names", function()
    for _, name in ipairs { "os", "io", "require", "debug", "load", "setmetatable", "rawset", "_G", "srv" } do
      assert.equal("", show("{{ type(" .. name .. ") ~= 'nil' and '" .. name .. "' or nil }}"), name)
    end
  end)

  it("escape by their kind", function()
    assert.equal("&lt;", show("{{ v }}", { v = "<" }, "xml"))
    assert.equal("<", show("{{ v }}", { v = "<" }, "txt"))
    assert.equal('{"a":"\\"<"}', show('{"a":{{ v }}}', { v = '"<' }, "json"):gsub("\\u003[cC]", "<"), nil)
    assert.is_truthy(fault("x", {}, "pdf"):find("pdf"))
  end)

  it("a view that fails is 500, a view that is missing names itself", function()
    local app = srv.app()
    app:get("/", function(_, res) return res:render("no/such/view") end)
    local answer = srv.test(app):get("/"):expect(500)
    local told = srv.json.encode(answer.log[1].fields.err.message)
    assert.is_truthy(told:find("no/such/view", 1, true), told)
  end)
end)
