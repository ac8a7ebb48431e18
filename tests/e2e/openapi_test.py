"""The page of srv.openapi in a real browser, behind srv.helmet: headless Chromium, as wide as a phone and a desk.

A probe beside it (a script of its own, as helmet's policy asks) opens the page in a frame, unfolds all of it, sends
two requests from its forms, and writes down what it finds. Skipped where there is no Chromium.
"""
import html
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from srv_process import PATIENCE, Srv

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

APP = """
local srv = require "srv"
local app = srv.app()
app:use(srv.helmet(), srv.openapi { title = "Shop <b>& Co</b>", version = "1.0" })
local tree
tree = srv.schema({
  value = "integer", left = srv.schema(srv.schema.lazy(function() return tree end), { optional = true }),
}, { name = "Tree" })
local item = srv.schema({
  title = "string 1..200 -- <img src=x onerror=alert(1)>", state = "draft|published = draft",
  a_rather_long_name_of_a_field_that_is_wider_than_a_phone_would_like_it_to_be = "string ..2000 = xxxxxxxxxxxxxxxxxxxxxxx",
}, { name = "Item" })
app:get("/items/:id<int>", {
  name = "items.show", tags = { "items" }, summary = "Shows an item", response = item, query = { full = "boolean?" },
}, function(req) return { title = "item " .. req.params.id, state = "draft" } end)
app:post("/items", { name = "items.make", body = item, tags = { "items" } }, function(req) return req.valid.body, 201 end)
app:post("/orders", {
  name = "orders.make", consumes = { "form" }, body = { buyer = { name = "string" }, rows = { { n = "integer" } }, tags = "slug[]" },
}, function(req) return req.valid.body, 201 end)
app:get("/files/*path", function(req) return req.params.path end)
app:put("/a/very/long/path/that/goes/on/and/on/for/longer/than/:any/phone/:is/:wide", { body = tree }, function() return "x" end)
app:delete("/items/:id<int>", { deprecated = true, tags = { "items" } }, srv.basic_auth { users = { ann = "x" } },
  function() return nil, 204 end)
app:static("/", "public")
return app
"""

PROBE = """<!doctype html><title>probe</title><script src="/probe.js" defer></script>
<iframe id="frame" style="border:0;width:%dpx;height:900px"></iframe><pre id="result"></pre>"""

SCRIPT = """
const frame = document.getElementById("frame"), width = %d;
const soon = () => new Promise(done => setTimeout(done, 20));
async function until(what) { for (let i = 0; i < 200 && !what(); i++) await soon(); }
async function unfold(page) {
  for (let depth = 0; depth < 5; depth++) {
    for (const one of page.querySelectorAll("details:not([open])")) one.open = true;
    await soon();
  }
}
async function submit(operation, fill) {
  const form = operation.querySelector("form"), result = form.querySelector("[role=status]");
  fill(form);
  form.requestSubmit();
  await until(() => result.querySelector("pre"));
  return result.textContent;
}
async function probe() {
  const page = frame.contentDocument, view = frame.contentWindow;
  await unfold(page);
  const shown = await submit(page.getElementById("items.show"), form => { form.querySelector("input").value = "7"; });
  const made = await submit(page.getElementById("items.make"), form => {
    form.querySelector("textarea").value = JSON.stringify({title: "made here"});
  });
  const ordered = await submit(page.getElementById("orders.make"), form => {
    form.querySelector("textarea").value = JSON.stringify({buyer: {name: "Ann"}, rows: [{n: 1}, {n: 2}], tags: ["a", "b"]});
  });
  const file = await submit(page.getElementById("get_files_path"), form => { form.querySelector("input").value = "a b/c?d"; });
  const wide = [...page.querySelectorAll("body *:not(.skip)")].filter(e => e.getBoundingClientRect().right > width + 1);
  const inputs = [...page.querySelectorAll("input, select, textarea")];
  const ids = [...page.querySelectorAll("[id]")].map(e => e.id);
  const search = page.querySelector("input[type=search]");
  search.value = "shows an";
  search.dispatchEvent(new Event("input"));
  const found = [...page.querySelectorAll("details.op")].filter(e => e.getClientRects().length).map(e => e.id);
  document.getElementById("result").textContent = JSON.stringify({
    title: page.title, lang: page.documentElement.lang, shown, made, ordered, file, found, inputs: inputs.length,
    overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
    wide: wide.map(e => e.tagName + "." + e.className),
    unlabelled: inputs.filter(e => !e.labels.length).length, repeated: ids.length - new Set(ids).size,
    headings: [...page.querySelectorAll("h1, h2")].map(e => e.textContent.trim()),
    images: page.images.length, text: page.body.textContent, font: view.getComputedStyle(page.body).fontFamily,
    loaded: view.performance.getEntriesByType("resource").filter(e => e.initiatorType !== "fetch").map(e => e.name),
  });
}
frame.onload = () => probe().catch(error => { document.getElementById("result").textContent = JSON.stringify(String(error)); });
frame.src = "/docs";
"""


@unittest.skipUnless(CHROMIUM, "no Chromium here (apt-get install chromium)")
class Openapi(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.write("app.lua", APP)
        self.write("public/probe.html", "")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)

    def probe(self, srv, width):
        self.write("public/probe.html", PROBE % width)
        self.write("public/probe.js", SCRIPT % width)
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   "--virtual-time-budget=20000", "--user-data-dir=" + os.path.join(self.folder.name, "profile"),
                   "--dump-dom", srv.url + "/probe.html"]
        done = subprocess.run(command, text=True, errors="replace", timeout=4 * PATIENCE,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        found = re.search(r'<pre id="result">(.+?)</pre>', done.stdout, re.S)
        self.assertIsNotNone(found, done.stdout[:2000])
        page = json.loads(html.unescape(found.group(1)))
        self.assertIsInstance(page, dict, page)
        return page

    def test_it_fits_phone_and_desk_unfolded_and_its_forms_send(self):
        with Srv(self.folder.name, "--no-watch") as srv:
            for width in (360, 1280):
                with self.subTest(width=width):
                    page = self.probe(srv, width)
                    self.assertEqual((page["overflow"], page["wide"]), (0, []))
                    self.assertEqual((page["unlabelled"], page["repeated"]), (0, 0))
                    self.assertGreater(page["inputs"], 8)
                    self.assertEqual((page["title"], page["lang"]), ("Shop <b>& Co</b>", "en"))
                    self.assertEqual(page["headings"], ["Shop <b>& Co</b> 1.0", "items", "a", "files", "orders"])
                    self.assertIn("system-ui", page["font"], "helmet's policy does not keep the style away")
                    self.assertEqual((page["loaded"], page["images"]), ([], 0))
                    self.assertIn("<img src=x onerror=alert(1)>", page["text"])
                    self.assertIn("200 OK", page["shown"])
                    self.assertIn('"title": "item 7"', page["shown"])
                    self.assertIn("201 Created", page["made"])
                    self.assertIn("made here", page["made"])
                    self.assertIn("a b/c?d", page["file"])
                    self.assertIn("201 Created", page["ordered"])
                    self.assertIn('"n": 2', page["ordered"])
                    self.assertEqual(page["found"], ["items.show"])


if __name__ == "__main__":
    unittest.main()
