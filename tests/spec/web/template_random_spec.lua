--- Templates put together at random, by a fixed seed: whatever compiles keeps its structure,
--- whatever the values are; whatever does not says why and where.
local html_tokens = dofile "tests/support/html_tokens.lua"
local template_engine = require "srv.web.template_engine"

local ROUNDS = 20000

local views = template_engine.engine { read = function() return nil, "no such file" end }

-- A generator of our own: math.random differs between C libraries.
local seed = 20240531

local function random(n)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return math.floor(seed / 65536) % n + 1
end

local VALUE = "{{ v }}"

local PIECES = {
  VALUE, VALUE, VALUE, VALUE, VALUE, VALUE,
  "<a", "<p", "<img", "<script", "<style", "<title", "<textarea", "<svg", "<iframe", "<form", "<", "</", "</a>", "</p>", "</script>",
  "</style>", "</title>", "</textarea>", "</iframe>", "<!--", "-->", "<!doctype html>", "<br>", "</script ", "</SCRIPT>", "<?x ", "--!>",
  ">", "/>", " ", "\n", "=", '"', "'", ' href="', ' src="', " title='", ' onclick="', " onload='", ' style="', ' class="', " action=", " data-x",
  ' srcdoc="', ' srcset="', ' type="text/javascript"', " type='module'", " x", "text", "/", "?q=", "#", ":", "javascript:", "http://", "&amp;", "&quot;", "&#39;",
  "var a = ", "f(", ")", ";", "{", "}", "[", "]", "+", "// c\n", "/* c */", "`", "${", "\\", "'s'", '"s"', "\\'", "&lt;",
  "&", "&#", "&qu", "<svg>", "</svg>", "<svg ", "<math>", "<noscript>", "</noscript>", "<pre>", "<style>", "<script>", "<title>", "<!-", "<!", "-", "--", "!",
  "if (a) ", "++", ".", "$", "*", "'", '"', "scr", "ipt>", "on", "click='", " content='", "url=", "<meta", " values='", "<animate", "0;", "<![CDATA[", "]]>", "\r\n",
  "{% if a then %}", "{% if not a then %}", "{% else %}", "{% end %}", "{% end %}", "{% for i = 1, 2 do %}", "{# c #}", "{%- local x = 1 -%}",
}

-- Shapes that compile, for the random pieces to go between: most noise alone does not.
local FRAMES = {
  { '<a href="', '">x</a>' }, { '<a href="/x?y=', '">' }, { "<p title='", "'>" }, { "<script>a = ", ";</script>" }, { '<script>a = "', '";</script>' },
  { '<p onclick="f(', ')">' }, { "<p onclick='f(\"", "\")'>" }, { "<style>a{b:", "}</style>" }, { "<p>", "</p>" }, { "<title>", "</title>" },
  { "<!-- ", " -->" }, { "<!--", "-->" }, { "<svg><style>", "</style></svg>" }, { "<iframe srcdoc='", "'></iframe>" }, { "<p onclick='f(\"&", "\")'>" },
  { "<textarea>", "</textarea>" }, { "<script>a = '", "', b = 'c';</script>" }, { "</p title='", "'>" }, { "<img srcset='", "'>" }, { "{% if a then %}", "{% end %}" }, { "{% if a then %}<b>", "{% else %}<i>{% end %}" }, { "", "" },
}

local HOSTILE = {
  "'", '"', "<script>", "</script>", "-->", "javascript:alert(1)", ":alert(1)", "//x", "`", "\\", "\n", ">", "<!--", "x onload=y", "</textarea>", "&quot;", "${x}",
  "", "", "#39;", "quot;", "script ", "/script ", "/title ", "-", "!", "/",
  "*/", "'\"><img src=x onerror=alert(1)>", "</style><script>", "\226\128\168", "/", " javascript:x", "java\nscript:x", "];x=[", "},{", "data:text/html,x",
}

local function random_template()
  local parts = {}
  for _ = 1, random(3) do
    local frame = FRAMES[random(#FRAMES)]
    parts[#parts + 1] = frame[1]
    for _ = 1, random(4) do parts[#parts + 1] = PIECES[random(#PIECES)] end
    parts[#parts + 1] = frame[2]
  end
  return table.concat(parts)
end

--- A regular expression in the script is beyond the judge.
local function is_judged(text) return not text:find("/", 1, true) or not text:find("<script", 1, true) or not text:find("[=(,;:+%[{}/]%s*/[^/*]") end

describe("random templates", function()
  local compiled, judged = 0, 0

  it("compile or tell line, column and why", function()
    for _ = 1, ROUNDS do
      local text = random_template()
      local ok, result = pcall(views.compile, views, text)
      if ok then
        compiled = compiled + 1
      else
        assert.matches("^template:%d+:%d+: ", tostring(result), text)
      end
    end
    assert.is_true(compiled > ROUNDS / 10)
  end)

  it("have one structure for all values", function()
    for _ = 1, ROUNDS do
      local text = random_template()
      local ok, show = pcall(views.compile, views, text)
      if ok and text:find(VALUE, 1, true) and is_judged(text) then
        judged = judged + 1
        for _, a in ipairs { true, false } do
          local plain = html_tokens.of(show { v = "x", a = a })
          for _ = 1, 4 do
            local value = HOSTILE[random(#HOSTILE)] .. HOSTILE[random(#HOSTILE)]
            assert.same(plain, html_tokens.of(show { v = value, a = a }), ("%q with %q"):format(text, value))
          end
        end
      end
    end
    assert.is_true(judged > ROUNDS / 20)
  end)
end)
