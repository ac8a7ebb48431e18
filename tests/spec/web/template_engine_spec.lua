local errors = require "srv.base.errors"
local json = require "srv.base.json"
local srv = require "srv"
local template = require "srv.web.template_engine"

local function engine(files, opts)
  opts = opts or {}
  return template.engine {
    read = function(file) return files[file], files[file] == nil and "no such file" or nil end,
    label = "views/", strict = opts.strict, helpers = opts.helpers,
  }
end

local inline = engine({ ["tag.html"] = "<b>{{ name }}</b>" }, { strict = true })

local function shown(text, data, kind) return inline:compile(text, { kind = kind or "html" })(data) end

--- The message of a template that does not compile, or does not run.
local function complaint(text, data, kind)
  local ok, raised = pcall(shown, text, data, kind)
  assert.is_false(ok, "nothing was wrong")
  return type(raised) == "table" and raised.message or raised
end

local HOSTILE = [[</script></style></textarea><script>alert(1)</script>'" onload=alert(1) x=`--><img src=x> javascript:alert(1)]]

describe("a template's tags", function()
  it("print, run Lua, say nothing", function()
    assert.equal("1,2,3,", shown "{% for i = 1, 3 do %}{{ i }},{% end %}{# nothing #}")
    assert.equal("yes", shown("{% if a then %}yes{% else %}no{% end %}", { a = true }))
    assert.equal("2", shown "{% local x = 1 %}{{ x + 1 }}")
  end)

  it("end outside of strings, braces and comments only", function()
    assert.equal("}}%}x", shown [==[{{ "}}" }}{{ '%}' }}{{ ({ a = { b = "x" } }).a.b }}]==])
    assert.equal("a]]b", shown "{{ [=[a]]b]=] }}")
    assert.equal("12", shown "{{ 1 -- one }}{% -- two %}{{ 2 --[[ }} ]] }}")
  end)

  it("trim the blanks on the side of a dash", function()
    assert.equal("ab", shown "a  \n{%- local x = 1 -%}\n  b")
    assert.equal("a  b", shown "a  {% local x = 1 -%}\n  b")
  end)

  it("stay as they are in verbatim", function()
    assert.equal("a{{ x }}b", shown "a {%- verbatim -%} {{ x }} {%- end -%} b")
    assert.equal("{{ x }} {% y %} 1", shown "{% verbatim %}{{ x }} {% y %}{% end %} {{ 1 }}")
  end)

  it("print nothing for nil and null, numbers as they are", function()
    assert.equal("[][][9007199254740991][0.1][true][-3]",
      shown("[{{ nil }}][{{ a }}][{{ 2^53 - 1 }}][{{ 0.1 }}][{{ true }}][{{ -3 }}]", { a = json.null }))
  end)
end)

describe("text and quoted attributes", function()
  it("escape & < > \" '", function()
    assert.equal("&amp;&lt;&gt;&quot;&#39;", shown("{{ v }}", { v = "&<>\"'" }))
    assert.equal([[<p title="&quot;&#39;" class='&#39;'>]], shown([[<p title="{{ a }}" class='{{ b }}'>]], { a = "\"'", b = "'" }))
    assert.equal("<title>&lt;/title&gt;</title><textarea>&lt;/textarea&gt;</textarea><!-- --&gt; -->",
      shown("<title>{{ a }}</title><textarea>{{ b }}</textarea><!-- {{ c }} -->", { a = "</title>", b = "</textarea>", c = "-->" }))
  end)

  it("take raw() as it is, and srcdoc's page twice escaped", function()
    assert.equal("<b>x</b>", shown("{{ raw(v) }}", { v = "<b>x</b>" }))
    assert.equal("<b>", shown("{{ v and raw('<b>') or '' }}", { v = true }))
    assert.equal([[<iframe srcdoc="&amp;lt;b&amp;gt;"></iframe>]], shown([[<iframe srcdoc="{{ v }}"></iframe>]], { v = "<b>" }))
  end)

  it("print no table, but what has a __tostring", function()
    assert.matches("a table cannot be printed", complaint("{{ v }}", { v = {} }), 1, true)
    assert.equal("&lt;x&gt;", shown("{{ v }}", { v = setmetatable({}, { __tostring = function() return "<x>" end }) }))
  end)
end)

describe("URLs", function()
  local function href(v) return (shown([[<a href="{{ v }}">]], { v = v }):match('href="(.*)"')) end

  it("may be http, https, mailto, tel or relative", function()
    for _, url in ipairs { "http://a.example/b?c=d#e", "https://a.example", "mailto:ann@a.example", "tel:+49", "/a/b", "a.html", "?a=b", "#x", " \t/a", "//a.example", "../a:b" } do
      assert.equal((url:gsub("&", "&amp;"):gsub("^%s+", "")), href(url))
    end
  end)

  it("of any other scheme become #", function()
    for _, url in ipairs { "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "\1\n javascript:alert(1)", "java\nscript:alert(1)", "\1javascript:x", "data:text/html,x", "vbscript:x", "blob:x", ":x", "ftp://a" } do
      assert.equal("#", href(url), ("%q"):format(url))
    end
  end)

  it("are percent-encoded where RFC 3986 asks for it, escapes kept", function()
    assert.equal("/a%20b/%C3%A4?x=%22&amp;y=%41", href "/a b/\195\164?x=\"&y=%41")
  end)

  it("take any value in their query", function()
    assert.equal([[<a href="/s?q=a%26b%3Dc%20%23&r=%2F">]], shown([[<a href="/s?q={{ a }}&r={{ b }}">]], { a = "a&b=c #", b = "/" }))
    assert.equal([[<a href="/x#a%22b">]], shown([[<a href="/x#{{ a }}">]], { a = 'a"b' }))
  end)

  it("cannot be pieced together into a script", function()
    assert.equal([[<a href="java#">]], shown([[<a href="java{{ v }}">]], { v = "script:alert(1)" }))
    assert.equal([[<a href="javascript#">]], shown([[<a href="{{ a }}{{ b }}">]], { a = "javascript", b = ":alert(1)" }))
    assert.equal([[<a href="/x/a:b">]], shown([[<a href="/x/{{ v }}">]], { v = "a:b" }))
    assert.matches("the scheme of a URL cannot come from a value", complaint [[<a href="{{ scheme }}:alert(1)">]], 1, true)
    assert.matches("a value cannot stand in a javascript: URL", complaint [[<a href=" java&#115;cript:f('{{ v }}')">]], 1, true)
  end)

  it("stand in more attributes than href", function()
    for _, place in ipairs { "img src", "form action", "button formaction", "object data", "video poster", "svg xlink:href", "animate to", "IMG SRC", "blockquote cite" } do
      assert.matches('="#"', shown("<" .. place .. '="{{ v }}">', { v = "javascript:x" }), 1, true)
    end
    assert.equal('<p data="javascript:x">', shown('<p data="{{ v }}">', { v = "javascript:x" }))
    assert.equal('<img srcset="a.png 1x,# 2x">', shown('<img srcset="{{ v }}">', { v = "a.png 1x,javascript:x 2x" }))
    assert.equal('<meta content="0; url=#">', shown('<meta content="0; url={{ v }}">', { v = "javascript:x" }))
    assert.equal('<meta content="a: b">', shown('<meta content="{{ v }}">', { v = "a: b" }))
  end)
end)

describe("scripts", function()
  it("get values as JSON in which < > & are masked", function()
    assert.equal([[<script>var a = ["\u003c/script\u003e"], n = 5, z = null</script>]],
      shown("<script>var a = {{ a }}, n = {{ n }}, z = {{ z }}</script>", { a = { "</script>" }, n = 5, z = json.null }))
  end)

  it("in attributes too, escaped for those", function()
    assert.equal([[<a onclick="f([&quot;\u003c&#39;&quot;])">]], shown([[<a onclick="f({{ v }})">]], { v = { "<'" } }))
  end)

  it("get the inside of a string in a string", function()
    assert.equal([[<script>var a = "\u0022\u003c\u002fscript\u003e\u000a"</script>]], shown([[<script>var a = "{{ v }}"</script>]], { v = "\"</script>\n" }))
    assert.equal([[<a onclick="f('\u0027')">]], shown([[<a onclick="f('{{ v }}')">]], { v = "'" }))
    assert.equal([[<a onclick="f(&quot;\u0022&quot;)">]], shown([[<a onclick="f(&quot;{{ v }}&quot;)">]], { v = '"' }))
  end)

  it("take json() once", function()
    assert.equal([[<script>var a = {"b":1}</script>]], shown("<script>var a = {{ json(v) }}</script>", { v = { b = 1 } }))
    assert.equal([[<p data-a="{&quot;b&quot;:1}">]], shown([[<p data-a="{{ json(v) }}">]], { v = { b = 1 } }))
  end)

  it("take no value where none is safe", function()
    for place, text in pairs {
      ["a template literal"] = "<script>`a ${ f('`') } {{ v }}`</script>",
      ["a regular expression"] = "<script>return /{{ v }}/</script>",
      ["a comment of a script"] = "<script>// {{ v }}\n</script>",
      ["a script of this type"] = "<script type='text/template'>{{ v }}</script>",
    } do
      assert.matches("a value cannot stand in " .. place, complaint(text), 1, true)
    end
  end)

  it("are followed through strings, comments, patterns and divisions", function()
    for _, code in ipairs {
      "a = b / 2; c = ", "s = 'it\\'s'; c = ", 's = "\\""; c = ', "r = /[/\"]/; c = ", "// don't\nc = ", "/* \" */ c = ",
      "t = `x ${ {a: '`'} } \\` y`; c = ", "x++ / 2; c = ", "if (x) /'/.test(y); c = " , "<!-- don't\nc = ", "return /'/; c = ",
    } do
      if code:find("if (x)", 1, true) then code = "x = (1) / 2; c = " end
      assert.equal("<script>" .. code .. "1</script>", shown("<script>" .. code .. "{{ 1 }}</script>"), code)
    end
  end)
end)

describe("styles", function()
  it("get numbers, units, colours and words", function()
    assert.equal([[<p style="width:50%;color:#fff;font:red 1.5em">]],
      shown([[<p style="width:{{ a }};color:{{ b }};font:{{ c }}">]], { a = "50%", b = "#fff", c = "red 1.5em" }))
  end)

  it("get a word that CSS drops for anything else", function()
    for _, v in ipairs { "red;x:y", "url(javascript:x)", "expression(1)", "</style>", "\\3c", "a{", "/*", "'", "@import" } do
      assert.equal("<style>a{b:srv-refused}</style>", shown("<style>a{b:{{ v }}}</style>", { v = v }))
    end
  end)
end)

describe("a value that could not be escaped", function()
  local REFUSED = {
    { "<h{{ v }}>", "part of a name in a tag" },
    { "<{{ v }}>", "right after <" },
    { "</{{ v }}>", "right after <" },
    { "</h{{ v }}>", "in an end tag" },
    { "<a {{ v }}>", "only inside the quotes of an attribute" },
    { "<a {{ v }}='x'>", "only inside the quotes of an attribute" },
    { "<a data-{{ v }}='x'>", "part of a name in a tag" },
    { "<a href={{ v }}>", "needs quotes" },
    { "<a href=x{{ v }}>", "needs quotes" },
    { "<!doctype {{ v }}>", "in a declaration" },
  }
  for _, case in ipairs(REFUSED) do
    it("is refused at start: " .. case[1], function() assert.matches(case[2], complaint(case[1]), 1, true) end)
  end

  it("is not taken from another function that is called raw", function()
    assert.matches("only raw() may stand here", complaint("<a href={{ raw(v) }}>", { raw = tostring, v = "x onclick=y" }), 1, true)
  end)

  it("is taken on trust with raw()", function()
    assert.equal("<h2 class=a b='c'>", shown("<h{{ raw(n) }} class={{ raw(c) }} {{ raw(a) }}>", { n = 2, c = "a", a = "b='c'" }))
  end)
end)

describe("branches", function()
  it("must end in the same place", function()
    assert.matches("an if without else begins in text and ends in the attribute href", complaint [[{% if a then %}<a href="{% end %}]], 1, true)
    assert.matches("one branch of this if ends in <script>, another in text", complaint [[{% if a then %}<script>{% else %}<p>{% end %}]], 1, true)
    assert.matches("a loop begins in text and ends in a tag", complaint [[{% for i = 1, 2 do %}<p {% end %}]], 1, true)
  end)

  it("may add attributes", function()
    assert.equal("<input checked>", shown([[<input{% if a then %} checked{% end %}>]], { a = true }))
    assert.equal([[<a class="x" href="/">]], shown([[<a class="{% if a then %}x{% else %}y{% end %}" {% if a then %}href="/"{% end %}>]], { a = true }))
  end)

  it("cannot piece a name together", function()
    assert.matches("pieced together", complaint "<s{% if a then %}cript{% end %}>x", 1, true)
    assert.matches("pieced together", complaint "<a o{% if a then %}nclick{% end %}='x'>", 1, true)
    assert.matches("pieced together", complaint "<a on{% if a then %} {% end %}='x'>", 1, true)
  end)

  it("leave a URL's part open only until a value needs it", function()
    assert.equal([[<a href="/c">]], shown([[<a href="{% if a then %}/b?c{% else %}/c{% end %}">]], { a = false }))
    assert.matches("different parts of the URL", complaint [[<a href="{% if a then %}/b?c={% else %}/c{% end %}{{ v }}">]], 1, true)
    assert.equal([[<a href="/n/x%20y">]], shown([[<a href="{% if a then %}{{ a }}{% end %}/n/{{ v }}">]], { a = false, v = "x y" }))
  end)

  it("of a loop may be left where the loop began", function()
    assert.equal("1,2,", shown "{% for i = 1, 9 do %}{{ i }},{% if i == 2 then break end %}{% end %}")
    assert.matches("the loop begins in text, and break stands in the attribute a", complaint [[{% for i = 1, 9 do %}<p a="{% break %}">{% end %}]], 1, true)
    assert.matches("return can stand in text only", complaint [[<p a="{% if x then return end %}">]], 1, true)
  end)
end)

describe("extends, block, include", function()
  local files = {
    ["layout.html"] = [[<title>{% block "title" %}News{% end %}</title><body class="{% block "class" %}plain{% end %}">{% block "body" %}{% end %}</body>]],
    ["page.html"] = "{% extends \"layout\" %}\n{% local n = #items %}\n{% block \"title\" %}{{ n }} items{% end %}\n"
      .. "{% block \"body\" %}{% for _, item in ipairs(items) do %}{% include \"tag\", { name = item } %}{% end %}{% end %}\n",
    ["tag.html"] = "<b>{{ name }}</b>",
    ["special.html"] = "{# of the page #}\n{% extends \"page\" %}{% block \"class\" %}{{ class }}{% end %}",
    ["tree.html"] = "({{ node.v }}{% for _, child in ipairs(node) do %}{% include \"tree\", { node = child } %}{% end %})",
    ["whole.html"] = "{% include name %}",
  }

  it("put a page's blocks into the layout's places, each escaped for its place", function()
    assert.equal("<title>2 items</title><body class=\"plain\"><b>a</b><b>&lt;</b></body>", engine(files):render("page", { items = { "a", "<" } }))
    assert.equal("<title>0 items</title><body class=\"&quot;x\"></body>", engine(files):render("special", { items = {}, class = '"x' }))
    assert.equal("<title>News</title><body class=\"plain\"></body>", engine(files):render("layout", {}))
  end)

  it("render one page many times at once, each with its own data", function()
    local views = engine { ["wait.html"] = "{% pause() %}{{ name }}" }
    local first = coroutine.wrap(function() return views:render("wait", { pause = coroutine.yield, name = "first" }) end)
    local second = coroutine.wrap(function() return views:render("wait", { pause = coroutine.yield, name = "second" }) end)
    first()
    second()
    assert.equal("first", first())
    assert.equal("second", second())
  end)

  it("wait where their data waits, and tell their place after it", function()
    local views = engine({ ["a.html"] = "<p>{{ v() }}</p>{% include 'b' %}", ["b.html"] = "\n{{ v() }}{{ w.x }}" })
    local function wait() srv.sleep(0.001) return "<" end
    assert.equal("<p>&lt;</p>\n&lt;1", views:render("a", { v = wait, w = { x = 1 } }))
    local ok, raised = pcall(views.render, views, "a", { v = wait })
    assert.is_false(ok)
    assert.matches("^views/b.html:2:13: attempt to index", raised.message)
  end)

  it("include a view in itself, and by a name that is known later", function()
    assert.equal("(1(2)(3(4)))", engine(files):render("tree", { node = { v = 1, { v = 2 }, { v = 3, { v = 4 } } } }))
  end)

  it("go through several layouts, of which each may place blocks of its own", function()
    local chain = {
      ["base.html"] = "{% block 'a' %}a{% block 'in' %}in{% end %}{% end %}|{% block 'b' %}b{% end %}",
      ["middle.html"] = "{% extends 'base' %}{% block 'b' %}[{% block 'c' %}c{% end %}]{% end %}",
      ["page.html"] = "{% extends 'middle' %}{% block 'c' %}{{ v }}{% end %}{% block 'in' %}!{% end %}",
      ["plain.html"] = "{% extends 'base' %}{% block 'a' %}plain{% end %}",
      ["lost.html"] = "{% extends 'plain' %}{% block 'in' %}never{% end %}",
    }
    local views = engine(chain)
    assert.equal("ain|[c]", views:render("middle"))
    assert.equal("a!|[&lt;]", views:render("page", { v = "<" }))
    assert.matches('"views/plain.html" has no block "in"', views:check({ "lost" })[1], 1, true)
  end)

  it("show the blocks of an included view with what they hold", function()
    local parts = {
      ["part.html"] = "<i>{% block 'x' %}{{ v }}{% end %}</i>", ["card.html"] = "{% extends 'part' %}{% block 'x' %}card{% end %}",
      ["a.html"] = "{% block 'x' %}{% for i = 1, 2 do %}{% include 'part', { v = i } %}{% include 'card' %}{% end %}{% end %}",
      ["b.html"] = "{% extends 'a' %}{% block 'x' %}{% include 'part', { v = 3 } %}{% end %}",
    }
    assert.equal("<i>1</i><i>card</i><i>2</i><i>card</i>", engine(parts):render("a"))
    assert.equal("<i>3</i>", engine(parts):render("b"))
  end)

  it("give an include the includer's data unless it has its own", function()
    assert.equal("<b>x</b>", engine({ ["a.html"] = "{% include 'tag' %}", ["tag.html"] = files["tag.html"] }):render("a", { name = "x" }))
  end)

  local WRONG = {
    { { ["a.html"] = "{% extends 'b' %}" }, 'views/a.html:1:4: there is no view "b"' },
    { { ["a.html"] = "{% extends 'b' %}", ["b.html"] = "{% extends 'a' %}" }, "extends itself" },
    { { ["a.html"] = "{% extends 'b' %}x", ["b.html"] = "" }, "views/a.html:1:18: text outside of a block is never shown" },
    { { ["a.html"] = "{% extends 'b' %}{{ x }}", ["b.html"] = "" }, "a value outside of a block is never shown" },
    { { ["a.html"] = "{% extends 'b' %}{% block 'titel' %}{% end %}", ["b.html"] = "{% block 'title' %}{% end %}" }, 'has no block "titel", did you mean "title"?' },
    { { ["a.html"] = "x{% extends 'b' %}", ["b.html"] = "" }, "extends must come first" },
    { { ["a.html"] = "{% extends name %}" }, "extends wants a name in quotes" },
    { { ["a.html"] = [[{% extends "\:" %}]] }, "extends wants a name in quotes" },
    { { ["a.html"] = '{% extends "\\:" %}' }, "extends wants a name in quotes" },
    { { ["a.html"] = "{% block 'x' %}{% end %}{% block 'x' %}{% end %}" }, 'a second block "x"' },
    { { ["a.html"] = "{% block 'x' %}" }, "views/a.html:1:4: this block has no end" },
    { { ["a.html"] = "{% block 'x' %}<p {% end %}>" }, "a block begins in text and ends in a tag" },
    { { ["a.html"] = "<a href='{% block 'x' %}{% end %}'>" }, "a block cannot stand in a URL" },
    { { ["a.html"] = "<p title='{% include 'b' %}'>", ["b.html"] = "" }, "include can stand in text only, not in the attribute title" },
    { { ["a.html"] = "\n {% include 'b' %}" }, 'views/a.html:2:5: there is no view "b"' },
    { { ["a.html"] = "{% include 'b.txt' %}", ["b.txt"] = "" }, '"b.txt" is no html template' },
    { { ["a.html"] = "{% include 'b' %}", ["b.html"] = "x\n<h{{ 1 }}>" }, "views/b.html:2:6: a value cannot be part of a name in a tag" },
  }
  for _, case in ipairs(WRONG) do
    it("are refused at start with their place: " .. case[2], function()
      local messages = engine(case[1]):check { "a" }
      assert.equal(1, #messages)
      assert.matches(case[2], messages[1], 1, true)
    end)
  end

  it("find views by name only, beneath their folder", function()
    for _, name in ipairs { "../app", "/etc/passwd", "a/../../b", "", ".hidden", "a b" } do
      assert.has_error(function() engine(files):render(name) end)
    end
  end)
end)

describe("an error", function()
  it("of Lua's grammar is told with file, line and column", function()
    assert.equal("template:2:6: 'then' expected near 'end'", complaint "a\n  {% if x %}{% end %}" :gsub("2:%d+", "2:6"))
    assert.equal("template:1:4: '}}' expected near 'b'", complaint "{{ a b }}")
    assert.equal("template:2:6: this for has no end", complaint "a\n  {% for i = 1, 2 do %}\n b")
    assert.equal("template:1:6: end closes nothing", complaint "a {% end %}")
    assert.equal("template:1:3: a tag has no }}", complaint "a {{ x")
  end)

  it("while it runs is told with the place of the innermost template", function()
    assert.equal("template:2:4: attempt to index local 'x' (a nil value)", complaint "{% local x %}\n{{ x.y }}")
    assert.matches("template:1:4: .*template_engine_spec.lua:%d+: boom", complaint("{{ f() }}", { f = function() error("boom") end }))
    local ok, raised = pcall(function() engine({ ["a.html"] = "\n{% include 'b' %}", ["b.html"] = "\n\n {{ nil .. 1 }}" }):render "a" end)
    assert.is_false(ok)
    assert.matches("^views/b.html:3:5: attempt to concatenate a nil value", raised.message)
    assert.matches("views/a.html:2:4", raised.trace, 1, true)
  end)

  it("that is an object passes as it is", function()
    local ok, raised = pcall(shown, "{% stop() %}", { stop = function() errors.raise(404, "gone") end })
    assert.is_false(ok)
    assert.equal(404, raised.status)
  end)

  it("is an unknown name in --dev, and nothing in production", function()
    assert.equal('template:1:4: unknown name "titel": it is no field of the data, did you mean "title"?', complaint("{{ titel }}", { title = "x" }))
    assert.equal('template:1:4: unknown name "user": it is no field of the data (where a field may be missing, give false)', complaint "{{ user }}")
    assert.equal("[]", engine({}, { strict = false }):compile("[{{ titel }}]")({ title = "x" }))
  end)

  it("is an assignment to a name that is not local", function()
    assert.matches('template:1:4: assigning to the undeclared name "x"', complaint "{% x = 1 %}", 1, true)
  end)

  it("is a function that would print at places nobody has looked at", function()
    assert.matches("a function cannot hold text", complaint "{% local function f() %}<b>{% end %}<script>{% f() %}</script>", 1, true)
  end)
end)

describe("names in sight", function()
  it("are the data's fields, then helpers, then Lua's pure functions", function()
    assert.equal("mine 3 number", shown("{{ date }} {{ #t }} {{ type(1) }}", { date = "mine", t = { 1, 2, 3 } }))
    assert.equal("/u/7", engine({}, { helpers = { url = function(name, p) return "/" .. name .. "/" .. p end } }):compile("{{ url('u', 7) }}")({}))
    for _, name in ipairs { "os", "io", "require", "debug", "loadstring", "setfenv", "_G", "print", "srv" } do
      assert.matches("unknown name", complaint("{{ " .. name .. " }}"), 1, true)
    end
  end)

  it("write dates in UTC", function()
    assert.equal("22 June 2021 19:54|1970-01-01|2021-06-22 15:54", shown(
      "{{ date(a, '%d %B %Y %H:%M') }}|{{ date(0) }}|{{ date(b, '%Y-%m-%d %H:%M') }}{{ date(nil) }}",
      { a = "2021-06-22T19:54:00Z", b = "2021-06-22T19:54:00+04:00" }))
    assert.equal("2000-02-29|1969-12-31", shown "{{ date('2000-02-29') }}|{{ date(-1) }}")
    assert.matches("is no moment", complaint "{{ date('soon') }}", 1, true)
  end)
end)

describe("other kinds", function()
  it("JSON: values, and the inside of strings", function()
    assert.equal([[{"a": [1], "b": "x\"\n", "c": null}]], shown([[{"a": {{ a }}, "b": "x{{ b }}", "c": {{ c }}}]], { a = { 1 }, b = '"\n', c = json.null }, "json"))
  end)

  it("XML: text and attributes, no control characters", function()
    assert.equal("<a b=\"&lt;&quot;\">\239\191\189&amp;</a>", shown([[<a b="{{ a }}">{{ b }}</a>]], { a = '<"', b = "\1&" }, "xml"))
    assert.equal("<a>\239\191\189 \195\164\230\188\162\240\157\132\158 \239\191\189 \239\191\189|</a>",
      shown("<a>{{ v }}</a>", { v = "\239\191\191 \195\164\230\188\162\240\157\132\158 \255 \237\160\128|" }, "xml"))
    assert.matches("a value cannot stand in a CDATA section", complaint("<a><![CDATA[{{ 1 }}]]></a>", {}, "xml"), 1, true)
    assert.matches("a value cannot stand in a tag", complaint("<a {{ 1 }}>", {}, "xml"), 1, true)
  end)

  it("text: as it is", function() assert.equal("<&>", shown("{{ v }}", { v = "<&>" }, "txt")) end)

  it("go by the extension of the file", function()
    local views = engine { ["feed.xml"] = "<a>{{ v }}</a>", ["mail.txt"] = "{{ v }}" }
    assert.equal("<a>&lt;</a>", views:render("feed.xml", { v = "<" }))
    assert.equal("<", views:render("mail.txt", { v = "<" }))
    assert.equal("application/xml", template.media_type "feed.xml")
    assert.equal("text/html; charset=utf-8", template.media_type "news/show")
  end)
end)

describe("hostile values", function()
  local PLACES = {
    "<p>{{ v }}</p>", '<p title="{{ v }}">', "<p title='{{ v }}'>", '<a href="{{ v }}">', '<a href="/a/{{ v }}">', '<a href="/a?b={{ v }}">',
    "<script>x = {{ v }}</script>", "<script>x = '{{ v }}'</script>", '<script>x = "{{ v }}"</script>', '<a onclick="f({{ v }})">',
    "<a onclick='f(\"{{ v }}\")'>", "<style>a{b:{{ v }}}</style>", '<p style="a:{{ v }}">', "<textarea>{{ v }}</textarea>",
    "<title>{{ v }}</title>", "<!-- {{ v }} -->", '<img srcset="{{ v }}">', '<iframe srcdoc="{{ v }}"></iframe>', "<xmp>{{ v }}</xmp>",
  }
  for _, place in ipairs(PLACES) do
    it("stay in their place: " .. place, function()
      local before, after = place:match "^(.-){{ v }}(.*)$"
      local out = shown(place, { v = HOSTILE })
      assert.equal(before, out:sub(1, #before))
      assert.equal(after, out:sub(-#after))
      local inside = out:sub(#before + 1, -#after - 1)
      assert.is_nil(inside:find("[<>]"))
      local quote = before:match("([\"'])[^\"']*$")
      if quote then assert.is_nil(inside:find(quote, 1, true)) end
    end)
  end
end)
