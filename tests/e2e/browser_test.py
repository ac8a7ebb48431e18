"""Pages of the example app in a real browser: headless Chromium, at the width of a phone and a desk.

A probe page is put beside the app's static files. It opens the app's page in a frame of the wanted
width and writes down what it finds: whether anything is wider than the frame, what was loaded from
where, what the page holds. Skipped where there is no Chromium.
"""
import html
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from srv_process import PATIENCE, ROOT, Srv

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

PROBE = """<!doctype html><title>probe</title>
<iframe id="frame" style="border:0;width:%(width)dpx;height:900px"></iframe><pre id="result"></pre>
<script>
const frame = document.getElementById("frame");
frame.onload = () => {
  const page = frame.contentDocument, view = frame.contentWindow;
  const wide = [...page.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > %(width)d + 1);
  document.getElementById("result").textContent = JSON.stringify({
    title: page.title,
    lang: page.documentElement.lang,
    overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
    wide: wide.map(e => e.tagName + "." + e.className),
    headings: [...page.querySelectorAll("h1, h2")].map(e => e.textContent.trim()),
    unlabelled: [...page.querySelectorAll("input")].filter(
      e => !e.labels.length && !e.getAttribute("aria-label")).length,
    font: view.getComputedStyle(page.body).fontFamily,
    loaded: view.performance.getEntriesByType("resource")
      .filter(e => e.initiatorType !== "img").map(e => e.name), // an article's picture is its source's,
    scripts: page.scripts.length,
  });
};
frame.src = %(path)s;
</script>
"""


@unittest.skipUnless(CHROMIUM, "no Chromium here (apt-get install chromium)")
class Browser(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.app = os.path.join(self.folder.name, "news")
        shutil.copytree(os.path.join(ROOT, "apps", "news"), self.app,
                        ignore=shutil.ignore_patterns("*.db*"))

    def tearDown(self):
        self.folder.cleanup()

    def dump(self, url):
        """The page's document after its scripts have run."""
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
                   "--no-first-run", "--disable-background-networking",
                   "--disable-component-update", "--disable-sync", "--virtual-time-budget=8000",
                   "--user-data-dir=" + os.path.join(self.folder.name, "profile"), "--dump-dom", url]
        done = subprocess.run(command, text=True, errors="replace", timeout=4 * PATIENCE,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        return done.stdout

    def probe(self, srv, path, width):
        with open(os.path.join(self.app, "public", "probe.html"), "w", encoding="utf-8") as out:
            out.write(PROBE % {"width": width, "path": json.dumps(path)})
        document = self.dump(srv.url + "/probe.html")
        found = re.search(r'<pre id="result">(.+?)</pre>', document, re.S)
        self.assertIsNotNone(found, document[:2000])
        return json.loads(html.unescape(found.group(1)))

    def check_page(self, srv, path):
        for width in (360, 1280):
            page = self.probe(srv, path, width)
            self.assertEqual((page["overflow"], page["wide"]), (0, []), "%s at %d" % (path, width))
            self.assertNotEqual(page["title"], "")
            self.assertNotEqual(page["lang"], "")
            self.assertTrue(page["headings"], path)
            self.assertEqual(page["unlabelled"], 0, "inputs without a label")
            self.assertTrue(all(url.startswith(srv.url) for url in page["loaded"]), page["loaded"])
            self.assertTrue(any(url.endswith(".css") or ".css?" in url for url in page["loaded"]))
        return page

    def test_the_front_page_fits_phone_and_desk(self):
        with Srv(self.app, "--no-watch") as srv:
            page = self.check_page(srv, "/")
            self.assertTrue(any("NASA" in heading for heading in page["headings"]))

    def test_an_article_and_a_search_fit_phone_and_desk(self):
        with Srv(self.app, "--no-watch") as srv:
            self.check_page(srv, "/news/1")
            self.check_page(srv, "/?q=cyclone")

    def test_an_error_page_is_a_page(self):
        with Srv(self.app, "--no-watch") as srv:
            page = self.probe(srv, "/no/such/page", 360)
            self.assertEqual(page["overflow"], 0)
            self.assertIn("404", page["title"] + " ".join(page["headings"]))


if __name__ == "__main__":
    unittest.main()
