--- What broke out of its place once, or would: values that meet the text around them, and text that
--- browsers read otherwise than one thinks. tests/e2e/templates_test.py asks a browser the same.
local engine = require "srv.web.template_engine"

local views = engine.engine { read = function() return nil, "no such file" end }

local function shown(text, data, kind) return views:compile(text, { kind = kind or "html" })(data) end

local function complaint(text, kind)
  local ok, raised = pcall(shown, text, { v = "x", a = true }, kind)
  assert.is_false(ok, "nothing was wrong with " .. text)
  return type(raised) == "table" and raised.message or raised
end

--- CASES are { text, what is told }.
local function are_refused(cases)
  for _, case in ipairs(cases) do
    local told = complaint(case[1])
    assert.is_truthy(told:find(case[2], 1, true), case[1] .. " => " .. told)
  end
end

--- CASES are { text, value, what comes out }.
local function come_out(cases)
  for _, case in ipairs(cases) do assert.equal(case[3], shown(case[1], { v = case[2], a = true, b = false })) end
end

describe("an & before a value", function()
  it("makes no entity with it", function()
    come_out {
      { [[<a onclick="go('/s?a=1&{{ v }}')">]], "#39;);f(1)//", [[<a onclick="go('/s?a=1&amp;#39;);f(1)\u002f\u002f')">]] },
      { [[<a href="/s?a=1&{{ v }}">]], "copy", [[<a href="/s?a=1&amp;copy">]] },
      { "<p>AT&{{ v }}</p>", "lt;b", "<p>AT&amp;lt;b</p>" },
      { "<title>&#{{ v }}</title>", "60;", "<title>&amp;#60;</title>" },
      { [[<b title="&{% if a then %}{{ v }}{% end %}">]], "quot;", [[<b title="&amp;quot;">]] },
    }
  end)

  it("stays as it is in a script, a style and at the end", function()
    come_out {
      { "<script>a = 1 &{{ v }}</script>", 3, "<script>a = 1 &3</script>" },
      { "<style>a &{{ v }}{}</style>", "b", "<style>a &b{}</style>" },
      { "{{ v }} &co", "x", "x &co" },
    }
  end)
end)

describe("entities in handlers", function()
  it("are read as browsers read them", function()
    come_out {
      { [[<a onclick="f(&QUOT;{{ v }}&QUOT;)">]], '"', [[<a onclick="f(&QUOT;\u0022&QUOT;)">]] },
      { [[<a onclick="f(&#x22;{{ v }}&#34;)">]], '"', [[<a onclick="f(&#x22;\u0022&#34;)">]] },
      { [[<a onclick="f(&#38;quot;, {{ v }})">]], 1, [[<a onclick="f(&#38;quot;, 1)">]] },
      { [[<a onclick="if (a &lt= {{ v }}) f()">]], 1, [[<a onclick="if (a &lt= 1) f()">]] },
    }
    are_refused {
      { [[<a onclick="f(&grave;{{ v }}&grave;)">]], "in a template literal" },
      { [[<a onclick="f('&bsol;{{ v }}')">]], "right after a backslash" },
      { [[<a onclick="x = 1 &sol;&sol; {{ v }}">]], "in a comment of a script" },
    }
  end)
end)

describe("a script", function()
  it("takes no tag of the template after a backslash: an empty value would mask the quote", function()
    are_refused {
      { [[<script>f("\{{ v }}", "x")</script>]], "right after a backslash" },
      { [[<script>f('\{% if a then %}x{% end %}')</script>]], "right after a backslash" },
      { [[<script>f(/\{% if a then %}x{% end %}/)</script>]], "right after a backslash" },
    }
    assert.matches("right after a backslash", complaint([[{"a": "\{{ v }}"}]], "json"), 1, true)
  end)

  it("does not get its end from a value", function()
    are_refused {
      { [[<script>f("</{{ v }}")</script>]], "a value cannot stand right after </ in <script>" },
      { [[<script>f("</scr{{ v }}")</script>]], "a value cannot stand right after </scr in <script>" },
      { [[<script>f("</scr{% if a then %}ipt>{% end %}")</script>]], "the end of <script> cannot be pieced together" },
      { [[<script>f("<!-{{ v }}")</script>]], "a value cannot stand right after <!- in <script>" },
      { "<title></{{ v }}</title>", "a value cannot stand right after </ in <title>" },
      { "<textarea><{{ v }}</textarea>", "a value cannot stand right after < in <textarea>" },
      { "<style>a{}</{{ v }}</style>", "a value cannot stand right after </ in <style>" },
    }
    come_out { { "<script>for (i = 0; i <{{ v }}; i++) f()</script>", 3, "<script>for (i = 0; i <3; i++) f()</script>" } }
  end)

  it("has no <script after <!--, which hides its end from browsers", function()
    are_refused {
      { [[<script>x = "<!-- <script>"</script>{{ v }}]], "browsers read past its end" },
      { [[<script>x = "<!--"; {{ v }}; y = "<SCRIPT "</script>]], "browsers read past its end" },
    }
    come_out {
      { "<script>a = '<script>'; {{ v }}</script>", 1, "<script>a = '<script>'; 1</script>" },
      { "<script><!-- a\nb\n//-->\n'<script>'; {{ v }}</script>", 1, "<script><!-- a\nb\n//-->\n'<script>'; 1</script>" },
    }
  end)

  it("knows a pattern after if (...) from a division", function()
    come_out {
      { [[<script>if (a) /"/.test(b); c = {{ v }}; d = "x"</script>]], "f(1)", [[<script>if (a) /"/.test(b); c = "f(1)"; d = "x"</script>]] },
      { [[<script>while (f(a)) /'/.test(b); c = {{ v }}</script>]], 1, [[<script>while (f(a)) /'/.test(b); c = 1</script>]] },
      { [[<script>c = (a + b) / 2; d = "/" + {{ v }}</script>]], "x", [[<script>c = (a + b) / 2; d = "/" + "x"</script>]] },
      { [[<script>c = a.return / 2; d = "/{{ v }}"</script>]], '"', [[<script>c = a.return / 2; d = "/\u0022"</script>]] },
    }
  end)

  it("takes no value after a / of which that is unclear", function()
    local unclear = "unclear whether it divides"
    are_refused {
      { [[<script>x = {} / 2; s = "a/b{{ v }}"</script>]], unclear },
      { [[<script>{% if a then %}x = {% else %}x{% end %} /2; s = "/{{ v }}"</script>]], unclear },
      { [[<script>{% for i = 1, 2 do %}/2; s = "/{{ v }}"; x{% end %}</script>]], "cannot be pieced together" },
      { "<script>" .. ("("):rep(300) .. "{{ v }}</script>", unclear },
    }
    assert.equal("<script>x = {} / 2; s = 'a/b'</script>x", shown("<script>x = {} / 2; s = 'a/b'</script>{{ v }}", { v = "x" }))
  end)

  it("gets no marks that are pieced together", function()
    are_refused {
      { "<script>a = b /{% if a then %}/ c{% end %}</script>", '"//" cannot be pieced together' },
      { "<script>a = b /{% if a then %}* c{% end %}</script>", '"/*" cannot be pieced together' },
      { "<script>/* *{% if a then %}/ c{% end %}</script>", '"*/" cannot be pieced together' },
      { "<script>`${% if a then %}{ c{% end %}`</script>", '"${" cannot be pieced together' },
      { [[<script>{% block "x" %}{% end %}/ 2</script>]], "cannot be pieced together" },
    }
  end)

  it("keeps numbers and words apart from what stands before them", function()
    come_out {
      { "<script>a = b-{{ v }}</script>", -1, "<script>a = b- -1</script>" },
      { "<script>return{{ v }}</script>", true, "<script>return true</script>" },
      { "<script>f({{ v }}{{ v }})</script>", 1, "<script>f(1 1)</script>" },
      { '<a onclick="return{{ v }}">', 5, '<a onclick="return 5">' },
    }
  end)

  it("ends lines where browsers do", function()
    come_out {
      { "<script>// don't\ra = {{ v }}</script>", "x", "<script>// don't\ra = \"x\"</script>" },
      { "<script>// don't\226\128\168a = {{ v }}</script>", "x", "<script>// don't\226\128\168a = \"x\"</script>" },
      { "<script>a = 'x\\\r\ny'; b = {{ v }}</script>", "x", "<script>a = 'x\\\r\ny'; b = \"x\"</script>" },
      { "<script>\n--> don't\na = {{ v }}</script>", "x", "<script>\n--> don't\na = \"x\"</script>" },
    }
  end)

  it("may say in a branch that it is a module", function()
    come_out { { [[<script{% if a then %} type="module"{% end %}>{{ v }}</script>]], 1, [[<script type="module">1</script>]] } }
    are_refused { { [[<script{% if a then %} type="text/x"{% end %}>{{ v }}</script>]], "begins in a tag and ends in a tag" } }
  end)

  it("takes raw() where nothing can be escaped", function()
    local function raw(text) return shown(text, { v = "x" }) end
    assert.equal("<script>`x`</script>", raw "<script>`{{ raw(v) }}`</script>")
    assert.equal("<script type='text/x'>x</script>", raw "<script type='text/x'>{{ raw(v) }}</script>")
    assert.equal('<a href="javascript:x">', raw '<a href="javascript:{{ raw(v) }}">')
  end)

  it("of an attribute on-something of a library is one too", function()
    for _, name in ipairs { "onclick", "ONLOAD", "@click", "v-on:click", "x-on:click", "hx-on:click", "hx-on--load" } do
      assert.equal("<b " .. name .. '="f(&quot;&#39;&quot;)">', shown("<b " .. name .. '="f({{ v }})">', { v = "'" }))
    end
  end)
end)

describe("a comment", function()
  it("does not get its end from a value, or from nothing", function()
    are_refused {
      { "<!--{{ v }}> x -->", "the end of a comment cannot be pieced together" },
      { "<!-- -{{ v }}-> x -->", "the end of a comment cannot be pieced together" },
      { "<!-- -{% if a then %}{% end %}-> x -->", "the end of a comment cannot be pieced together" },
      { "<!-{% if a then %}{% end %}- x -->", "right after <" },
    }
    come_out {
      { "<!--{{ v }}-->", "-", "<!--&#45;-->" },
      { "<!-- {{ v }} -->", "a-->b--!", "<!-- a--&gt;b--&#33; -->" },
      { "<!--{% if b then %}x{% end %}-->{{ v }}", "y", "<!---->y" },
    }
  end)
end)

describe("an end tag", function()
  it("has quotes that hide its end", function()
    are_refused { { [[</a title="> {{ v }}">]], "a value cannot stand in an end tag" } }
    come_out { { [[</a title=">">{{ v }}]], "<", [[</a title=">">&lt;]] } }
  end)
end)

describe("a page in a page", function()
  it("takes values in its text only", function()
    are_refused {
      { [[<iframe srcdoc="<script>x = {{ v }}</script>"></iframe>]], "not in <script>" },
      { [[<iframe srcdoc="<a href='{{ v }}'>"></iframe>]], "not in the attribute href" },
      { [[<iframe srcdoc="&lt;a title={{ v }}>"></iframe>]], "in the text of its page only" },
      { [[<iframe srcdoc="{% if a then %}<a title='{% end %}{{ v }}"></iframe>]], "an if without else" },
    }
    come_out {
      { [[<iframe srcdoc="<p>{{ v }}</p>{{ v }}"></iframe>]], "<", [[<iframe srcdoc="<p>&amp;lt;</p>&amp;lt;"></iframe>]] },
      { [[<iframe srcdoc="{% if a then %}<b>{% else %}<i>{% end %}{{ v }}"></iframe>]], "x", [[<iframe srcdoc="<b>x"></iframe>]] },
    }
  end)
end)

describe("URLs in unusual places", function()
  it("are looked at one by one in the steps of an animation", function()
    come_out {
      { [[<animate attributeName="href" values="{{ v }}">]], "/a;javascript:f(1)", [[<animate attributeName="href" values="/a;#">]] },
      { [[<animate attributeName="href" values="/a;{{ v }}">]], "javascript:f(1)", [[<animate attributeName="href" values="/a;#">]] },
      { [[<set attributeName="href" to="{{ v }}">]], "\1 javascript:f(1)", "<set attributeName=\"href\" to=\"\1 #\">" },
      { [[<animateTransform to="{{ v }}">]], "360 50 50", [[<animateTransform to="360 50 50">]] },
    }
    are_refused {
      { [[<animate values="java{{ v }}">]], "part of a step" },
      { [[<animate values="{{ v }}{{ v }}">]], "part of a step" },
    }
  end)

  it("are followed in a refresh", function()
    come_out {
      { [[<meta http-equiv="refresh" content="0;url=java{{ v }}">]], "script:f(1)", [[<meta http-equiv="refresh" content="0;url=java#">]] },
      { [[<meta http-equiv="refresh" content="0; {{ v }}">]], "javascript:f(1)", [[<meta http-equiv="refresh" content="0; #">]] },
      { [[<meta http-equiv="refresh" content="0; URL='/a?b={{ v }}'">]], "&", [[<meta http-equiv="refresh" content="0; URL='/a?b=%26'">]] },
    }
    are_refused { { [[<meta content="0; url=javascript:{{ v }}">]], "in a javascript: URL" } }
  end)
end)

describe("svg and math", function()
  it("hold scripts and styles only of what reads the same as markup", function()
    are_refused {
      { "<svg><script>a = &quot;{{ v }}&quot;</script></svg>", "read this <script> as markup" },
      { "<svg><style><a title='{{ v }}'></style></svg>", "read this <style> as markup" },
      { "<svg><![CDATA[ > <a href='{{ v }}'> ]]></svg>", "in two ways" },
    }
    come_out {
      { "<svg><script>a = {{ v }}</script></svg>", "<", [[<svg><script>a = "\u003c"</script></svg>]] },
      { "<svg><style><![CDATA[ a > b & c {} ]]></style></svg>{{ v }}", "x", "<svg><style><![CDATA[ a > b & c {} ]]></style></svg>x" },
      { "<svg><title>a &amp; {{ v }}</title></svg>", "&", "<svg><title>a &amp; &amp;</title></svg>" },
      { "<svg><style/><p title='{{ v }}'></svg>", "'", "<svg><style/><p title='&#39;'></svg>" },
      { "<svg/><style>a < {{ v }}</style>", "b", "<svg/><style>a < b</style>" },
      { "<svg></svg><style>a < {{ v }}</style>", "b", "<svg></svg><style>a < b</style>" },
    }
  end)
end)

describe("noscript", function()
  it("ends nowhere but in text", function()
    are_refused {
      { [[<noscript><p title="</noscript>{{ v }}"></noscript>]], "ends it even here" },
      { "<noscript><!-- </NOSCRIPT> {{ v }} --></noscript>", "ends it even here" },
    }
    come_out { { [[<noscript><img src="{{ v }}"></noscript>]], "/a", [[<noscript><img src="/a"></noscript>]] } }
  end)
end)

describe("text", function()
  it("of a page holds no control characters, which browsers and this engine could read differently", function()
    are_refused { { "<a\11href='{{ v }}'>", "the byte 11 cannot stand" }, { "a\0", "the byte 0 cannot stand" } }
  end)

  it("may begin with a byte order mark, and have any line's ends", function()
    local files = { ["a.html"] = "\239\187\191{% extends 'b' %}\r\n{% block 'x' %}\r\n{{ v }}{% end %}", ["b.html"] = "\239\187\191<p>{% block 'x' %}{% end %}" }
    local marked = engine.engine { read = function(file) return files[file] end }
    assert.equal("<p>\r\n1", marked:render("a", { v = 1 }))
  end)
end)

describe("a newline", function()
  it("that a value begins with is shown at the beginning of <textarea> and <pre>", function()
    come_out {
      { "<textarea>{{ v }}</textarea>", "\nx", "<textarea>\n\nx</textarea>" },
      { "<pre>{{ v }}{{ v }}</pre>", "\nx", "<pre>\n\nx\nx</pre>" },
      { "<pre>a{{ v }}</pre>", "\nx", "<pre>a\nx</pre>" },
      { "<pre>{{ v }}</pre>", "x", "<pre>x</pre>" },
    }
  end)
end)

describe("loops", function()
  it("begin with text that can stand after their end", function()
    are_refused {
      { "<p {% for i = 1, 2 do %}on{% end %}>", "cannot stand after itself" },
      { "<!-- {% for i = 1, 2 do %}->x -{% end %} -->", "cannot stand after itself" },
      { "{% for i = 1, 2 do %}<svg>{% end %}", "cannot stand after itself" },
    }
    come_out {
      { [[<p{% for i = 1, 2 do %} {{ raw("data-" .. i) }} title="{{ v }}"{% end %}>]], "x", [[<p data-1 title="x" data-2 title="x">]] },
      { "<script>[{% for i = 1, 2 do %}{{ v }}, {% end %}]</script>", "x", '<script>["x", "x", ]</script>' },
    }
  end)
end)

describe("blocks of a layout", function()
  local function complaint_of(layout, page)
    local files = { ["l.html"] = layout, ["p.html"] = "{% extends 'l' %}" .. page }
    return engine.engine({ read = function(file) return files[file] end }):check({ "p" })[1] or "nothing was wrong"
  end

  it("leave nothing open behind them", function()
    assert.matches("pieced together", complaint_of([[<p {% block "a" %} {% end %}load="x">]], [[{% block "a" %}on{% end %}]]), 1, true)
    assert.matches("pieced together", complaint_of([[<script>{% block "a" %}{% end %}/ 2</script>]], ""), 1, true)
    assert.matches("a block begins in <script>", complaint_of([[<script>{% block "a" %}{% end %}</script>]], [[{% block "a" %}x <{% end %}]]), 1, true)
    for _, layout in ipairs { "<!-- -{% block 'a' %}{% end %} -->", "<iframe srcdoc='{% block \"a\" %}{% end %}'>", "<script>'{% block \"a\" %}{% end %}'</script>" } do
      assert.matches("a block cannot stand", complaint_of(layout, ""), 1, true)
    end
  end)

  it("escape by the layout's place", function()
    local files = {
      ["l.html"] = [[<b title="{% block "a" %}{% end %}"><style>{% block "b" %}{% end %}</style><script>{% block "c" %}{% end %}</script>]],
      ["p.html"] = [[{% extends "l" %}{% block "a" %}{{ v }}{% end %}{% block "b" %}a{b:{{ v }}}{% end %}{% block "c" %}x = {{ v }}{% end %}]],
    }
    assert.equal([[<b title="&quot;}"><style>a{b:srv-refused}</style><script>x = "\"}"</script>]],
      engine.engine({ read = function(file) return files[file] end }):render("p", { v = '"}' }))
  end)
end)

describe("bounds", function()
  it("views in each other are counted", function()
    local endless = engine.engine { read = function() return "{% include 'a' %}" end }
    local ok, raised = pcall(endless.render, endless, "a")
    assert.is_false(ok)
    assert.equal("a.html:1:4: include: more than 100 views in each other", raised.message)
  end)

  it("a page of 100 is fine", function()
    local nested = engine.engine { read = function() return "{{ n }}{% if n > 0 then %}{% include 'a', { n = n - 1 } %}{% end %}" end }
    assert.matches("^10099.*10$", nested:render("a", { n = 100 }))
  end)
end)

describe("data", function()
  it("is a table, else the caller's mistake", function()
    for _, data in ipairs { "text", 5, true } do
      local ok, raised = pcall(shown, "x", data)
      assert.is_false(ok)
      assert.matches("template: the data is a table, not " .. type(data), tostring(raised), 1, true)
    end
  end)

  it("may have fields of any name, also those of helpers and of nothing", function()
    local data = { json = 1, ipairs = 2, string = 3, srv = 4, _G = 5, self = 6, data = 7, out = 8, ["end"] = 9, ["a b"] = 10, [1] = 11 }
    assert.equal("1 2 3 4 5 6 7 8", shown("{{ json }} {{ ipairs }} {{ string }} {{ srv }} {{ _G }} {{ self }} {{ data }} {{ out }}", data))
  end)

  it("that JSON does not know is told with the place in the template alone", function()
    local ok, raised = pcall(shown, "<script>\nx = {{ v }}</script>", { v = 0 / 0 })
    assert.is_false(ok)
    assert.equal("template:2:8: srv.json.encode: the value is NaN", raised.message)
  end)
end)
