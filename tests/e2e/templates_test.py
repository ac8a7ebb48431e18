"""Templates in the server and in a real browser: no value of any place runs as a script or leaves
its place, and all are shown as they are; views are live, and a broken edit keeps the last good one.

One page has every place of HTML with every payload; headless Chromium opens it once, clicks all that
can be clicked, and writes down what ran and what each place shows.
"""
import base64
import html
import http.client
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

from srv_process import PATIENCE, Srv, run_to_end, wait_until, write_app

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

# What each tries is to call hit().
PAYLOADS = [
    "<script>hit(1)</script>", "</script><script>hit(2)</script>", "<img src=x onerror=hit(3)>",
    "\"><img src=x onerror=hit(4)>", "'><img src=x onerror=hit(5)>", "\" onclick=\"hit(6)\" x=\"",
    "' onclick='hit(7)' x='", "javascript:hit(8)", " \x01javascript:hit(9)", "java\nscript:hit(10)",
    "&#106;avascript:hit(11)", "&quot;);hit(12);//", "#39;);hit(13);//", "quot;);hit(14);//",
    "');hit(15);//", "\");hit(16);//", "\\\");hit(17);//", "\\", "`;hit(18);`", "${hit(19)}",
    "*/hit(20)/*", "\u2028hit(21)", "\u2029hit(22)//", "\nhit(23)\n", "--><script>hit(24)</script>",
    "--!><img src=x onerror=hit(25)>", "<!--<script>", "<!--", "-->", "]]><script>hit(26)</script>",
    "</textarea><script>hit(27)</script>", "</title><script>hit(28)</script>",
    "</style><script>hit(29)</script>", "</noscript><img src=x onerror=hit(30)>",
    "</svg><script>hit(31)</script>", "</iframe><script>hit(32)</script>",
    "red;background:url(javascript:hit(33))", "expression(hit(34))", "url(javascript:hit(35))",
    "}</style><img src=x onerror=hit(36)>", "data:text/html,<script>parent.hit(37)</script>",
    "x:hit(38)", ":hit(39)", "0;url=javascript:hit(40)", "/a;javascript:hit(41)",
    "x 1x, javascript:hit(42) 2x", "hit(43)", ";hit(44);", "script ", "/script ", "__proto__",
    "&lt;script&gt;hit(45)", "\xa0javascript:hit(46)", "-", "--", "é 漢 𝄞", "a&b=c d+e%41%",
    "vbscript:hit(47)", "<svg onload=hit(48)>", "\t\"\t'", "{{ 1 }}{% x %}",
]
# No text of Unicode: only that nothing runs is asked of them, and that they stay in their place.
BYTES = [b"\x00<script>hit(90)</script>", b"\xff\"onclick=hit(91)", b"\xe2\x80", b"\xc0\xbcscript>hit(92)",
         b"\r\nhit(93)", b"\xed\xa0\x80'"]

# (name, markup with the value v, an expression of the browser's for what element e shows)
SHOWN = [
    ("text", "<b>{{ v }}</b>", "e.textContent"),
    ("split", "<b>{{ v:sub(1, 2) }}{{ v:sub(3) }}</b>", "e.textContent"),
    ("after &", "<b>&{{ v }}</b>", "e.textContent.slice(1)"),
    ("pre", "<pre>{{ v }}</pre>", "e.textContent"),
    ("textarea", "<textarea>{{ v }}</textarea>", "e.value"),
    ("double", '<b title="{{ v }}"></b>', "e.title"),
    ("single", "<b title='{{ v }}'></b>", "e.title"),
    ("two values", '<b title="{{ v:sub(1, 1) }}{{ v:sub(2) }}"></b>', "e.title"),
    ("attribute after &", '<b title="&{{ v }}"></b>', "e.title.slice(1)"),
    ("placeholder", '<input placeholder="{{ v }}" data-v="{{ v }}">', "e.dataset.v"),
    ("json attribute", "<b data-v='{{ json(v) }}'></b>", "JSON.parse(e.dataset.v)"),
    ("query", '<a href="/q?a=1&v={{ v }}&z=2"></a>', 'new URL(e.href).searchParams.get("v")'),
    ("query value", '<a href="/q?{{ v }}"></a>', "decodeURIComponent(new URL(e.href).search.slice(1))"),
    ("fragment", '<a href="/q#{{ v }}"></a>', "decodeURIComponent(new URL(e.href).hash.slice(1))"),
    ("svg text", "<svg><text>{{ v }}</text></svg>", "e.textContent"),
    ("svg title", "<svg><title>{{ v }}</title></svg>", "e.textContent"),
    ("math", "<math><mtext>{{ v }}</mtext></math>", "e.textContent"),
    ("template", "<template>{{ v }}</template>", "e.content.textContent"),
    ("noscript", "<div><noscript>x</noscript>{{ v }}</div>", "e.lastChild.textContent"),
    ("srcdoc", '<iframe srcdoc="<p>{{ v }}</p>"></iframe>', 'e.contentDocument.querySelector("p").textContent'),
    ("script", "<div><script>got = {{ v }}</script></div>", "kept(e)"),
    ("script string", "<div><script>got = '{{ v }}'</script></div>", "kept(e)"),
    ("script double", '<div><script>got = "{{ v }}"</script></div>', "kept(e)"),
    ("script key", "<div><script>got = {k: [{{ v }}]}.k[0]</script></div>", "kept(e)"),
    ("module", "<div><script type=\"module\">got = {{ v }}; keep('module', {{ n }})</script></div>", "later.module[n]"),
    ("json script", '<script type="application/json">{"v": {{ v }}}</script>', "JSON.parse(e.textContent).v"),
    ("handler", '<b onclick="got = {{ v }}"></b>', "clicked(e)"),
    ("handler string", "<b onclick=\"got = '{{ v }}'\"></b>", "clicked(e)"),
    ("handler single", "<b onclick='got = \"{{ v }}\"'></b>", "clicked(e)"),
    ("handler entity", '<b onclick="got = &quot;{{ v }}&quot;"></b>', "clicked(e)"),
    ("handler after &", "<b onclick=\"got = '&{{ v }}'.slice(1)\"></b>", "clicked(e)"),
    ("handler split", "<b onclick=\"got = '{{ v:sub(1, 1) }}{{ v:sub(2) }}'\"></b>", "clicked(e)"),
]
# Places whose text is changed on purpose, or not to be seen: nothing runs, nothing leaves.
INERT = [
    '<a href="{{ v }}">x</a>', "<a href='{{ v }}'>x</a>", '<a href="{{ v }}{{ v }}">x</a>', '<a href="java{{ v }}">x</a>',
    '<a href="/p/{{ v }}/x">x</a>', '<a href="{{ v:sub(1, 11) }}{{ v:sub(12) }}">x</a>',
    '<img src="{{ v }}">', '<img srcset="{{ v }}">', '<iframe src="{{ v }}"></iframe>', '<embed src="{{ v }}">',
    '<object data="{{ v }}"></object>', '<form action="{{ v }}"><button formaction="{{ v }}">x</button></form>',
    '<video poster="{{ v }}"></video>', '<a href="/" ping="{{ v }}">x</a>', '<blockquote cite="{{ v }}"></blockquote>',
    '<svg><a xlink:href="{{ v }}"><text>x</text></a><use href="{{ v }}"/></svg>',
    '<svg><a href="/"><animate attributeName="href" values="{{ v }}" begin="0s" dur="9s"/><text>x</text></a></svg>',
    '<svg><a href="/"><animate attributeName="href" values="/a;{{ v }}" dur="1ms" fill="freeze"/><text>x</text></a></svg>',
    '<svg><a href="/"><set attributeName="href" to="{{ v }}"/><text>x</text></a></svg>',
    '<link rel="x" href="{{ v }}">', '<meta name="description" content="{{ v }}">',
    '<b style="color: {{ v }}"></b>', "<b style='background: url({{ v }})'></b>", "<style>b { color: {{ v }} }</style>",
    "<style>b::after { content: \"{{ v }}\" }</style>", "<!-- {{ v }} -->", "<!--{{ v }}-->", "<!-- {{ v }}{{ v }} -->",
    "<iframe>{{ v }}</iframe>", "<xmp>{{ v }}</xmp>", "<noscript>{{ v }}</noscript>",
    "<svg><style>b { color: {{ v }} }</style></svg>", "<svg><script>got = {{ v }}</script></svg>",
    '<iframe srcdoc="<p>{{ v }}</p>{{ v }}"></iframe>',
]

PROBE = """
const shown = {};
for (const e of document.querySelectorAll("[data-place]")) {
  const place = e.dataset.place, n = +e.dataset.n;
  const inner = e.querySelector("svg > *, math > *") || e.firstElementChild;
  let value;
  try { value = new Function("e", "n", "return " + readers[place])(inner, n); } catch (fault) { value = "fault: " + fault; }
  (shown[place] = shown[place] || [])[n] = value;
}
document.addEventListener("click", event => {
  const link = event.target.closest && event.target.closest("a");
  const url = link && (link.href.animVal === undefined ? link.href : link.href.animVal);
  if (!url || !/^javascript:/i.test(url)) event.preventDefault();
}, true);
document.addEventListener("submit", event => { if (!/^javascript:/i.test(event.target.action)) event.preventDefault(); });
const targets = [...document.querySelectorAll("a, button, [onclick]")];
for (const e of targets) e.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
setTimeout(() => { // what a link runs, it runs later
const names = ["href", "src", "action", "formaction", "data", "poster", "to", "values"];
const urls = [...document.querySelectorAll("*")].flatMap(
  e => names.flatMap(name => (e.getAttribute(name) || "").split(name === "values" ? ";" : "\\0")))
  .filter(url => /^[\\0-\\x20]*(javascript|vbscript|data):/i.test(url.replace(/[\\t\\n\\r]/g, "")));
const odd = [...document.querySelectorAll("#inert *")].flatMap(
  e => [...e.attributes].filter(a => /^on/.test(a.name)).map(a => a.name));
const outside = [...document.querySelectorAll("#inert > div")].filter(e => e.dataset.end !== "here" || e.lastChild.textContent !== "end").length;
const count = document.querySelectorAll("#inert > div").length;
document.getElementById("result").textContent = JSON.stringify({ shown, hits, urls, odd, outside, count });
}, 300);
"""


def attack_page():
    """The template: each place as often as there are payloads, in elements that say which is which."""
    shown = "\n".join('{%% for n, v in ipairs(payloads) do %%}<div data-place="%s" data-n="{{ n - 1 }}">%s</div>{%% end %%}'
                      % (html.escape(name), markup) for name, markup, _ in SHOWN)
    inert = "\n".join('{%% for _, v in ipairs(all) do %%}<div data-end="here">%s<i>end</i></div>{%% end %%}'
                      % markup for markup in INERT)
    readers = json.dumps({name: reader for name, _, reader in SHOWN})
    return ("""<!doctype html><html><head><meta charset="utf-8"><title>{{ payloads[1] }}</title>
<script>var hits = [], got, later = { module: [] }, held = new Map();
function hit(n) { hits.push(n); }
alert = hit;
function keep(place, n) { later[place][n - 1] = got; }
function clicked(e) { got = undefined; e.onclick(); return got; }
function kept(e) { got = undefined; (0, eval)(e.querySelector("script").textContent); return got; }
</script></head><body>
""" + shown + '\n<div id="inert">\n' + inert + """
</div>
<pre id="result"></pre>
<script>addEventListener("load", () => setTimeout(() => { const readers = """ + readers + ";" + PROBE + """ }, 100));</script>
</body></html>
""")


APP = """
local srv = require "srv"
local app = srv.app()
local file = assert(io.open(srv.root .. "/payloads.json"))
local payloads = assert(srv.json.decode(file:read "*a"))
file:close()
local all = {}
for _, text in ipairs(payloads.texts) do all[#all + 1] = text end
for _, encoded in ipairs(payloads.bytes) do all[#all + 1] = srv.crypto.decode("base64", encoded) end

app:get("/attack", function(req, res)
  if req.headers["sec-fetch-dest"] ~= "document" then return "a page in the page" end
  return res:render("attack", { payloads = payloads.texts, all = all })
end)
return app
"""


@unittest.skipUnless(CHROMIUM, "no Chromium here (apt-get install chromium)")
class Attack(unittest.TestCase):
    def test_no_value_runs_or_leaves_its_place_and_all_are_shown(self):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            encoded = [base64.b64encode(value).decode() for value in BYTES]
            app = write_app(os.path.join(folder, "app"), {
                "app.lua": APP, "views/attack.html": attack_page(),
                "payloads.json": json.dumps({"texts": PAYLOADS, "bytes": encoded})})
            with Srv(app, "--no-watch") as srv:
                self.check(self.visit(srv.url + "/attack", os.path.join(folder, "profile")))

    def visit(self, url, profile):
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   "--virtual-time-budget=10000", "--user-data-dir=" + profile, "--dump-dom", url]
        done = subprocess.run(command, text=True, errors="replace", timeout=4 * PATIENCE, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        found = re.search(r'<pre id="result">(.+?)</pre>', done.stdout, re.S)
        self.assertIsNotNone(found, "the page's own script did not run to its end:\n" + done.stdout[-2000:])
        return json.loads(html.unescape(found.group(1)))

    def check(self, page):
        self.assertEqual(page["hits"], [], "these payloads ran")
        self.assertEqual(page["urls"], [], "these would run, clicked")
        self.assertEqual(page["odd"], [], "handlers that no template has")
        self.assertEqual((page["outside"], page["count"]), (0, len(INERT) * (len(PAYLOADS) + len(BYTES))))
        self.assertEqual(set(page["shown"]), {name for name, _, _ in SHOWN})
        for name, values in page["shown"].items():
            self.assertEqual(len(values), len(PAYLOADS), name)
            for payload, value in zip(PAYLOADS, values):
                self.assertEqual(value, payload, "in the place %r" % name)


VIEWS_APP = """
local srv = require "srv"
local app = srv.app()
app:get("/", function(_, res) return res:render("page", { v = "<b>" }) end)
app:get("/kind/:name", function(req, res) return res:render(req.params.name, { v = "<b>" }) end)
app:get("/rss", function(_, res) return res:type("application/rss+xml"):render("feed.xml", { v = "<b>" }) end)
return app
"""
VIEWS = {
    "app.lua": VIEWS_APP,
    "views/layout.html": "<title>l0</title>{% block 'main' %}{% end %}<i>l0</i>",
    "views/page.html": "{% extends 'layout' %}{% block 'main' %}<p>v0</p>{% include 'part' %}{% end %}",
    "views/part.html": "<b>p0</b>", "views/feed.xml": "<a>{{ v }}</a>", "views/mail.txt": "{{ v }}",
    "views/data.json": '{"v": {{ v }}}',
}


class Visits(threading.Thread):
    """GET / in a row on one connection; what was answered."""

    def __init__(self, srv):
        super().__init__(daemon=True)
        self.srv, self.ending, self.seen = srv, threading.Event(), set()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.srv.port, timeout=PATIENCE)
        while not self.ending.is_set():
            try:
                connection.request("GET", "/")
                answer = connection.getresponse()
                self.seen.add((answer.status, answer.read()))
            except (OSError, http.client.HTTPException) as error:
                self.seen.add((0, repr(error).encode()))
                connection.close()
        connection.close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join()


class Views(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.app = write_app(self.folder.name, VIEWS)

    def tearDown(self):
        self.folder.cleanup()

    def edit(self, name, old, new):
        """As editors save: a new file under the old name."""
        path = os.path.join(self.app, "views", name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path + ".new~", "w", encoding="utf-8") as out:
            out.write(text.replace(old, new))
        os.rename(path + ".new~", path)

    def wait_body(self, srv, want):
        wait_until(lambda: srv.get("/")[2] == want, "the answer %r" % want)

    def test_edits_of_view_layout_and_part_go_live_whole_under_load(self):
        page = "<title>%s</title><p>%s</p><b>%s</b><i>%s</i>"
        steps = [("l0", "v0", "p0", "l0"), ("l0", "v0", "p1", "l0"), ("l1", "v0", "p1", "l1"), ("l1", "v1", "p1", "l1")]
        bodies = [(page % step).encode() for step in steps]
        edits = [("part.html", "p0", "p1"), ("layout.html", "l0", "l1"), ("page.html", "v0", "v1")]
        with Srv(self.app, workers=2) as srv:
            self.wait_body(srv, bodies[0])
            with Visits(srv) as first, Visits(srv) as second:
                for edit, body in zip(edits, bodies[1:]):
                    self.edit(*edit)
                    self.wait_body(srv, body)
            self.assertLessEqual(first.seen | second.seen, {(200, body) for body in bodies})

    def test_a_broken_edit_says_its_place_and_the_last_good_view_serves_on(self):
        with Srv(self.app) as srv, Visits(srv) as visits:
            before = srv.get("/")
            for name, broken, place in (("part.html", "\n<b title={{ 1 }}>", r"views/part\.html:2:\d+: .*needs quotes"),
                                        ("page.html", "{% if %}v0", r"views/page\.html:1:\d+: "),
                                        ("layout.html", "{% block main %}", r"views/layout\.html:1:\d+: block wants a name")):
                seen = len(srv.lines)
                good = {"part.html": "<b>", "page.html": "v0", "layout.html": "{% block 'main' %}"}[name]
                self.edit(name, good, broken)
                srv.wait_line(place, seen)
                self.assertEqual(srv.get("/")[::2], before[::2])
                self.edit(name, broken, good)
            self.edit("part.html", "p0", "p1")
            wait_until(lambda: b"p1" in srv.get("/")[2], "the mended view")
        self.assertEqual({status for status, _ in visits.seen}, {200})

    def test_a_start_with_a_broken_view_is_refused_with_its_place(self):
        self.edit("page.html", "<p>", "<p {{ 1 }}>")
        status, output = run_to_end(self.app)
        self.assertNotEqual(status, 0)
        self.assertRegex(output, r"views/page\.html:1:\d+: a value cannot stand in a tag")

    def test_a_view_goes_out_under_the_type_of_its_kind(self):
        with Srv(self.app, "--no-watch") as srv:
            for path, kind, body in (("/kind/feed.xml", "application/xml", b"<a>&lt;b&gt;</a>"),
                                     ("/kind/mail.txt", "text/plain; charset=utf-8", b"<b>"),
                                     ("/kind/data.json", "application/json", b'{"v": "<b>"}'),
                                     ("/rss", "application/rss+xml", b"<a>&lt;b&gt;</a>"),
                                     ("/kind/page", "text/html; charset=utf-8", None)):
                status, headers, text = srv.get(path)
                self.assertEqual((status, headers["content-type"]), (200, kind), path)
                if body:
                    self.assertEqual(text, body)


if __name__ == "__main__":
    unittest.main()
