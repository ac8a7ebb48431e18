"""The page that srv bench writes, in a real browser. Skipped where there is no Chromium."""
import json
import os
import re
import tempfile
import unittest

import chromium
from bench_test import answer, bench, wait_then_answer
from origin import RawOrigin, dead_url

PAGE_BYTES_MAX = 100 * 1024

CHARTS = """page => [...page.querySelectorAll("figure.chart")].map(figure => ({
  label: figure.getAttribute("aria-label"),
  lines: [...figure.querySelectorAll("path.line")].filter(path => /^M[\\d.]+ [\\d.]+L/.test(path.getAttribute("d"))).length,
  bars: figure.querySelectorAll("rect.bar").length,
  ticks: figure.querySelectorAll("text.axis").length,
}))"""

KEYS = """(page, view) => {
  const figure = page.querySelector("#requests figure"), said = () => figure.querySelector("figcaption").textContent;
  const press = key => figure.dispatchEvent(new view.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  figure.focus();
  const texts = [said()];
  for (const key of ["ArrowRight", "ArrowRight", "End", "Home", "Escape"]) { press(key); texts.push(said()); }
  press("End");
  texts.push(page.querySelector("#times figcaption").textContent);
  return { focused: page.activeElement === figure, texts };
}"""


@unittest.skipUnless(chromium.CHROMIUM, "no Chromium here (apt-get install chromium)")
class Page(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.page = os.path.join(self.folder.name, "page.html")

    def tearDown(self):
        self.folder.cleanup()

    def write_page(self, *args):
        done = bench("--html", self.page, "-L", 100, "-T", "</script><b>title", *args)
        self.assertTrue(os.path.exists(self.page), done.err)

    def write_compared(self):
        old = os.path.join(self.folder.name, "old.json")
        with RawOrigin(wait_then_answer) as origin:
            bench("-d", "1s", "-L", 100, "-c", 2, "--output", old, origin.url)
        with RawOrigin(answer) as origin:
            self.write_page("-d", "1s", "-c", 2, "-R", 200, "--compare", old, origin.url)

    def test_it_is_one_small_file_that_asks_nobody_for_anything(self):
        self.write_compared()
        with open(self.page, encoding="utf-8") as file:
            text = file.read()
        self.assertLess(os.path.getsize(self.page), PAGE_BYTES_MAX)
        self.assertIn("default-src 'none'", text)
        self.assertIsNone(re.search(r"\b(src|href)=|@import|url\(|fetch\(|XMLHttpRequest", text))
        for width in (390, 1280):
            found, console = chromium.probe(self.page, width)
            self.assertEqual((found["overflow"], found["loaded"], console), (0, [], []), "at %d" % width)
            self.assertEqual(found["title"], "</script><b>title - srv bench")

    def test_its_charts_are_drawn(self):
        self.write_compared()
        charts, console = chromium.probe(self.page, 1280, CHARTS)
        self.assertEqual(console, [])
        self.assertEqual([chart["lines"] for chart in charts], [2, 4, 0, 2])
        self.assertGreater(charts[2]["bars"], 1)
        self.assertTrue(all(chart["ticks"] > 4 and chart["label"] for chart in charts), charts)

    def test_the_keyboard_moves_the_cursor_of_all_charts_and_says_what_stands_there(self):
        self.write_compared()
        found, _ = chromium.probe(self.page, 390, KEYS)
        first, one, two, last, home, escaped, other = found["texts"]
        self.assertTrue(found["focused"])
        self.assertEqual(first, escaped)
        self.assertEqual(one, home)
        self.assertEqual(len({first, one, two, last}), 4, found["texts"])
        self.assertRegex(one, r"^0\.[1-9]\d* srequests/s: \d")  # every 0.1 s, where nothing else runs
        self.assertRegex(other, r"^1(\.\d+)? sp50: ")

    def test_a_run_without_an_answer_has_a_page_too(self):
        self.write_page("-d", "1s", "-c", 2, dead_url())
        charts, console = chromium.probe(self.page, 390, CHARTS)
        self.assertEqual(console, [])
        self.assertIn("Errors over time", [chart["label"] for chart in charts])


if __name__ == "__main__":
    unittest.main()
